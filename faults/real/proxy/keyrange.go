package proxy

import "slices"

// A KeyRange is of names, in the order of their bytes: from one on until before another. The zero value is of all.
type KeyRange struct {
	From string
	To   string // empty: of all from From on
}

// Only returns the span of one name.
func Only(name string) KeyRange { return KeyRange{name, name + "\x00"} }

// Below returns the span of the names that begin so.
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

// Overlaps reports whether there may be a name in both.
func (s KeyRange) Overlaps(other KeyRange) bool {
	return (s.To == "" || other.From < s.To) && (other.To == "" || s.From < other.To)
}

// Meeting reports whether one of several may have a name in it that is in the span, too.
func (s KeyRange) Meeting(list []KeyRange) bool { return slices.ContainsFunc(list, s.Overlaps) }
