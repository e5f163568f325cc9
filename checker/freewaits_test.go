package checker

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// A wait counts from the moment at which the lock is free, until somebody gets it. A dead holder's key,
// a hold and an acquire that is given up are no such time.
func TestFreeWaits(t *testing.T) {
	h, err := parseHistory(strings.Split(`0s A acquire
1s n1 A1 of A until 31s by A
2s A acquire ok
3s B acquire
4s A release
5s n1 gone by A
6s A release ok
9s n1 B1 of B until 39s by B
10s B acquire ok
11s B crash
12s A acquire
39s n1 gone by expiry
41s n1 A2 of A until 71s by A
42s A acquire ok
43s A release
43s n1 gone by A
43s A release ok
50s C acquire
60s C acquire fail
61s end`, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	const s = time.Second
	want := []FreeWait{{0, 1 * s, "A"}, {5 * s, 9 * s, "B"}, {39 * s, 41 * s, "A"}}
	if got := FreeWaits(h); !reflect.DeepEqual(got, want) {
		t.Errorf("free waits %v, want %v", got, want)
	}
}
