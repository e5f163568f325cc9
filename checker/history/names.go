package history

import "hash/maphash"

// names keeps one copy of the names that were read lately, so that reading one
// of them again allocates nothing. It is a cache of fixed size: in a file in
// which every operation has a lock of its own, names are forgotten, not piled up.
type names struct {
	seed  maphash.Seed
	pairs [][2]string // nil until the first name
	last  string
}

// nameSets is how many pairs of names are kept; a power of two. A name is looked
// for in one pair, the one that its hash says.
const nameSets = 1 << 12

// of returns the text as a string.
func (n *names) of(text []byte) string {
	if string(text) == n.last {
		return n.last
	}
	if len(text) > maxName {
		return string(text) // refused as soon as it is looked at
	}
	if n.pairs == nil {
		n.seed, n.pairs = maphash.MakeSeed(), make([][2]string, nameSets)
	}
	pair := &n.pairs[maphash.Bytes(n.seed, text)%nameSets]
	switch string(text) {
	case pair[0]:
		n.last = pair[0]
	case pair[1]:
		n.last = pair[1]
	default:
		pair[0], pair[1] = string(text), pair[0]
		n.last = pair[0]
	}
	return n.last
}
