package explore

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/strategies"
)

// TestSlowKnownPathsAreChecked checks that a sample of the paths whose transitions are all known is
// played, and that the search reports a path that contradicts the tables: here, every script at the
// end of a path does.
func TestSlowKnownPathsAreChecked(t *testing.T) {
	racetest.Skip(t)
	strategy, ok := strategies.Builtin().Lookup("set-nx-px-lua")
	if !ok {
		t.Fatal("no such strategy")
	}
	b := Bound{Clients: 2, Rounds: 1, Nodes: 1, TTL: 30 * time.Second, Budget: map[BudgetKind]int{Advance: 1, Crash: 1}}
	search := func(ctx context.Context, p Player) (Result, error) { return Search(ctx, b, p, nil) }
	draw := func(ctx context.Context, p Player) (Result, error) {
		return Draw(ctx, b, Random{Method: Walk, Schedules: 600, Seed: 3}, p, nil)
	}
	for name, way := range map[string]func(context.Context, Player) (Result, error){"search": search, "draw": draw} {
		upright := &liar{stage: stage{t: t, strategy: strategy}}
		honest, err := way(t.Context(), upright)
		if err != nil || honest.Untabled != "" || len(honest.Failures) > 0 {
			t.Fatalf("%s: %v, %+v", name, err, honest)
		}
		if upright.atOnce.Load() {
			t.Errorf("%s: a player was asked for two things at once", name)
		}
		if upright.known == 0 {
			t.Fatalf("%s: no path was played of which all is known", name)
		}
		// The first liar lies only in Play, like a lock that is not reproducible. The second one
		// also lies in PlayAlone, like a lock for which the tables are invalid.
		for _, once := range []bool{true, false} {
			if !once && name == "draw" {
				continue // a search without tables would take too long
			}
			r, err := way(t.Context(), &liar{stage: stage{t: t, strategy: strategy}, lies: true, once: once})
			if err != nil {
				t.Fatal(name, err)
			}
			if once == (r.Untabled != "") || once == (len(r.Failures) == 0) || r.Exhausted {
				t.Errorf("%s: lied once: %t; untabled %q, %d failures, exhausted %t", name, once, r.Untabled, len(r.Failures), r.Exhausted)
			}
			if once && !strings.Contains(r.Failures[0].Err, "did not do the same") {
				t.Errorf("%s: %s", name, r.Failures[0].Err)
			}
		}
	}
}

// A liar plays scripts like a stage, but may report a wrong holder in scripts that are played to
// verify the tables: in Play only, or with once unset in PlayAlone, too.
type liar struct {
	stage
	lies, once bool
	known      int
	busy       atomic.Bool
	atOnce     atomic.Bool
	seen       map[string]bool
}

func (l *liar) Play(ctx context.Context, trials []Trial) ([]Outcome, error) {
	if !l.busy.CompareAndSwap(false, true) {
		l.atOnce.Store(true)
	}
	defer l.busy.Store(false)
	looks, err := l.stage.Play(ctx, trials)
	for i, trial := range trials {
		if l.checking(trial) {
			l.known++
			l.alter(&looks[i])
		}
	}
	return looks, err
}

func (l *liar) PlayAlone(ctx context.Context, trial Trial) (Outcome, error) {
	look, err := l.stage.PlayAlone(ctx, trial)
	if !l.once && l.seen[trial.Script] {
		l.alter(&look)
	}
	return look, err
}

// checking reports whether a script is played for verification: all its transitions were played
// before, in some order, and no trial continues its path.
func (l *liar) checking(trial Trial) bool {
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	check := trial.Last && !strings.Contains(trial.Script, "1.6ttl")
	if check {
		l.seen[trial.Script] = true
	}
	return check
}

func (l *liar) alter(look *Outcome) {
	if l.lies && len(look.View.Clients) > 0 {
		look.View.Clients[0].Holding = !look.View.Clients[0].Holding
	}
}
