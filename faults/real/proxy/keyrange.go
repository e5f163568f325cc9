package proxy

import "slices"

// A KeyRange is a range of names in byte order: from From, inclusive, to To, exclusive. The zero
// value contains all names.
type KeyRange struct {
	From string
	To   string // empty: no upper bound
}

// Only returns the range that contains one name.
func Only(name string) KeyRange { return KeyRange{name, name + "\x00"} }

// Below returns the range of the names with a prefix.
func Below(prefix string) KeyRange {
	end := []byte(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xff {
		end = end[:len(end)-1]
	}
	if len(end) > 0 {
		end[len(end)-1]++
	}
	return KeyRange{prefix, string(end)}
}

// Overlaps reports whether a name may be in both ranges.
func (s KeyRange) Overlaps(other KeyRange) bool {
	return (s.To == "" || other.From < s.To) && (other.To == "" || s.From < other.To)
}

// Meeting reports whether s overlaps any range of the list.
func (s KeyRange) Meeting(list []KeyRange) bool { return slices.ContainsFunc(list, s.Overlaps) }
