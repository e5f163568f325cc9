package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/strategies"
)

// A playingOnce plays each script once, whichever search asks for it.
type playingOnce struct {
	stage
	known map[Trial]Outcome
}

func (r *playingOnce) Play(ctx context.Context, trials []Trial) ([]Outcome, error) {
	looks := make([]Outcome, len(trials))
	for i, trial := range trials {
		look, ok := r.known[trial]
		if !ok {
			list, err := r.stage.Play(ctx, trials[i:i+1])
			if err != nil {
				return nil, err
			}
			look = list[0]
			r.known[trial] = look
		}
		looks[i] = look
	}
	return looks, nil
}

// sharded searches all shards of the given number; 0 shards are the whole search.
func sharded(t *testing.T, player Player, b Bound, of int) []*Result {
	t.Helper()
	list := make([]*Result, max(1, of))
	for i := range list {
		if of > 0 {
			b.Shard, b.Shards = i+1, of
		}
		r, err := Search(t.Context(), b, player, nil)
		if err != nil {
			t.Fatal(err)
		}
		list[i] = &r
	}
	return list
}

// shown formats a result as in a file, without the fields that depend on how it was searched.
func shown(t *testing.T, r Result) string {
	t.Helper()
	r.Runs = 0
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSlowShardsAreTheWhole checks that joined shards equal the whole search: the same findings by the
// same scripts, and the same counts, or slightly larger ones where states may be counted twice.
func TestSlowShardsAreTheWhole(t *testing.T) {
	racetest.Skip(t)
	for _, c := range []struct {
		strategy string
		bound    Bound
	}{
		{"set-nx-px-del", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Advance: 1}}},
		{"set-nx-px-del", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Advance: 1}, Moves: 7}},
		{"setnx-expire", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Crash: 1, LoseRequest: 1}}},
		{"setnx-expire", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{ClientRestart: 1}}},
		{"getset-timestamp", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Advance: 1}}},
		{"getset-timestamp", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{ClientClock: 1}}},
		{"set-nx-px-lua", Bound{Clients: 3, Rounds: 1}},
		{"set-nx-px-lua", Bound{Clients: 2, Rounds: 2}},
		{"set-nx-px-lua", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Failover: 1}, Replicas: 1}},
		{"set-nx-px-lua", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{LoseReply: 1, Flush: 1}}},
		{"set-nx-px-get-del", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Partition: 1}}},
		{"fenced", Bound{Clients: 2, Rounds: 1, Extend: true, Reenter: true}},
		{"redisson", Bound{Clients: 2, Rounds: 1, Budget: map[BudgetKind]int{Pause: 1}}},
	} {
		strategy, _ := strategies.Builtin().Lookup(c.strategy)
		player := &playingOnce{stage{t: t, strategy: strategy}, map[Trial]Outcome{}}
		c.bound.Nodes, c.bound.TTL, c.bound.Lock = 1, 30*time.Second, leases.LockOf(strategy)
		whole := *sharded(t, player, c.bound, 0)[0]
		want := shown(t, whole)
		for _, of := range []int{1, 2, 3, 7} {
			shards := sharded(t, player, c.bound, of)
			joined := Join(inOrder(shards), c.bound)
			if c.bound.Moves > 0 { // the Cut names the shard
				if joined.Exhausted || joined.Cut == "" {
					t.Errorf("%s %v, %d shards: exhausted %t, %q", c.strategy, c.bound.Budget, of, joined.Exhausted, joined.Cut)
				}
				joined.Cut = whole.Cut
			}
			if b := c.bound; of > 1 && b.Doubles() {
				if joined.States < whole.States || joined.Moves < whole.Moves || joined.States > whole.States*5/4 {
					t.Errorf("%s %v, %d shards: %d states, of %d; %d moves, of %d", c.strategy, b.Budget, of, joined.States, whole.States, joined.Moves, whole.Moves)
				}
				joined.States, joined.Ends, joined.Merged, joined.Moves = whole.States, whole.Ends, whole.Merged, whole.Moves
			}
			if got := shown(t, joined); got != want {
				t.Errorf("%s %v, %d shards: joined\n%s\nwhole\n%s", c.strategy, c.bound.Budget, of, got, want)
			}
			sum, most := 0, 0
			for i, r := range shards {
				sum, most = sum+r.Moves, max(most, r.Moves)
				if r.Exhausted != whole.Exhausted {
					t.Errorf("%s %v, shard %d/%d: exhausted %t (%s)", c.strategy, c.bound.Budget, i+1, of, r.Exhausted, r.Cut)
				}
			}
			t.Logf("%s %v: %d moves; %d shards have %d, the largest %d, all of them %d", c.strategy, c.bound.Budget, whole.Moves, of, sum, most, shards[0].Common.Moves)
		}
	}
}

