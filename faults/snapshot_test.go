package faults_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

func TestInstant(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{
		0:                       0,
		249 * time.Microsecond:  0,
		250 * time.Microsecond:  time.Millisecond,
		677 * time.Microsecond:  time.Millisecond,
		1099 * time.Microsecond: time.Millisecond,
		30*time.Second + 5003:   30 * time.Second,
		30 * time.Second:        30 * time.Second,
	} {
		if got := faults.Instant(given); got != want {
			t.Errorf("the instant of %v is %v, want %v", given, got, want)
		}
	}
}

func TestUntimed(t *testing.T) {
	for given, want := range map[string]string{
		"": "",
		"asking the nodes took 33.210009002s of a lease of 30s": "asking the nodes took 0s of a lease of 0s",
		"waited 1m33.5s, then 1.5µs":                            "waited 0s, then 0s",
		"2 of 3 nodes, value 12ab, s3, 5 seconds":               "2 of 3 nodes, value 12ab, s3, 5 seconds",
	} {
		if got := faults.Untimed(given); got != want {
			t.Errorf("%q without durations is %q, want %q", given, got, want)
		}
	}
}

// TestDoubtfulValues checks the report on values that do not identify their sender, and on their
// meaning to clients that read them.
func TestDoubtfulValues(t *testing.T) {
	now := time.Now()
	date := now.Round(time.Millisecond).Sub(time.Unix(0, 0))
	for _, c := range []struct {
		acts []act
		want string // lines
	}{
		{[]act{{"A", "SET|lock|" + valueA + "|NX", held(valueA, 0)}}, ""},
		{[]act{{"A", "SET|lock|" + valueA + "|NX", held(valueA, 0)}, {"B", "GETSET|lock|" + valueA, held(valueA, 0)}},
			"A1 sent by [A B]; string [\"A1\"] is A true"},
		{[]act{{"A", "SET|lock|7|NX", held("7", 0)}}, "A1 sent by [A] 7; string [\"7\"] is A true"},
		{[]act{{"A", "SET|lock|yes|NX", held("yes", 0)}}, "A1 sent by [A]; string [\"yes\"] is A true"},
		{[]act{{"A", fmt.Sprintf("SET|lock|%s_%d|NX", valueA, now.UnixMilli()), held("", 0)}},
			fmt.Sprintf("A1 sent by [A] %v", time.UnixMilli(now.UnixMilli()).Sub(time.Unix(0, 0)))},
		{[]act{{"A", `SET|lock|{"owner":"9f86d081884c7d65","gen":3}|NX`, held("", 0)}}, "A1 sent by [A] 3"},
		{[]act{{"A", "SET|lock|" + valueA + ":2|NX", held("", 0)}}, "A1 sent by [A] 2"},
		{[]act{{"A", "SET|lock|uS+49/Zk1bXq2/12==|NX", held("", 0)}}, ""},
		{[]act{{"A", "SET|lock|550e8400-e29b-41d4-a716-446655440000|NX", held("", 0)}}, ""},
		{[]act{{"A", fmt.Sprintf("SET|lock|%s_%d|NX", valueA, now.UnixNano()), held("", 0)}}, fmt.Sprintf("A1 sent by [A] %v", date)},
	} {
		l := faults.NewAttributor(faults.SingleKeyLock("lock"))
		for _, a := range c.acts {
			words := strings.Split(a.words, "|")
			l.Command(a.who, words)
			if a.key.Words[0] != "" {
				l.Saw("n1", "n1/0", []faults.Key{a.key}, checker.ByCommand, a.who, words, time.Millisecond)
			}
		}
		if got := strings.Join(strings.Split(strings.TrimSpace(strings.ReplaceAll(l.Doubtful(), "\n\n", "\n")), "\n"), "; "); got != c.want {
			t.Errorf("%v: %q, want %q", c.acts, got, c.want)
		}
	}
}
