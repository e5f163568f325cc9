package explore

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/strategies"
)

// TestWhatVariesIsSearchedToo checks that a lock with HistoryVaries is searched all the same, and
// that a finding shows the same anomalies each time. For any other lock a variation is a failure.
func TestWhatVariesIsSearchedToo(t *testing.T) {
	racetest.Skip(t)
	b := Bound{Clients: 2, Rounds: 1, Nodes: 1, TTL: 30 * time.Second, Budget: map[BudgetKind]int{Advance: 1}}
	for _, why := range []string{"", "it looks at one key or the other"} {
		strategy := wavering(why)
		b.Varies = why != ""
		r, err := Search(t.Context(), b, &stage{t: t, strategy: strategy}, nil)
		if err != nil || r.Exhausted {
			t.Fatal(err, r.Exhausted)
		}
		if !b.Varies {
			if len(r.Failures) == 0 || r.Varied != 0 {
				t.Errorf("%d failures, %d varied, of a lock that is known for nothing", len(r.Failures), r.Varied)
			}
			continue
		}
		var got []string
		for _, f := range r.Findings {
			got = append(got, string(f.Anomaly))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != "foreign-release overlap stale-write" || len(r.Failures) > 0 || r.Varied == 0 || r.Untabled == "" {
			t.Errorf("found %v, %v; %d varied; untabled %q", got, r.Failures, r.Varied, r.Untabled)
		}
		if want := "the lock does not do the same each time"; r.Cut != want {
			t.Errorf("cut %q, want %q", r.Cut, want)
		}
	}
}

// TestWhatShowsOnceIsNotFound checks that another script may show an anomaly that a first one did
// not show each time; otherwise there is one failure for each anomaly.
func TestWhatShowsOnceIsNotFound(t *testing.T) {
	racetest.Skip(t)
	b := Bound{Clients: 2, Rounds: 1, Nodes: 1, TTL: 30 * time.Second, Budget: map[BudgetKind]int{Advance: 1}, Varies: true}
	for shy, want := range map[int]int{3: 3, 1000: 0} {
		r, err := Search(t.Context(), b, &bashful{stage{t: t, strategy: wavering("it does")}, shy}, nil)
		if err != nil || len(r.Findings) != want || len(r.Failures) != 3-want {
			t.Errorf("%d times nothing: %v, %d findings, %v", shy, err, len(r.Findings), r.Failures)
		}
	}
}

// wavering is set-nx-px-del, except that before it acquires it reads one of two keys, alternately
// within this process.
func wavering(why string) strategies.Strategy {
	var turns atomic.Int64
	return strategies.Strategy{
		Name: "wavering", Summary: "SET NX PX, and DEL", Source: "this test", Tags: []string{strategies.TagSingle}, HistoryVaries: why,
		New: func(env strategies.Env) (strategies.Lock, error) { return &waveringLock{bareLock{env}, &turns}, nil },
	}
}

type waveringLock struct {
	bareLock
	turns *atomic.Int64
}

func (l *waveringLock) Acquire(ctx context.Context) error {
	l.env.Nodes[0].Exists(ctx, [...]string{"even", "odd"}[l.turns.Add(1)%2])
	won, err := l.env.Nodes[0].SetNX(ctx, l.env.Key, l.env.Owner, l.env.TTL).Result()
	if err == nil && !won {
		return strategies.ErrNotAcquired
	}
	return err
}

func (l *waveringLock) TryAcquire(ctx context.Context) error { return l.Acquire(ctx) }

// bashful shows nothing the first times that it plays a script again.
type bashful struct {
	stage
	times int
}

func (b *bashful) PlayAlone(ctx context.Context, trial Trial) (Outcome, error) {
	look, err := b.stage.PlayAlone(ctx, trial)
	if b.times--; b.times >= 0 {
		look.Anomalies = []checker.Anomaly{}
	}
	return look, err
}