// TestSlowShardsAreDisjoint checks that each path that is not in every shard is in exactly one.
func TestSlowShardsAreDisjoint(t *testing.T) {
	racetest.Skip(t)
	strategy, _ := strategies.Builtin().Lookup("getset-timestamp")
	b := Bound{Clients: 2, Rounds: 1, Nodes: 1, TTL: 30 * time.Second, WithoutTables: true, Budget: map[BudgetKind]int{Advance: 1}}
	scripts := func(shard, of int) ([]string, Result) {
		b.Shard, b.Shards = shard, of
		player := &reader{stage: stage{t: t, strategy: strategy}}
		r, err := Search(t.Context(), b, player, nil)
		if err != nil || !r.Exhausted {
			t.Fatal(err, r.Cut)
		}
		return player.scripts, r
	}
	whole, _ := scripts(0, 0)
	for _, of := range []int{2, 3, 7} {
		in := map[string]int{}
		common := 0
		for i := range of {
			list, r := scripts(i+1, of)
			common = r.Common.Moves
			if len(list) != r.Moves {
				t.Fatalf("%d scripts were played for %d moves", len(list), r.Moves)
			}
			for _, script := range list {
				in[script]++
			}
		}
		for script, n := range in {
			switch n {
			case 1:
			case of:
				common--
			default:
				t.Errorf("%d of %d shards play\n%s", n, of, script)
			}
		}
		if common != 0 {
			t.Errorf("%d shards: %d more paths are said to be in every shard than are", of, common)
		}
		if got, want := slices.Sorted(maps.Keys(in)), slices.Sorted(slices.Values(whole)); !slices.Equal(got, want) {
			t.Errorf("%d shards play %d scripts, the whole search %d, or others", of, len(got), len(want))
		}
	}
}

// TestJoinSaysWhatIsMissing checks that missing, cut and contradicting shards are reported, and
// that the result is then not exhausted.
func TestJoinSaysWhatIsMissing(t *testing.T) {
	fine := func() *Result { return &Result{Exhausted: true, Moves: 5, Common: &Counts{Moves: 2}} }
	late := fine()
	late.Exhausted, late.Cut = false, "out of time"
	odd := fine()
	odd.Common.Moves = 3
	failed := fine()
	failed.Exhausted, failed.Failures = false, []Failure{{"script", "panic"}}
	for _, c := range []struct {
		shards []*Result
		cut    string
		moves  int
		failed int
	}{
		{[]*Result{fine(), fine()}, "", 8, 0},
		{[]*Result{fine(), nil, fine()}, "shard 2 of 3 is missing", 8, 0},
		{[]*Result{late, nil}, "shard 1 of 2 was cut: out of time; shard 2 of 2 is missing", 5, 0},
		{[]*Result{fine(), odd}, "shards 1 of 2 and 2 of 2 don't agree on what is in every shard", 8, 0},
		{[]*Result{failed, failed, fine()}, "", 11, 1},
	} {
		r := Join(inOrder(c.shards), Bound{})
		if r.Cut != c.cut || r.Exhausted != (c.cut == "" && c.failed == 0) || r.Moves != c.moves || len(r.Failures) != c.failed {
			t.Errorf("cut %q, exhausted %t, %d moves, %d failures; want %q, %d, %d", r.Cut, r.Exhausted, r.Moves, len(r.Failures), c.cut, c.moves, c.failed)
		}
	}
}

// inOrder numbers shards.
func inOrder(results []*Result) (list []Shard) {
	for i, r := range results {
		list = append(list, Shard{i + 1, len(results), r})
	}
	return list
}

// TestJoinKeepsTheFirst checks that the shortest of two scripts is kept, and of equal ones the one
// that a whole search finds first, even if it has more requests.
func TestJoinKeepsTheFirst(t *testing.T) {
	find := func(a checker.Anomaly, moves, requests int, course ...int) Finding {
		return Finding{Anomaly: a, Anomalies: []checker.Anomaly{checker.Overlap, checker.StaleWrite}, Moves: moves, Requests: requests, Course: course}
	}
	r := Join(inOrder([]*Result{
		{Findings: []Finding{find(checker.Overlap, 3, 1, 1, 2, 2), find(checker.StaleWrite, 4, 2, 1, 1, 1, 1)}},
		{Findings: []Finding{find(checker.Overlap, 3, 2, 1, 2, 1), find(checker.StaleWrite, 3, 2, 1, 2, 1)}},
	}), Bound{})
	want := []Finding{find(checker.Overlap, 3, 2), find(checker.StaleWrite, 3, 2)}
	if fmt.Sprint(r.Findings) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", r.Findings, want)
	}
}

// TestLotsArePartOfAState checks that two paths to one state are not merged if other shards may
// explore the continuation, and that the number of A's transitions is irrelevant once the path is
// assigned to a shard.
func TestLotsArePartOfAState(t *testing.T) {
	racetest.Skip(t)
	s := newSearch(Bound{Clients: 1, Rounds: 1}, nil, nil)
	at := func(l *shardAssignment) identity {
		return s.identify(&searchNode{rounds: []int{0}, idle: []bool{true}, shards: l})
	}
	different := map[identity]bool{at(&shardAssignment{}): true, at(&shardAssignment{moves: 1}): true, at(&shardAssignment{moves: undrawn}): true, at(&shardAssignment{drawn: true}): true}
	if len(different) != 4 {
		t.Errorf("of 4 states with different lots %d are different", len(different))
	}
	if at(&shardAssignment{drawn: true, moves: 1}) != at(&shardAssignment{drawn: true, moves: 2, nth: 3}) {
		t.Error("what led to a lot that is drawn makes another state of it")
	}
}
