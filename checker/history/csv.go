package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker/linear"
	"github.com/lockfault/lockfault/internal/suggest"
)

// A table parses CSV, one line at a time.
type table struct {
	columns   []string // their names, in order
	separator byte
	split     splitFields
	names     names
	clock     clock
}

// columns returns the valid names of columns. The first four are mandatory.
func columns() []string {
	return []string{"time", "client", "event", "result", "key", "token", "lease", "permits", "shared"}
}

// newTable reads the first line, which names the columns.
func newTable(l *lines, unit TimeUnit) (*table, error) {
	text, _, err := l.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the history is empty")
	case err != nil:
		var bad badLine
		if errors.As(err, &bad) {
			err = bad.error
		}
		return nil, err
	}
	t := &table{separator: separatorOf(text), clock: clock{asked: unit}}
	fields, err := t.fields(text)
	if err != nil {
		return nil, err
	}
	for i, field := range fields {
		name := strings.ToLower(string(bytes.TrimSpace(field)))
		switch {
		case slices.Contains(t.columns, name):
			return nil, fmt.Errorf("two columns are called %q", name)
		case slices.Contains(columns(), name):
			t.columns = append(t.columns, name)
		case name == "" && i == len(fields)-1 && i > 0:
			return nil, fmt.Errorf("the first line ends with a %s, so its last column has no name: remove the %[1]s at the end of each line", separatorName(t.separator))
		default:
			return nil, t.noColumn(name)
		}
	}
	for _, name := range columns()[:4] {
		if !slices.Contains(t.columns, name) {
			return nil, fmt.Errorf("there is no column %q: the first line must name the columns, time,client,event,result and those that are there of key,token,lease,permits,shared", name)
		}
	}
	return t, nil
}

// noColumn returns the error for an invalid name of a column in the first line.
func (t *table) noColumn(name string) error {
	for _, other := range separators() {
		if other != t.separator && strings.IndexByte(name, other) >= 0 {
			return fmt.Errorf("some columns are separated by a %s and some by a %s: write a %[1]s between all, on each line", separatorName(t.separator), separatorName(other))
		}
	}
	if meant, ok := suggest.Of(name, columns()); ok {
		return fmt.Errorf("there is no column %q, did you mean %q?", name, meant)
	}
	return fmt.Errorf("there is no column %q: there are %s", name, strings.Join(columns(), ", "))
}

// fields splits a line into fields, which are valid until the next call.
func (t *table) fields(text []byte) ([][]byte, error) {
	if err := clean(text); err != nil {
		return nil, err
	}
	return t.split.of(text, t.separator)
}

func (t *table) parse(text []byte, line int, out *[2]record) (int, error) {
	fields, err := t.fields(text)
	if err != nil {
		return 0, err
	}
	if len(fields) != len(t.columns) {
		return 0, t.misfit(fields)
	}
	e := linear.Event{}
	var event, result, at, lease []byte
	for i, name := range t.columns {
		field := trim(fields[i])
		if len(field) == 0 {
			continue
		}
		switch name {
		case "time":
			at = field
		case "client":
			e.Client = t.names.of(field)
		case "event":
			event = field
		case "result":
			result = field
		case "key":
			e.Key = t.names.of(field)
		case "token":
			var ok bool
			if e.Token, ok = wholeNumber(field); !ok || e.Token <= 0 {
				return 0, fmt.Errorf("%.40q is no fencing token: it must be a positive whole number", field)
			}
		case "permits":
			n, ok := wholeNumber(field)
			if !ok || n <= 0 || n > maxPermits {
				return 0, badPermits("permits", fmt.Sprintf("%.40q", field))
			}
			e.Permits = int(n)
		case "lease":
			lease = field
		case "shared":
			switch string(field) {
			case "true":
				e.Shared = true
			case "false":
			default:
				return 0, fmt.Errorf("%.40q does not say whether it is about reading: true or false would", field)
			}
		}
	}
	if e.Time, err = t.clock.time(at, line); err != nil {
		return 0, err
	}
	if len(lease) > 0 {
		if e.Lease, err = t.clock.lease(lease, line); err != nil {
			return 0, err
		}
	}
	out[0].Event, out[0].call = e, 0
	n, err := parseEventColumns(event, result, &out[0].Event)
	if n == 2 { // a completed operation: an invocation without a token or lease, and its return
		out[1].Event, out[1].call = out[0].Event, 0
		out[0].Phase, out[0].Token, out[0].Lease = linear.Invoke, 0, 0
	}
	return n, err
}

