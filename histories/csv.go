package histories

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker/linear"
	"github.com/lockfault/lockfault/internal/nearest"
)

// A table parses CSV. Its lines are cut before, so a field can't go on over a
// line's end: names of clients and locks have no use for it, and a quote that is
// missing then costs one line, not the rest of the file.
type table struct {
	feed    *feed
	csv     *csv.Reader
	columns []string // their names, in order
	names   names
	clock   clock
}

// columns are the names that a column may have.
func columns() []string {
	return []string{"time", "client", "event", "result", "key", "token", "lease", "permits"}
}

// newTable reads the line that names the columns.
func newTable(l *lines) (*table, error) {
	text, _, err := l.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the history is empty")
	case err != nil:
		return nil, errors.Unwrap(err)
	}
	f := &feed{}
	t := &table{feed: f, csv: csv.NewReader(f)}
	t.csv.FieldsPerRecord = -1
	fields, err := t.fields(text)
	if err != nil {
		return nil, err
	}
	for _, field := range fields {
		name := strings.ToLower(strings.TrimSpace(field))
		if !slices.Contains(columns(), name) {
			if meant, ok := nearest.Of(name, columns()); ok {
				return nil, fmt.Errorf("there is no column %q, did you mean %q?", name, meant)
			}
			return nil, fmt.Errorf("there is no column %q: there are %s", name, strings.Join(columns(), ", "))
		}
		if slices.Contains(t.columns, name) {
			return nil, fmt.Errorf("two columns are called %q", name)
		}
		t.columns = append(t.columns, name)
	}
	for _, name := range columns()[:4] {
		if !slices.Contains(t.columns, name) {
			return nil, fmt.Errorf("there is no column %q: the first line must name the columns, time,client,event,result and those that are there of key,token,lease,permits", name)
		}
	}
	t.csv.ReuseRecord = true
	return t, nil
}

// fields splits a line. The strings share memory with each other.
func (t *table) fields(text []byte) ([]string, error) {
	if err := clean(text); err != nil {
		return nil, err
	}
	t.feed.set(text)
	fields, err := t.csv.Read()
	if err != nil {
		var syntax *csv.ParseError
		if errors.As(err, &syntax) {
			return nil, syntax.Err
		}
		return nil, err
	}
	return fields, nil
}

func (t *table) parse(text []byte, line int, out *[2]record) (int, error) {
	fields, err := t.fields(text)
	if err != nil {
		return 0, err
	}
	if len(fields) != len(t.columns) {
		return 0, fmt.Errorf("the line has %d fields, but there are %d columns", len(fields), len(t.columns))
	}
	var e linear.Event
	var event, result, at, lease string
	for i, name := range t.columns {
		field := strings.TrimSpace(fields[i])
		switch name {
		case "time":
			at = field
		case "client":
			e.Client = t.names.of([]byte(field))
		case "event":
			event = field
		case "result":
			result = field
		case "key":
			if field != "" {
				e.Key = t.names.of([]byte(field))
			}
		case "token":
			if field == "" {
				continue
			}
			if e.Token, err = strconv.ParseInt(field, 10, 64); err != nil || e.Token <= 0 {
				return 0, fmt.Errorf("%q is no fencing token: it must be a positive whole number", field)
			}
		case "permits":
			if field == "" {
				continue
			}
			if e.Permits, err = strconv.Atoi(field); err != nil || e.Permits <= 0 || e.Permits > maxPermits {
				return 0, fmt.Errorf("%q is no number of permits: it must be a positive whole number", field)
			}
		case "lease":
			lease = field
		}
	}
	if e.Time, err = t.clock.read(at); err != nil {
		return 0, err
	}
	if lease != "" {
		if e.Lease, err = t.clock.read(lease); err != nil {
			return 0, err
		}
	}
	out[0], out[1] = record{Event: e}, record{Event: e}
	return happened(event, result, &out[0].Event, &out[1].Event)
}

