package linear

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// parse reads a history in short: events separated by semicolons, each a time
// in seconds, a client and what happened. "1 A acquire" is a call, "2 A acquire
// ok" a return, "3 A crash" a crash, "3 A expired" the end of a lease; after that key=, token=, lease=, n= and shared.
func parse(t *testing.T, text string) []Event {
	t.Helper()
	ops := map[string]Op{"acquire": Acquire, "try": TryAcquire, "release": Release, "extend": Extend, "use": Use}
	phases := map[string]Phase{"ok": ReturnOK, "fail": ReturnFail, "unknown": ReturnUnknown}
	var events []Event
	for i, line := range strings.Split(text, ";") {
		f := strings.Fields(line)
		n, err := strconv.Atoi(f[0])
		if err != nil {
			t.Fatal(err)
		}
		e := Event{Time: time.Duration(n) * time.Second, Client: f[1], Line: i + 1, Phase: Invoke, Op: ops[f[2]]}
		switch f[2] {
		case "crash":
			e.Phase = Crash
		case "expired":
			e.Phase = Expired
		}
		for _, word := range f[3:] {
			name, value, _ := strings.Cut(word, "=")
			number, _ := strconv.Atoi(value)
			switch name {
			case "shared":
				e.Shared = true
			case "key":
				e.Key = strings.ReplaceAll(value, "+", " ")
			case "token":
				e.Token = int64(number)
			case "lease":
				e.Lease = time.Duration(number) * time.Second
			case "n":
				e.Permits = number
			default:
				e.Phase = phases[name]
			}
		}
		events = append(events, e)
	}
	return events
}
