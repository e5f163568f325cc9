package history

import "hash/maphash"

// names caches recently read names, so that reading one of them again allocates nothing. The cache
// has a fixed size: in a file with a new lock for every operation, old names are dropped.
type names struct {
	seed  maphash.Seed
	pairs [][2]string // nil until the first name
	last  string
}

// nameSets is the number of pairs of names in the cache; a power of two. The hash of a name selects
// its pair.
const nameSets = 1 << 12

// of returns the text as a string, from the cache if possible.
func (n *names) of(text []byte) string {
	if string(text) == n.last {
		return n.last
	}
	if len(text) > maxName {
		return string(text) // order.check refuses the name
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
