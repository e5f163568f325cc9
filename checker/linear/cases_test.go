package linear

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A caseOf is a history of testdata/cases and what is to be said of it. A file
// has several, with an empty line between:
//
//	why: one line
//	spec: mutex, reentrant N, lease believed, lease known, lease not-known, lease by-server, fenced, multi, semaphore N, mutex-tokens or read-write
//	strict: yes
//	skew: 10ms
//	unit: 1ms; what the times count, 1s unless told
//	history: as in notation_test.go, with decimals; it may go on in further lines that begin with a blank
//	verdict: valid or invalid
//	certain: yes or no; whether a violation is certain (not told if it does not matter)
//	violation: overlap A,B 3..10; with Options.All these and no others, if any is told
//	wrong: yes; the code says otherwise so far, and whoever mends that takes this line away
type caseOf struct {
	at, why    string
	spec       naiveSpec
	strict     bool
	skew, unit time.Duration
	history    string
	verdict    Verdict
	certain    string
	violations []string
	wrong      bool
}

func readCases(t *testing.T) []caseOf {
	files, err := filepath.Glob("testdata/cases/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	var cases []caseOf
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, field := caseOf{}, ""
		end := func() {
			if c.at != "" {
				cases = append(cases, c)
			}
			c = caseOf{}
		}
		for i, line := range strings.Split(string(data), "\n") {
			at := fmt.Sprintf("%s:%d", filepath.Base(file), i+1)
			if strings.TrimSpace(line) == "" {
				end()
				continue
			}
			if c.at == "" {
				c.at, c.unit = at, time.Second
			}
			value := strings.TrimSpace(line)
			if line[0] != ' ' {
				var ok bool
				if field, value, ok = strings.Cut(line, ": "); !ok {
					t.Fatalf("%s: no field: %s", at, line)
				}
			}
			if err := c.set(field, value); err != nil {
				t.Fatalf("%s: %v", at, err)
			}
		}
		end()
	}
	return cases
}

func (c *caseOf) set(field, value string) (err error) {
	switch field {
	case "why":
		c.why += value
	case "spec":
		c.spec, err = specNamed(value)
	case "strict":
		c.strict = value == "yes"
	case "skew":
		c.skew, err = time.ParseDuration(value)
	case "unit":
		c.unit, err = time.ParseDuration(value)
	case "history":
		c.history += " " + value
	case "verdict":
		c.verdict = Verdict(value)
	case "certain":
		c.certain = value
	case "violation":
		c.violations = append(c.violations, value)
	case "wrong":
		c.wrong = value == "yes"
	default:
		err = fmt.Errorf("unknown field %q", field)
	}
	return err
}

func specNamed(name string) (naiveSpec, error) {
	word, rest, _ := strings.Cut(name, " ")
	n, _ := strconv.Atoi(rest)
	e, lease := map[string]Expiry{"believed": Believed, "known": Known, "not-known": NotKnown}[rest]
	switch {
	case name == "lease by-server":
		return naiveSpec{kind: naiveServed}, nil
	case word == "lease" && lease:
		return naiveSpec{kind: naiveLease, expiry: e}, nil
	case word == "reentrant":
		return naiveSpec{kind: naiveReentrant, limit: n}, nil
	case word == "semaphore" && n > 0:
		return naiveSpec{kind: naiveSemaphore, limit: n}, nil
	}
	for _, k := range []naiveKind{naiveMutex, naiveFenced, naiveMulti, naiveMutexTokens, naiveReadWrite} {
		if s := (naiveSpec{kind: k}); s.String() == name {
			return s, nil
		}
	}
	return naiveSpec{}, fmt.Errorf("unknown spec %q", name)
}

// events reads the history, as parse does, with decimals.
func (c *caseOf) events(t *testing.T) []Event {
	at := func(s string) time.Duration {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatalf("%s: %v", c.at, err)
		}
		return time.Duration(f * float64(c.unit))
	}
	var events []Event
	for i, line := range strings.Split(strings.TrimSuffix(strings.TrimSpace(c.history), ";"), ";") {
		f := strings.Fields(line)
		words := []string{"0"} // the time is not a whole number, perhaps
		var lease time.Duration
		for _, w := range f[1:] {
			if l, ok := strings.CutPrefix(w, "lease="); ok {
				lease = at(l)
			} else {
				words = append(words, w)
			}
		}
		e := parse(t, strings.Join(words, " "))[0]
		if e.Phase == 0 || e.Op == 0 && e.Phase != Crash && e.Phase != Expired {
			t.Fatalf("%s: not an event: %s", c.at, line)
		}
		e.Time, e.Lease, e.Line = at(f[0]), lease, i+1
		events = append(events, e)
	}
	return events
}

