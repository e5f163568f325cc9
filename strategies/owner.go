package strategies

// Change describes one change of the contents of a lock's keys on a server. Change is the input of
// [Strategy.Owner].
type Change struct {
	// Before and After are the lock's keys before and after the change, in the order of
	// [Strategy.Keys].
	Before, After []Key
	// Client is the client whose command made the change. Client is empty if the server made the
	// change itself, by an expiry or a failover.
	Client string
	// Owner is the lock's owner before the change. Owner is empty if the lock was free or its owner
	// unknown.
	Owner string
	// Wrote returns the client that was the first to send a word to a server, or an empty string if
	// no client has.
	Wrote func(word string) string
}

// Key holds the contents of one of a lock's keys on a server. The zero value is a key that does not
// exist.
type Key struct {
	// Type is the name of the key's type in Redis: string, hash, list, set or zset. Type is "other"
	// for any other type, and empty for a key that does not exist.
	Type string
	// Words holds the contents of the key. The contents are the value of a string, the alternating
	// fields and values of a hash, the elements of a list, the members of a set, the alternating
	// members and scores of a sorted set. Hashes and sets are in alphabetical order. Words is empty
	// for other types.
	Words []string
}

// Exists reports whether the key exists.
func (k Key) Exists() bool { return k.Type != "" }

// OwnerIsCreator returns the client that created the lock's first key as the owner, until all keys
// are deleted. OwnerIsCreator is a [Strategy.Owner] for locks whose keys exist while the lock is
// held and whose values identify no client, such as SET lock 1 NX.
func OwnerIsCreator(c Change) (client string, known bool) {
	switch {
	case !exists(c.After):
		return "", true
	case exists(c.Before):
		return c.Owner, c.Owner != ""
	}
	return c.Client, c.Client != ""
}

func exists(keys []Key) bool {
	for _, k := range keys {
		if k.Exists() {
			return true
		}
	}
	return false
}