// happened fills in phase and operation: of one event, or of two for a moment
// that stands for a call and its return.
func happened(event, result string, e, second *linear.Event) (int, error) {
	moment := func(op linear.Op) (int, error) {
		if result != "" && result != "ok" {
			return 0, fmt.Errorf("what has %s is ok, not %q: write the operation, not what it did, to give it a result", event, result)
		}
		e.Op, e.Phase = op, linear.Invoke
		second.Op, second.Phase = op, linear.ReturnOK
		e.Token, e.Lease = 0, 0
		return 2, nil
	}
	switch event {
	case "acquire":
		e.Op = linear.Acquire
	case "try":
		e.Op = linear.TryAcquire
	case "release":
		e.Op = linear.Release
	case "extend":
		e.Op = linear.Extend
	case "use":
		e.Op = linear.Use
	case "acquired":
		return moment(linear.Acquire)
	case "released":
		return moment(linear.Release)
	case "extended":
		return moment(linear.Extend)
	case "crash":
		if result != "" {
			return 0, fmt.Errorf("a crash has no result, but here is %q", result)
		}
		*e = linear.Event{Time: e.Time, Client: e.Client, Phase: linear.Crash}
		return 1, nil
	default:
		known := []string{"acquire", "try", "release", "extend", "use", "crash", "acquired", "released", "extended"}
		if meant, ok := nearest.Of(event, known); ok {
			return 0, fmt.Errorf("there is no event %q, did you mean %q?", event, meant)
		}
		return 0, fmt.Errorf("there is no event %q: there are %s", event, strings.Join(known, ", "))
	}
	switch result {
	case "call":
		if e.Op == linear.Use {
			return 0, errors.New("a use has no call: its result is ok or fail")
		}
		e.Phase = linear.Invoke
	case "ok":
		e.Phase = linear.ReturnOK
	case "fail":
		e.Phase = linear.ReturnFail
	case "unknown":
		if e.Op == linear.Use {
			return 0, errors.New("the resource accepted a use or did not: its result is ok or fail")
		}
		e.Phase = linear.ReturnUnknown
	default:
		known := []string{"call", "ok", "fail", "unknown"}
		if meant, ok := nearest.Of(result, known); ok {
			return 0, fmt.Errorf("there is no result %q, did you mean %q?", result, meant)
		}
		return 0, fmt.Errorf("there is no result %q: there are %s", result, strings.Join(known, ", "))
	}
	return 1, nil
}

// A clock reads times. All in one file are written in the same way, which the
// first shows: 10 could be nanoseconds or seconds. The zero value has seen none.
type clock struct {
	notation notation
	start    time.Time // of dates: the first
}

type notation string

const (
	nanoseconds notation = "whole nanoseconds"
	inSeconds   notation = "seconds with a decimal point"
	dates       notation = "dates of RFC 3339"
	lengths     notation = "durations such as 1.5s"
)

func notationOf(text string) notation {
	if whole(text) {
		return nanoseconds
	}
	if _, err := time.ParseDuration(text); err == nil {
		return lengths
	}
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		return dates
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return inSeconds
	}
	return ""
}

// whole reports whether the text is a whole number of decimal digits.
func whole(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return digits != ""
}

// read returns a time as a length since 0, or since the first if they are dates.
func (c *clock) read(text string) (time.Duration, error) {
	switch c.notation {
	case nanoseconds:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return time.Duration(n), nil
		}
	case inSeconds:
		if d, ok := seconds(text); ok {
			return d, nil
		}
	case lengths:
		if d, err := time.ParseDuration(text); err == nil {
			return d, nil
		}
	case dates:
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return at.Sub(c.start), nil // saturates, and what does is refused as too far
		}
	default:
		if text == "0" { // in whatever it is written
			return 0, nil
		}
		kind := notationOf(text)
		if kind == "" {
			return 0, fmt.Errorf("%q is no time: write %s, %s, %s or %s", text, nanoseconds, inSeconds, dates, lengths)
		}
		first := clock{notation: kind}
		if kind == dates {
			first.start, _ = time.Parse(time.RFC3339, text) // notationOf parsed it
		}
		d, err := first.read(text)
		if err == nil {
			*c = first
		}
		return d, err
	}
	return 0, fmt.Errorf("%q is no time; the times of this file are %s", text, c.notation)
}

// seconds reads a decimal number of seconds: exactly, as far as nanoseconds go,
// unless it has an exponent. A floating point number could not hold the
// nanoseconds of a date.
func seconds(text string) (time.Duration, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	before, after, _ := strings.Cut(digits, ".")
	if before == "" {
		before = "0"
	}
	if whole(before) && before[0] != '-' && (after == "" || whole(after) && after[0] != '-') {
		if len(after) > 9 {
			after = after[:9]
		}
		n, err := strconv.ParseInt(before+after+strings.Repeat("0", 9-len(after)), 10, 64)
		if err != nil {
			return 0, false
		}
		if negative {
			n = -n
		}
		return time.Duration(n), true
	}
	f, err := strconv.ParseFloat(text, 64)
	if f *= 1e9; err != nil || math.IsNaN(f) || math.Abs(f) > float64(farthest) {
		return 0, false
	}
	return time.Duration(math.Round(f)), true
}

// A feed hands one line at a time to a csv.Reader.
type feed struct {
	line []byte
	read int
}

func (f *feed) set(line []byte) {
	f.line, f.read = append(append(f.line[:0], line...), '\n'), 0
}

func (f *feed) Read(p []byte) (int, error) {
	if f.read == len(f.line) {
		return 0, io.EOF
	}
	n := copy(p, f.line[f.read:])
	f.read += n
	return n, nil
}