// whose returns the clients that a violation names.
func whose(v Violation) []string {
	clients := slices.Clone(v.Clients)
	if len(clients) == 0 {
		for _, e := range v.Events {
			clients = append(clients, e.Client)
		}
	}
	slices.Sort(clients)
	return slices.Compact(clients)
}

func (c *caseOf) briefly(v Violation) string {
	s := string(v.Rule) + " " + strings.Join(whose(v), ",")
	if v.Rule == Overlap {
		in := func(d time.Duration) string {
			return strconv.FormatFloat(float64(d)/float64(c.unit), 'f', -1, 64)
		}
		s += " " + in(v.From) + ".." + in(v.To)
	}
	return s
}

// TestCases plays testdata/cases: what was judged wrongly once, and what is
// easily judged wrongly.
func TestCases(t *testing.T) {
	for _, c := range readCases(t) {
		t.Run(c.at, func(t *testing.T) {
			events := c.events(t)
			plain := naively(events)
			if legal := naiveLegal(c.spec, plain, c.strict); legal != (c.verdict == Valid) {
				t.Errorf("the oracle says legal: %v (%s)", legal, c.why)
			}
			if c.certain != "" {
				if certain := !naiveShifts(c.spec, plain, c.strict, int64(c.skew)); certain != (c.certain == "yes") {
					t.Errorf("the oracle says certain: %v (%s)", certain, c.why)
				}
			}
			if legal, lost := judge(c.spec, c.strict, events); lost || legal != (c.verdict == Valid) {
				t.Errorf("a descent says legal: %v, lost: %v (%s)", legal, lost, c.why)
			}
			amiss := c.judge(events)
			switch {
			case c.wrong && len(amiss) == 0:
				t.Error(`it is right now: take the line "wrong: yes" away`)
			case !c.wrong && len(amiss) > 0:
				t.Error(strings.Join(amiss, "; "))
			}
		})
	}
}

// judge says in what Check differs from the case.
func (c *caseOf) judge(events []Event) (amiss []string) {
	r := Check(specOf(c.spec), events, Options{Strict: c.strict, Skew: c.skew})
	want := c.verdict
	if c.certain == "no" {
		want = Unknown
	}
	if r.Verdict != want {
		amiss = append(amiss, fmt.Sprintf("it is %s (%s), want %s", r.Verdict, r.Reason, want))
	}
	certain := slices.ContainsFunc(r.Violations, func(v Violation) bool { return v.Certain })
	if c.certain != "" && certain != (c.certain == "yes") {
		amiss = append(amiss, fmt.Sprintf("certain is %v", certain))
	}
	all := Check(specOf(c.spec), events, Options{Strict: c.strict, Skew: c.skew, All: true})
	var got []string
	for _, v := range all.Violations {
		got = append(got, c.briefly(v))
	}
	if len(c.violations) > 0 && !slices.Equal(got, c.violations) {
		amiss = append(amiss, fmt.Sprintf("violations %q, want %q", got, c.violations))
	}
	return append(amiss, insane(all)...)
}

// insane says what no list of violations may have.
func insane(r Result) (amiss []string) {
	said := map[string]bool{}
	for _, v := range r.Violations {
		same := fmt.Sprint(v.Rule, v.Key, v.Events, v.Clients, v.From, v.To)
		if said[same] {
			amiss = append(amiss, "told twice: "+v.Message)
		}
		said[same] = true
		if clients := slices.Sorted(slices.Values(v.Clients)); len(slices.Compact(clients)) != len(v.Clients) {
			amiss = append(amiss, fmt.Sprintf("a client is named twice: %q: %s", v.Clients, v.Message))
		}
		if v.Rule == Overlap && v.From > v.To {
			amiss = append(amiss, fmt.Sprintf("an overlap from %v to %v", v.From, v.To))
		}
	}
	return amiss
}