// misfit returns the error for a line with more or fewer fields than columns.
func (t *table) misfit(fields [][]byte) error {
	what := fmt.Sprintf("the line has %d fields, but there are %d columns", len(fields), len(t.columns))
	if len(fields) == 1 {
		what = fmt.Sprintf("the line has one field, but there are %d columns", len(t.columns))
	}
	last := fields[len(fields)-1]
	switch {
	case len(fields) == len(t.columns)+1 && len(trim(last)) == 0:
		return fmt.Errorf("%s: remove the %s at its end", what, separatorName(t.separator))
	case len(fields) > len(t.columns):
		return fmt.Errorf("%s: put a field that has a %s in it into quotes", what, separatorName(t.separator))
	}
	for _, other := range separators() {
		if other != t.separator && len(fields) == 1 && bytes.IndexByte(last, other) >= 0 {
			return fmt.Errorf("%s: write a %s where it has a %s, as the first line does", what, separatorName(t.separator), separatorName(other))
		}
	}
	return fmt.Errorf("%s: leave a field that says nothing empty, but keep its %s", what, separatorName(t.separator))
}

// parseEventColumns sets the phase and the operation, and returns the number of events: 2 for a
// completed operation, which stands for an invocation and its return.
func parseEventColumns(event, result []byte, e *linear.Event) (int, error) {
	ok := false
	if e.Op, ok = operations[string(event)]; !ok { // does not allocate
		return parseMoment(event, result, e)
	}
	if e.Phase, ok = results[string(result)]; !ok {
		return 0, noWord("result", result, "call", "ok", "fail", "unknown")
	}
	switch {
	case e.Op == linear.Use && e.Phase == linear.Invoke:
		return 0, errors.New("a use has no call: its result is ok or fail")
	case e.Op == linear.Use && e.Phase == linear.ReturnUnknown:
		return 0, errors.New("the resource accepted a use or did not: its result is ok or fail")
	}
	return 1, nil
}

// parseMoment is the part of parseEventColumns for events that are not operations.
func parseMoment(event, result []byte, e *linear.Event) (int, error) {
	switch string(event) {
	case "expired":
		if len(result) > 0 {
			return 0, fmt.Errorf("the end of a lease has no result, but here is %.40q", result)
		}
		*e = linear.Event{Time: e.Time, Client: e.Client, Key: e.Key, Phase: linear.Expired}
		return 1, nil
	case "crash":
		if len(result) > 0 {
			return 0, fmt.Errorf("a crash has no result, but here is %.40q", result)
		}
		*e = linear.Event{Time: e.Time, Client: e.Client, Phase: linear.Crash}
		return 1, nil
	}
	op, ok := completed[string(event)]
	switch {
	case !ok:
		return 0, noWord("event", event, "acquire", "try", "release", "extend", "use", "crash", "expired", "acquired", "released", "extended")
	case len(result) > 0 && string(result) != "ok":
		return 0, fmt.Errorf("what has %s is ok, not %.40q: write the operation, not what it did, to give it a result", event, result)
	}
	e.Op, e.Phase = op, linear.ReturnOK
	return 2, nil
}

// noWord returns the error for an invalid word in a column.
func noWord(column string, word []byte, known ...string) error {
	if meant, ok := suggest.Of(string(word), known); ok {
		return fmt.Errorf("there is no %s %.40q, did you mean %q?", column, word, meant)
	}
	return fmt.Errorf("there is no %s %.40q: there are %s", column, word, strings.Join(known, ", "))
}
