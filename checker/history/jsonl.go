package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/checker/linear"
)

// jsonLines parses the output of checker.Encode, and the same format with the fields that other
// programs may add. The first line may be the checker's Meta.
type jsonLines struct {
	names   names
	begun   bool
	counted bool            // the events are numbered
	index   int64           // of the last event
	gaveUp  map[string]bool // clients whose call was cancelled; mostly empty
	fields  []string        // the valid names of fields; nil until needed
	ends    bool            // report leases that end by the server's clock as events
	served  served
	event   jsonEvent // the current line; a field to avoid an allocation
}

func newJSONLines(ends bool) *jsonLines { return &jsonLines{ends: ends} }

// A jsonEvent holds the fields of a line that a lock history needs. The texts share memory with the
// line if scan decoded it.
type jsonEvent struct {
	index, time, call, token, until, permits int64
	hasIndex, hasTime, accepted, shared      bool
	kind, client, op, result, key            []byte
	node, server, owner, value, cause        []byte
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
	e := &p.event
	*e = jsonEvent{}
	if !scan(text, e) {
		// Escapes, or an error: encoding/json decides. Lines that scan accepts are clean.
		if err := clean(text); err != nil {
			return 0, err
		}
		if p.fields == nil {
			p.fields = jsonNames(reflect.TypeFor[jsonLine]())
		}
		*e = jsonEvent{}
		if err := decode(text, e, p.fields); err != nil {
			return 0, err
		}
	}
	if err := p.count(e); err != nil {
		return 0, err
	}
	return p.convert(e, &out[0])
}

// parseMeta reports whether the line is the first line of checker.Encode.
func parseMeta(text []byte) (bool, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil || fields["lockfault"] == nil {
		return false, nil // the error is reported when the line is read as an event
	}
	var version int
	if err := json.Unmarshal(fields["lockfault"], &version); err != nil {
		return true, badFile{errors.New("\"lockfault\", the version of the format, is no whole number")}
	}
	if version != checker.Format {
		return true, badFile{fmt.Errorf("history format %d; this program reads format %d", version, checker.Format)}
	}
	if err := exactly(text, jsonNames(reflect.TypeFor[checker.Meta]())); err != nil {
		return true, err
	}
	var meta checker.Meta
	return true, decodeStrictly(text, &meta)
}

// count checks that numbered events have consecutive numbers.
func (p *jsonLines) count(e *jsonEvent) error {
	switch {
	case !e.hasIndex && !p.counted:
		return nil
	case !e.hasIndex:
		return fmt.Errorf("it has no number \"i\", though the events before it have")
	case p.counted && e.index != p.index+1:
		// After a gap, counting continues from the new number; otherwise a lenient reader would
		// skip the rest.
		want := p.index + 1
		p.index = e.index
		return fmt.Errorf("event %d where event %d should be", e.index, want)
	}
	p.counted, p.index = true, e.index
	return nil
}

// convert makes a record of the line, and returns the number of records: 0 if the line is not about
// an operation.
func (p *jsonLines) convert(e *jsonEvent, r *record) (int, error) {
	if len(e.kind) == 0 {
		return 0, errors.New("it has no \"kind\"")
	}
	if !e.hasTime {
		return 0, errors.New("it has no time \"t\"")
	}
	phase := linear.Phase(0)
	switch string(e.kind) {
	case string(checker.Invoke):
		phase = linear.Invoke
	case string(checker.Return):
		switch string(e.result) {
		case string(checker.OK):
			phase = linear.ReturnOK
		case string(checker.Fail):
			phase = linear.ReturnFail
		case string(checker.Unknown):
			phase = linear.ReturnUnknown
		default:
			return 0, fmt.Errorf("there is no result %q: there are ok, fail and unknown", e.result)
		}
	case string(checker.Crash), string(checker.Restart):
		// A restarted client has lost its holds, too.
		*r = record{Event: linear.Event{Time: time.Duration(e.time), Client: p.names.of(e.client), Phase: linear.Crash}}
		return 1, nil
	case string(checker.Write):
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
	case string(checker.State):
		if p.ends {
			return p.served.state(e, &p.names, r)
		}
		return 0, nil
	case string(checker.Cancel):
		if p.gaveUp == nil {
			p.gaveUp = map[string]bool{}
		}
		p.gaveUp[p.names.of(e.client)] = true
		return 0, nil
	case string(checker.Lost), string(checker.Request), string(checker.Reply), string(checker.Push), string(checker.Held), string(checker.Passed),
		string(checker.Dropped), string(checker.Pause), string(checker.Resume), string(checker.Fault), string(checker.Measure),
		string(checker.Step), string(checker.End):
		return 0, nil
	default:
		return 0, fmt.Errorf("no kind of event is called %q", e.kind)
	}
	op := linear.Op(0)
	switch string(e.op) {
	case string(checker.Acquire):
		op = linear.Acquire
	case string(checker.TryAcquire):
		op = linear.TryAcquire
	case string(checker.Release):
		op = linear.Release
	case string(checker.Extend):
		op = linear.Extend
	default:
		return 0, fmt.Errorf("no operation is called %q: there are acquire, try, release and extend", e.op)
	}
	if len(p.gaveUp) > 0 {
		// A client that gave up did not learn that another client has the lock.
		client := p.names.of(e.client)
		if phase == linear.ReturnFail && op == linear.TryAcquire && p.gaveUp[client] {
			phase = linear.ReturnUnknown
		}
		delete(p.gaveUp, client)
	}
	if e.permits < 0 || e.permits > maxPermits {
		return 0, badPermits("permits", e.permits)
	}
	*r = record{Event: linear.Event{
		Time: time.Duration(e.time), Client: p.names.of(e.client), Key: p.key(e.key),
		Phase: phase, Op: op, Token: e.token, Permits: int(e.permits), Shared: e.shared,
	}, call: e.call}
	if phase == linear.ReturnOK && op != linear.Release {
		r.Lease = time.Duration(e.until)
	}
	return 1, nil
}

func (p *jsonLines) key(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	return p.names.of(text)
}

// maxPermits is the maximum number of permits of one operation, so that sums stay in range.
const maxPermits = linear.MaxPermits

// badPermits returns the error for an invalid number of permits.
func badPermits(name string, n any) error {
	return fmt.Errorf("invalid %s %v: must be a whole number from 1 to %d", name, n, maxPermits)
}
