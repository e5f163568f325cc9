package history

import (
	"errors"
	"fmt"
)

// operation holds the values of the relevant keys of a map that Jepsen wrote, as raw EDN; nil for a
// missing key. The values share memory with the text.
type operation struct {
	kind, f, process, time, index, value []byte
}

// field returns the field for a key; nil if the key is not used.
func (o *operation) field(key []byte) *[]byte {
	switch string(key) { // does not allocate
	case ":f":
		return &o.f
	case ":type":
		return &o.kind
	case ":time":
		return &o.time
	case ":index":
		return &o.index
	case ":value":
		return &o.value
	case ":process":
		return &o.process
	}
	return nil
}

// scan reads the map at the beginning of the text, after any tags, and returns the position after
// it.
func (o *operation) scan(b []byte) (int, error) {
	*o = operation{}
	i := 0
	for depth := 0; len(b)-i > 1 && b[i] == '#' && b[i+1] != ':' && tagLetter(b[i+1]); depth++ {
		if depth > maxDepth {
			return 0, faultDeep
		}
		var err error
		if i, err = ednNext(b, ednSkipWord(b, i), 0); err != nil {
			return 0, err
		}
	}
	if i >= len(b) {
		return 0, faultEnd
	}
	if b[i] != '{' {
		return 0, errors.New("it is no map, and so no operation")
	}
	for i++; ; {
		key, value, end, err := ednPair(b, i)
		if key == nil || err != nil {
			return end, err
		}
		i = end
		switch field := o.field(key); {
		case field == nil:
		case *field != nil:
			return 0, fmt.Errorf("it has %s twice: leave out one of them", key)
		default:
			*field = value
		}
	}
}
