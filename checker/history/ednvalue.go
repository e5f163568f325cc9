package history

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// said holds the contents of a :value.
type said struct {
	key     []byte
	hasKey  bool
	token   int64
	lease   time.Duration
	permits int
	shared  bool
}

// valueOf parses a :value: nothing; a number, which is the fencing token; a name, which is the
// lock's; a map with any of :key, :token (or :fence), :lease, :permits and :shared; or a vector of
// a lock and one of these, as in jepsen.independent.
func valueOf(text []byte) (said, error) {
	var s said
	if ednNil(text) || string(text) == "true" || string(text) == "false" { // the result of the call
		return s, nil
	}
	if pair := untag(text); pair[0] == '[' {
		return pairOf(pair)
	}
	if text[0] == '{' {
		return s, s.fields(text)
	}
	ok := false
	if s.token, ok = ednNumber(text); ok {
		return s, nil
	}
	if s.key, s.hasKey = nameOf(text); s.hasKey {
		return s, nil
	}
	return s, fmt.Errorf("its :value is %s, which says nothing of a lock: a lock's name, a token, a map or [name value] would", shown(text))
}

// untag returns the value after a tag.
func untag(text []byte) []byte {
	if text[0] != '#' || len(text) < 2 || !tagLetter(text[1]) || text[1] == ':' {
		return text
	}
	at, err := ednNext(text, ednSkipWord(text, 0), 0)
	if err != nil || at >= len(text) {
		return text // cannot happen: ednSkip has accepted the text
	}
	return text[at:]
}

// pairOf parses a vector of a lock and its value.
func pairOf(text []byte) (said, error) {
	var two [2][]byte
	n := 0
	for i, end := 1, 0; ; i = end {
		at, err := ednNext(text, i, 1)
		if err != nil {
			return said{}, err
		}
		if text[at] == ']' {
			break
		}
		if end, err = ednSkip(text, at, 1); err != nil {
			return said{}, err
		}
		if n < 2 {
			two[n] = text[at:end:end]
		}
		n++
	}
	if n != 2 {
		return said{}, fmt.Errorf("its :value is a vector of %d; the lock and its value would be 2", n)
	}
	if untag(two[1])[0] == '[' {
		return said{}, errors.New("its :value is a vector in a vector; the lock and its value would be one")
	}
	s, err := valueOf(two[1])
	if err != nil {
		return s, err
	}
	if s.hasKey {
		return s, errors.New("its :value names two locks")
	}
	if s.key, s.hasKey = nameOf(two[0]); !s.hasKey {
		return s, fmt.Errorf("its :value is a vector whose first is %s, no name of a lock", shown(two[0]))
	}
	return s, nil
}

// fields parses a :value that is a map.
func (s *said) fields(text []byte) error {
	var key, token, fence, lease, permits, shared []byte
	for i := 1; ; {
		name, value, end, err := ednPair(text, i)
		if err != nil {
			return err
		}
		if name == nil {
			break
		}
		i = end
		var field *[]byte
		switch string(name) {
		case ":key":
			field = &key
		case ":token":
			field = &token
		case ":fence":
			field = &fence
		case ":lease":
			field = &lease
		case ":permits":
			field = &permits
		case ":shared":
			field = &shared
		default:
			continue
		}
		if *field != nil {
			return fmt.Errorf("its :value has %s twice: leave out one of them", name)
		}
		*field = value
	}
	if !ednNil(key) {
		if s.key, s.hasKey = nameOf(key); !s.hasKey {
			return fmt.Errorf("the :key in its :value is %s, no name of a lock", shown(key))
		}
	}
	switch {
	case string(shared) == "true":
		s.shared = true
	case !ednNil(shared) && string(shared) != "false":
		return fmt.Errorf("the :shared in its :value is %s: it must be true or false", shown(shared))
	}
	number := func(name string, text []byte) (n int64, err error) {
		if ednNil(text) {
			return 0, nil
		}
		n, ok := ednNumber(text)
		if !ok {
			return 0, fmt.Errorf("the %s in its :value is %s, which is no whole number", name, shown(text))
		}
		return n, nil
	}
	var err error
	if s.token, err = number(":token", token); err != nil {
		return err
	}
	if !ednNil(fence) {
		if !ednNil(token) {
			return errors.New("its :value has a :token and a :fence: leave out one of them")
		}
		if s.token, err = number(":fence", fence); err != nil {
			return err
		}
	}
	until, err := number(":lease", lease)
	if err != nil {
		return err
	}
	s.lease = time.Duration(until)
	if ednNil(permits) {
		return nil
	}
	n, err := number(":permits", permits)
	if err == nil && (n <= 0 || n > maxPermits) {
		err = badPermits(":permits in its :value", n)
	}
	s.permits = int(n)
	return err
}

// nameOf returns the name that a value stands for: a string, keyword, symbol or number.
func nameOf(text []byte) ([]byte, bool) {
	if name, ok := ednKeyword(text); ok {
		return bytes.TrimPrefix(name, []byte(":")), true
	}
	if name, ok := ednText(text); ok {
		return name, true
	}
	if ednSymbol(text) {
		return text, true
	}
	return numberName(text)
}

// numberName returns the canonical form of a whole number, which may be written in several ways.
func numberName(text []byte) ([]byte, bool) {
	n, ok := ednNumber(text)
	if !ok {
		return nil, false
	}
	if text[0] == '+' || n == 0 && len(text) > 1 || text[len(text)-1] == 'N' {
		return strconv.AppendInt(nil, n, 10), true
	}
	return text, true
}
