package checker

import (
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                             "0.000s",
		time.Millisecond:              "0.001s",
		1499 * time.Microsecond:       "0.001s",
		1500 * time.Microsecond:       "0.002s",
		33002 * time.Millisecond:      "33.002s",
		time.Hour:                     "3600.000s",
		-1500 * time.Millisecond:      "-1.500s",
		59*time.Second + 999999999*1:  "60.000s",
		-time.Duration(1):             "0.000s",
		time.Duration(-1 << 63):       "-9223372036.854s",
		time.Duration(1<<63 - 1):      "9223372036.854s",
		2*time.Minute + 3*time.Second: "123.000s",
	} {
		if got := seconds(d).String(); got != want {
			t.Errorf("%d ns: got %s, want %s", d, got, want)
		}
	}
}

// A query that never finds anybody is worth a look if somebody has acquired, and is none's fault if nobody has.
func TestServersThatNeverSaid(t *testing.T) {
	const never = "Servers of postgres never said whose the lock is"
	for _, c := range []struct {
		query  string
		result Result
		want   string
	}{
		{"", OK, never + "."},
		{"SELECT owner,\n\t\t1 FROM rr", Fail, never + "."},
		{"SELECT owner,\n\t\t1 FROM rr", OK, never + `, though A acquired at 0.002s: see whether they are asked for the right thing, "SELECT owner, 1 FROM rr".`},
	} {
		h := History{
			Meta: Meta{Format: 1, Service: "postgres", Query: c.query, Clients: []string{"A"}, Nodes: []string{"n1"}, TTL: time.Second, Grace: time.Second, Bound: time.Second},
			Events: []Event{
				{Time: time.Millisecond, Kind: Invoke, Client: "A", Op: Acquire},
				{Index: 1, Time: 2 * time.Millisecond, Kind: Return, Client: "A", Op: Acquire, Result: c.result},
			},
		}
		if got := Check(h).Unjudged; got == nil || got.Message != c.want {
			t.Errorf("%q, %s: %v, want %s", c.query, c.result, got, c.want)
		}
	}
}
