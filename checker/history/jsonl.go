package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/checker/linear"
	"github.com/lockfault/lockfault/internal/jsonscan"
)

// jsonLines parses the output of checker.Encode, and the same format with the fields that other
// programs may add. The first line may be the checker's Meta.
type jsonLines struct {
	names   names
	begun   bool
	counted bool            // the events are numbered
	index   int             // of the last event
	gaveUp  map[string]bool // clients whose call was cancelled; mostly empty
	ends    bool            // report leases that end by the server's clock as events
	served  served
	event   jsonLine // the current line; a field to avoid an allocation
}

func newJSONLines(ends bool) *jsonLines { return &jsonLines{ends: ends} }

// A jsonLine is a line: an event, and the fields that other programs may add.
type jsonLine struct {
	checker.Event
	Key     string `json:"key"`
	Permits int64  `json:"permits"`
	Shared  bool   `json:"shared"`
}

// The values of Index and Time in a line without them.
const (
	noIndex = math.MinInt
	noTime  = time.Duration(math.MinInt64)
)

func (e *jsonLine) reset() { *e = jsonLine{Event: checker.Event{Index: noIndex, Time: noTime}} }

var jsonFormat = jsonscan.LinesOf[jsonLine]()

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
	if e.reset(); !jsonFormat.Read(text, e, p.names.of) {
		// A rare construct, or an error: encoding/json decides. Other lines are clean.
		if err := clean(text); err != nil {
			return 0, err
		}
		e.reset()
		if err := decode(text, e); err != nil {
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
	if err := exactly(text, jsonscan.LinesOf[checker.Meta]().Names()); err != nil {
		return true, err
	}
	var meta checker.Meta
	return true, decodeStrictly(text, &meta)
}

// count checks that numbered events have consecutive numbers.
func (p *jsonLines) count(e *jsonLine) error {
	switch {
	case e.Index == noIndex && !p.counted:
		return nil
	case e.Index == noIndex:
		return fmt.Errorf("it has no number \"i\", though the events before it have")
	case p.counted && e.Index != p.index+1:
		// After a gap, counting continues from the new number; otherwise a lenient reader would
		// skip the rest.
		want := p.index + 1
		p.index = e.Index
		return fmt.Errorf("event %d where event %d should be", e.Index, want)
	}
	p.counted, p.index = true, e.Index
	return nil
}

// convert makes a record of the line, and returns the number of records: 0 if the line is not about
// an operation.
func (p *jsonLines) convert(e *jsonLine, r *record) (int, error) {
	if e.Kind == "" {
		return 0, errors.New("it has no \"kind\"")
	}
	if e.Time == noTime {
		return 0, errors.New("it has no time \"t\"")
	}
	phase := linear.Phase(0)
	switch e.Kind {
	case checker.Invoke:
		phase = linear.Invoke
	case checker.Return:
		var ok bool
		if phase, ok = results[string(e.Result)]; !ok || phase == linear.Invoke {
			return 0, fmt.Errorf("unknown result %q: it must be ok, fail or unknown", e.Result)
		}
	case checker.Crash, checker.Restart:
		// A restarted client has lost its holds, too.
		*r = record{Event: linear.Event{Time: e.Time, Client: e.Client, Phase: linear.Crash}}
		return 1, nil
	case checker.Write:
		if e.Token == 0 {
			return 0, nil
		}
		phase = linear.ReturnFail
		if e.Accepted {
			phase = linear.ReturnOK
		}
		*r = record{Event: linear.Event{
			Time: e.Time, Client: e.Client, Key: e.Key,
			Phase: phase, Op: linear.Use, Token: e.Token,
		}}
		return 1, nil
	case checker.State:
		if p.ends {
			return p.served.state(e, r)
		}
		return 0, nil
	case checker.Cancel:
		if p.gaveUp == nil {
			p.gaveUp = map[string]bool{}
		}
		p.gaveUp[e.Client] = true
		return 0, nil
	case checker.Lost, checker.Request, checker.Reply, checker.Push, checker.Held, checker.Passed,
		checker.Dropped, checker.Pause, checker.Resume, checker.Fault, checker.Measure,
		checker.Step, checker.End:
		return 0, nil
	default:
		return 0, fmt.Errorf("no kind of event is called %q", e.Kind)
	}
	op, ok := operations[string(e.Op)]
	if !ok || op == linear.Use {
		return 0, fmt.Errorf("no operation is called %q: there are acquire, try, release and extend", e.Op)
	}
	if len(p.gaveUp) > 0 {
		// A client that gave up did not learn that another client has the lock.
		client := e.Client
		if phase == linear.ReturnFail && op == linear.TryAcquire && p.gaveUp[client] {
			phase = linear.ReturnUnknown
		}
		delete(p.gaveUp, client)
	}
	if e.Permits < 0 || e.Permits > maxPermits {
		return 0, badPermits("permits", e.Permits)
	}
	*r = record{Event: linear.Event{
		Time: e.Time, Client: e.Client, Key: e.Key,
		Phase: phase, Op: op, Token: e.Token, Permits: int(e.Permits), Shared: e.Shared,
	}, call: int64(e.Call)}
	if phase == linear.ReturnOK && op != linear.Release {
		r.Lease = e.Until
	}
	return 1, nil
}

// maxPermits is the maximum number of permits of one operation, so that sums stay in range.
const maxPermits = linear.MaxPermits

// badPermits returns the error for an invalid number of permits.
func badPermits(name string, n any) error {
	return fmt.Errorf("invalid %s %v: must be a whole number from 1 to %d", name, n, maxPermits)
}
