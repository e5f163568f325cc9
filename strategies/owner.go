package strategies

// A Change is a moment at which what a server holds under a lock's keys became
// something else: what [Strategy.Owner] reads.
type Change struct {
	// Before and After are the lock's keys, in the order of [Strategy.Keys].
	Before, After []Key
	// Client is whose command did it; empty where it was the server's own doing,
	// an expiry or a failover.
	Client string
	// Owner is whose the lock was before; empty if nobody's, or if that was not
	// known.
	Owner string
	// Wrote returns the client that was the first to send a word to a server,
	// and an empty string if none has.
	Wrote func(word string) string
}

// A Key is one of a lock's keys as a server has it. The zero value is a key that
// doesn't exist.
type Key struct {
	// Type is what Redis calls the type: string, hash, list, set or zset; other
	// for any other; empty for a key that doesn't exist.
	Type string
	// Words are what it holds: a string's value, a hash's fields and their
	// values in turn, a list's elements, a set's members, a sorted set's members
	// and their scores in turn. Hashes and sets are in the order of the alphabet.
	// Others have none.
	Words []string
}

// Exists reports whether there is such a key.
func (k Key) Exists() bool { return k.Type != "" }

// OwnerIsCreator reads that a lock belongs to the client that made its first key, until it
// has none: for locks whose keys exist while they are held, and whose values name
// nobody, such as SET lock 1 NX. It is a [Strategy.Owner].
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
