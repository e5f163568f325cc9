package faults_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// TestDid checks the effect of a command. The effect follows from the owner before and after or, if
// the owner is unknown, from the existence of the key.
func TestDid(t *testing.T) {
	const s = time.Second
	text := func(value string) faults.Key {
		return faults.Key{Type: "string", Words: []string{value}, Expires: 30 * s}
	}
	free := faults.Key{}
	for _, c := range []struct {
		name string
		acts []act
		want string
	}{
		{"take, extend, free", []act{
			{"A", "SET|lock|A-value-1|NX", text("A-value-1")},
			{"A", "PEXPIRE|lock|60000", faults.Key{Type: "string", Words: []string{"A-value-1"}, Expires: 60 * s}},
			{"A", "DEL|lock", free},
		}, "taking - freeing"},
		{"another frees it", []act{{"A", "SET|lock|A-value-1|NX", text("A-value-1")}, {"B", "DEL|lock", free}}, "taking -"},
		{"another takes it away", []act{
			{"A", "SET|lock|A-value-1|NX", text("A-value-1")}, {"B", "GETSET|lock|B-value-1", text("B-value-1")}, {"A", "DEL|lock", free},
		}, "taking taking -"},
		{"it hands it over", []act{
			{"A", "SET|lock|A-value-1|NX", text("A-value-1")}, {"B", "GET|other", text("A-value-1")},
			{"B", "SET|other|B-value-1", text("A-value-1")}, {"A", "SET|lock|B-value-1", text("B-value-1")},
		}, "taking - - freeing"},
		{"it expires", []act{{"A", "SET|lock|A-value-1|NX", text("A-value-1")}, {string(checker.ByExpiry), "", free}}, "taking -"},
		{"a hash", []act{
			{"A", "HSET|lock|A-value-1|1", hash("A-value-1", "1", 30*s)}, {"A", "HINCRBY|lock|A-value-1|1", hash("A-value-1", "2", 30*s)}, {"A", "DEL|lock", free},
		}, "taking - freeing"},
		{"nobody's counter", []act{{"A", "INCR|lock", text("1")}, {"B", "INCR|lock", text("2")}, {"A", "DEL|lock", free}}, "taking - freeing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := faults.NewAttributor(faults.SingleKeyLock("lock"))
			var got []string
			for _, a := range c.acts {
				cause, client, words := checker.ByCommand, a.who, strings.Split(a.words, "|")
				if a.words == "" {
					cause, client, words = checker.Cause(a.who), "", nil
				}
				l.Command(client, words)
				_, did, _ := l.Saw("n1", "n1/0", []faults.Key{a.key}, cause, client, words, time.Millisecond)
				if did == "" {
					did = "-"
				}
				got = append(got, string(did))
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("the commands did %q; want %q", text, c.want)
			}
		})
	}
}

func TestEffects(t *testing.T) {
	if got := faults.Effects(faults.Messages); got != nil {
		t.Errorf("messages of subscriptions do %v", got)
	}
	for _, e := range faults.Effects(faults.Before) {
		if !slices.Contains(faults.Effects(faults.After), e) {
			t.Errorf("%s shows in a request and not in its reply", e)
		}
	}
}
