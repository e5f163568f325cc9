package histories

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"olympos.io/encoding/edn"

	"github.com/lockfault/lockfault/checker/linear"
)

// jepsen parses operations as Jepsen writes them.
type jepsen struct {
	names   names
	begun   bool
	timed   bool              // operations have a :time
	count   time.Duration     // of operations, which stands for the time where there is none
	index   int64             // the last :index
	keys    map[string]string // the lock of each process's operation under way
	crashed map[string]int    // the line of the :info that ended each process
	fields  map[any]any       // of the operation, if it is a plain one
	in      *bufio.Reader     // the library makes none of its own if it is given one
}

func newJepsen() *jepsen {
	return &jepsen{index: -1, keys: map[string]string{}, crashed: map[string]int{}, fields: map[any]any{}, in: bufio.NewReader(nil)}
}

func (p *jepsen) parse(text []byte, line int, out *[2]record) (int, error) {
	if len(text) > 1 && text[0] == '#' && text[1] == '_' { // EDN's way to comment a value out
		return 0, nil
	}
	clear(p.fields)
	fields := p.fields
	if !plainMap(text, fields) {
		value, err := p.unmarshal(text)
		if err != nil {
			return 0, err
		}
		var ok bool
		if fields, ok = value.(map[any]any); !ok {
			return 0, errors.New("it is no map, and so no operation")
		}
	}
	client, ours, err := p.process(fields)
	if err != nil {
		return 0, err
	}
	at, err := p.time(fields)
	if err != nil || !ours {
		return 0, err
	}
	what, ok := fields[edn.Keyword("type")].(edn.Keyword)
	if !ok {
		return 0, errors.New("it has no :type")
	}
	if was, ok := p.crashed[client]; ok {
		return 0, fmt.Errorf("process %s goes on after its :info of line %d, but Jepsen gives it a new number then", client, was)
	}
	op, err := operation(fields)
	if err != nil {
		return 0, err
	}
	e := linear.Event{Time: at, Client: client, Op: op}
	said, err := valueOf(fields[edn.Keyword("value")])
	if err != nil {
		return 0, err
	}
	under, open := p.keys[client]
	if said.hasKey {
		e.Key = p.names.of([]byte(said.key))
	} else if open && what != "invoke" {
		e.Key = under
	}
	switch what {
	case "invoke":
		e.Phase = linear.Invoke
	case "ok":
		e.Phase, e.Token, e.Lease = linear.ReturnOK, said.token, said.lease
	case "fail":
		e.Phase = linear.ReturnFail
	case "info":
		e.Phase = linear.ReturnUnknown
	default:
		return 0, fmt.Errorf("there is no :type %s: there are :invoke, :ok, :fail and :info", what)
	}
	e.Permits = said.permits
	n := 0
	switch {
	case op == linear.Use && (e.Phase == linear.ReturnOK || e.Phase == linear.ReturnFail):
		e.Token = said.token
		out[0], n = record{Event: e}, 1
	case op != linear.Use:
		out[0], n = record{Event: e}, 1
		if e.Phase == linear.Invoke {
			p.keys[client] = e.Key
		} else {
			delete(p.keys, client)
		}
	}
	if e.Phase == linear.ReturnUnknown {
		// The process is never heard of again; its thread goes on as another.
		p.crashed[client] = line
		out[n] = record{Event: linear.Event{Time: at, Client: client, Phase: linear.Crash}}
		n++
	}
	return n, nil
}

// unmarshal reads one value. The library panics at some that are wrong.
func (p *jepsen) unmarshal(text []byte) (value any, err error) {
	defer func() {
		if r := recover(); r != nil {
			value, err = nil, fmt.Errorf("it is not EDN: %v", r)
		}
	}()
	p.in.Reset(bytes.NewReader(text))
	if err := edn.NewDecoder(p.in).Decode(&value); err != nil {
		return nil, fmt.Errorf("it is not EDN: %w", reason(err))
	}
	for {
		tag, ok := value.(edn.Tag) // such as #jepsen.history.Op
		if !ok {
			return value, nil
		}
		value = tag.Value
	}
}

// process returns who did it, and whether that is a client: Jepsen's nemesis
// writes into the same history.
func (p *jepsen) process(fields map[any]any) (string, bool, error) {
	switch process := fields[edn.Keyword("process")].(type) {
	case int64:
		return p.names.of(strconv.AppendInt(nil, process, 10)), true, nil
	case string:
		return p.names.of([]byte(process)), true, nil
	case edn.Keyword:
		return "", false, nil
	case nil:
		return "", false, errors.New("it has no :process")
	}
	return "", false, errors.New("its :process is neither a number nor a name")
}

