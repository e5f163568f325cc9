package explore

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
)

// TestPartsMove checks that the effect of a transition is valid at any other time, including events
// at time 0, which differs from a time that is not set.
func TestPartsMove(t *testing.T) {
	for _, began := range []time.Duration{0, 1, time.Millisecond} {
		for _, e := range []checker.Event{
			{Kind: checker.Request, Time: began + 2, Sent: 0},
			{Kind: checker.Request, Time: began + 2, Sent: began},
			{Kind: checker.Reply, Time: began, Sent: began + 1},
			{Kind: checker.State, Time: began + 2},
			{Kind: checker.State, Time: began + 2, Expires: began + 5},
			{Kind: checker.Return, Time: began + 2, Until: began},
		} {
			if got := after(began, since(began, e)); got != e {
				t.Errorf("%+v is %+v when it has been moved by %v and back", e, got, began)
			}
			got := after(began+7, since(began, e))
			want := e
			want.Time += 7
			if message(e) {
				want.Sent += 7
			}
			for _, date := range dates(&want) {
				if *date != 0 {
					*date += 7
				}
			}
			if got != want {
				t.Errorf("%+v is %+v seven later, want %+v", e, got, want)
			}
		}
	}
}
