package histories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/checker/linear"
)

// jsonLines parses what checker.Encode writes, and the same with the fields that
// histories of others may add. The first line may be the checker's Meta.
type jsonLines struct {
	names   names
	begun   bool
	counted bool            // the events are numbered
	index   int64           // of the last event
	gaveUp  map[string]bool // clients whose call was cancelled; mostly empty
}

func newJSONLines() *jsonLines { return &jsonLines{} }

// A jsonEvent is a line as it stands there; the texts that a history of a lock
// needs no copy of are missing.
type jsonEvent struct {
	index, time, call, token, until, permits int64
	hasIndex, hasTime, accepted              bool
	kind, client, op, result, key            []byte
}

func (p *jsonLines) parse(text []byte, line int, out *[2]record) (int, error) {
	if !p.begun {
		p.begun = true
		if err := clean(text); err != nil {
			return 0, err
		}
		if meta, err := parseMeta(text); meta || err != nil {
			return 0, err
		}
	}
	var e jsonEvent
	if !scan(text, &e) {
		// Escapes, letters beyond ASCII, spaces, and whatever is wrong: the
		// standard library knows better. What scan takes is clean.
		if err := clean(text); err != nil {
			return 0, err
		}
		e = jsonEvent{}
		if err := decode(text, &e); err != nil {
			return 0, err
		}
	}
	if err := p.count(&e); err != nil {
		return 0, err
	}
	return p.convert(&e, &out[0])
}

// parseMeta reports whether the line is the first line of checker.Encode.
func parseMeta(text []byte) (bool, error) {
	var version struct {
		Lockfault *int `json:"lockfault"`
	}
	if err := json.Unmarshal(text, &version); err != nil || version.Lockfault == nil {
		return false, nil // what is wrong with it is found out when it is read as an event
	}
	if *version.Lockfault != checker.Format {
		return true, badFile{fmt.Errorf("history format %d; this program reads format %d", *version.Lockfault, checker.Format)}
	}
	var meta checker.Meta
	return true, decodeStrictly(text, &meta)
}

// count checks that no event is missing and none is there twice, if they are
// numbered.
func (p *jsonLines) count(e *jsonEvent) error {
	switch {
	case !e.hasIndex && !p.counted:
		return nil
	case !e.hasIndex:
		return fmt.Errorf("it has no number \"i\", though the events before it have")
	case p.counted && e.index != p.index+1:
		// Behind a gap counting goes on, or a lenient reader would skip all
		// the rest.
		want := p.index + 1
		p.index = e.index
		return fmt.Errorf("event %d where event %d should be", e.index, want)
	}
	p.counted, p.index = true, e.index
	return nil
}

// convert makes a record of the line; none if it is not about an operation.
func (p *jsonLines) convert(e *jsonEvent, r *record) (int, error) {
	if len(e.kind) == 0 {
		return 0, errors.New("it has no \"kind\"")
	}
	if !e.hasTime {
		return 0, errors.New("it has no time \"t\"")
	}
	phase := linear.Phase(0)
	switch checker.Kind(e.kind) { // does not allocate
	case checker.Invoke:
		phase = linear.Invoke
	case checker.Return:
		switch checker.Result(e.result) {
		case checker.OK:
			phase = linear.ReturnOK
		case checker.Fail:
			phase = linear.ReturnFail
		case checker.Unknown:
			phase = linear.ReturnUnknown
		default:
			return 0, fmt.Errorf("there is no result %q: there are ok, fail and unknown", e.result)
		}
	case checker.Crash, checker.Restart:
		// Whoever restarts has forgotten what it held, too.
		*r = record{Event: linear.Event{Time: time.Duration(e.time), Client: p.names.of(e.client), Phase: linear.Crash}}
		return 1, nil
	case checker.Write:
		if e.token == 0 {
			return 0, nil
		}
		phase = linear.ReturnFail
		if e.accepted {
			phase = linear.ReturnOK
		}
		*r = record{Event: linear.Event{
			Time: time.Duration(e.time), Client: p.names.of(e.client), Key: p.key(e.key),
			Phase: phase, Op: linear.Use, Token: e.token,
		}}
		return 1, nil
	case checker.Cancel:
		if p.gaveUp == nil {
			p.gaveUp = map[string]bool{}
		}
		p.gaveUp[p.names.of(e.client)] = true
		return 0, nil
	case checker.Lost, checker.Request, checker.Reply, checker.Push, checker.Held, checker.Passed, checker.Dropped,
		checker.State, checker.Pause, checker.Resume, checker.Fault, checker.Measure, checker.Step, checker.End:
		return 0, nil
	default:
		return 0, fmt.Errorf("no kind of event is called %q", e.kind)
	}
	op := linear.Op(0)
	switch checker.Op(e.op) {
	case checker.Acquire:
		op = linear.Acquire
	case checker.TryAcquire:
		op = linear.TryAcquire
	case checker.Release:
		op = linear.Release
	case checker.Extend:
		op = linear.Extend
	default:
		return 0, fmt.Errorf("no operation is called %q: there are acquire, try, release and extend", e.op)
	}
	if len(p.gaveUp) > 0 {
		// Whoever gave up was not told that somebody has the lock.
		client := p.names.of(e.client)
		if phase == linear.ReturnFail && op == linear.TryAcquire && p.gaveUp[client] {
			phase = linear.ReturnUnknown
		}
		delete(p.gaveUp, client)
	}
	if e.permits < 0 || e.permits > maxPermits {
		return 0, fmt.Errorf("%d permits", e.permits)
	}
	*r = record{Event: linear.Event{
		Time: time.Duration(e.time), Client: p.names.of(e.client), Key: p.key(e.key),
		Phase: phase, Op: op, Token: e.token, Permits: int(e.permits),
	}, call: e.call}
	if phase == linear.ReturnOK && op != linear.Release {
		r.Lease = time.Duration(e.until)
	}
	return 1, nil
}

// maxPermits bounds the permits of one operation, so that sums stay in range.
const maxPermits = 1 << 30

func (p *jsonLines) key(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	return p.names.of(text)
}

// decode reads a line with the standard library.
func decode(text []byte, e *jsonEvent) error {
	// Index and Time are pointers to tell 0 from nothing; the outer fields
	// take precedence over those of the checker's event.
	var v struct {
		checker.Event
		Index   *int64         `json:"i"`
		Time    *time.Duration `json:"t"`
		Key     string         `json:"key"`
		Permits int64          `json:"permits"`
	}
	if err := decodeStrictly(text, &v); err != nil {
		return err
	}
	if v.Index != nil {
		e.index, e.hasIndex = *v.Index, true
	}
	if v.Time != nil {
		e.time, e.hasTime = int64(*v.Time), true
	}
	e.kind, e.client, e.op, e.result, e.key = []byte(v.Kind), []byte(v.Client), []byte(v.Op), []byte(v.Result), []byte(v.Key)
	e.call, e.token, e.until, e.permits, e.accepted = int64(v.Call), v.Token, int64(v.Until), v.Permits, v.Accepted
	return nil
}

// decodeStrictly reads one JSON object that has no other fields than v.
func decodeStrictly(text []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) && kind.Field == "" {
			return fmt.Errorf("it is a JSON %s, not an object", kind.Value)
		}
		if kind != nil {
			return fmt.Errorf("%q can't be a JSON %s", kind.Field, kind.Value)
		}
		return reason(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one object on the line")
	}
	return nil
}