// time returns when it happened, and checks that it is not there twice.
func (p *jepsen) time(fields map[any]any) (time.Duration, error) {
	if index, ok := fields[edn.Keyword("index")].(int64); ok {
		if index <= p.index {
			return 0, fmt.Errorf(":index %d comes after :index %d", index, p.index)
		}
		p.index = index
	}
	p.count++
	at, ok := fields[edn.Keyword("time")]
	timed := ok && at != nil
	if !p.begun {
		p.begun, p.timed = true, timed
	}
	switch {
	case p.timed && !timed:
		return 0, errors.New("it has no :time, though the operations before it have")
	case !p.timed && timed:
		return 0, errors.New("it has a :time, though the operations before it have none")
	case !timed:
		return p.count, nil
	}
	nanoseconds, ok := at.(int64)
	if !ok {
		return 0, fmt.Errorf("its :time is %v, which is no whole number of nanoseconds", at)
	}
	return time.Duration(nanoseconds), nil
}

func operation(fields map[any]any) (linear.Op, error) {
	f, ok := fields[edn.Keyword("f")].(edn.Keyword)
	if !ok {
		return 0, errors.New("it has no :f")
	}
	switch f {
	case "acquire", "lock":
		return linear.Acquire, nil
	case "try-acquire", "try-lock", "try":
		return linear.TryAcquire, nil
	case "release", "unlock":
		return linear.Release, nil
	case "extend":
		return linear.Extend, nil
	case "use":
		return linear.Use, nil
	}
	return 0, fmt.Errorf("no operation of a lock is called %s: there are :acquire, :try-acquire, :release, :extend and :use", f)
}

// said is what a :value tells.
type said struct {
	key     string
	hasKey  bool
	token   int64
	lease   time.Duration
	permits int
}

// valueOf reads a :value: nothing; a number, which is the fencing token; a name,
// which is the lock's; a map with any of :key, :token (or :fence), :lease and
// :permits; or a vector of a lock and one of these, as jepsen.independent has it.
func valueOf(v any) (said, error) {
	var s said
	pair, ok := v.([]any)
	if tag, isTag := v.(edn.Tag); isTag {
		pair, ok = tag.Value.([]any)
	}
	if ok {
		if len(pair) != 2 {
			return s, fmt.Errorf("its :value is a vector of %d; the lock and its value would be 2", len(pair))
		}
		inner, err := valueOf(pair[1])
		if err != nil {
			return s, err
		}
		if inner.hasKey {
			return s, errors.New("its :value names two locks")
		}
		if inner.key, ok = nameOf(pair[0]); !ok {
			return s, errors.New("its :value is a vector whose first is no name of a lock")
		}
		inner.hasKey = true
		return inner, nil
	}
	switch v := v.(type) {
	case nil:
	case int64:
		s.token = v
	case bool: // what the call returned
	case string, edn.Keyword, edn.Symbol:
		s.key, s.hasKey = nameOf(v)
	case map[any]any:
		return s.fields(v)
	default:
		return s, fmt.Errorf("its :value is %.40q, which says nothing of a lock", fmt.Sprint(v))
	}
	return s, nil
}

func (s said) fields(fields map[any]any) (said, error) {
	if v := fields[edn.Keyword("key")]; v != nil {
		if s.key, s.hasKey = nameOf(v); !s.hasKey {
			return s, errors.New("the :key in its :value is no name of a lock")
		}
	}
	for _, name := range []edn.Keyword{"token", "fence", "lease", "permits"} {
		v := fields[name]
		if v == nil {
			continue
		}
		n, ok := v.(int64)
		if !ok || name == "permits" && (n <= 0 || n > maxPermits) {
			return s, fmt.Errorf("the %s in its :value is %.40q, which is no number", name, fmt.Sprint(v))
		}
		switch name {
		case "lease":
			s.lease = time.Duration(n)
		case "permits":
			s.permits = int(n)
		default:
			s.token = n
		}
	}
	return s, nil
}

// nameOf returns the name that a value is.
func nameOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case edn.Keyword:
		return strings.TrimPrefix(string(v), ":"), true
	case edn.Symbol:
		return string(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	}
	return "", false
}
