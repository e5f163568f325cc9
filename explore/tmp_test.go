package explore

import "testing"

func TestTmp(t *testing.T) {
	b := Bound{Clients: 3, Rounds: 2, Budget: map[Fault]int{Advance: 1, Crash: 1}, States: 100000}
	r := found(t, "set-nx-px-lua", b)
	t.Logf("%d states %d moves %d runs %s %s", r.States, r.Moves, r.Runs, r.Untabled, r.Cut)
}
