package explorecmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/search"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/strategies/all"
)

// TestMain makes the test binary its own worker process.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == cells.WorkerCommand {
		if err := cells.Work(&kit.App{Everything: all.Registry()}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// What a search is said to have come to is played here, its scripts and a small shard of it.
func TestSlowPoisonedSearches(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	strategy, _ := all.Registry().Lookup("getset-timestamp")
	o := &exploreOptions{}
	o.Bound = explore.Bound{Clients: 2, Rounds: 1, Nodes: 1, TTL: 30 * time.Second, Budget: map[explore.BudgetKind]int{explore.Advance: 1}}
	o.Seed = cells.DefaultSeed
	e := search.NewExplorer(&o.Settings, strategy, 2, workerpool.Options{Limit: cells.LimitOf, Start: func() *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Args = []string{"lockfault", cells.WorkerCommand}
		return cmd
	}})
	defer e.Close()
	b := o.Bound
	b.Shard, b.Shards = 1, 2
	right, err := explore.Search(t.Context(), b, e, func(explore.Result) {})
	if err != nil || !right.Exhausted || len(right.Findings) < 2 {
		t.Fatalf("%+v, %v", right, err)
	}
	for _, c := range []struct {
		name  string
		spoil func(r *explore.Result)
		want  string
	}{
		{"nothing", func(*explore.Result) {}, ""},
		{"nothing was found", func(r *explore.Result) { r.Findings = []explore.Finding{} }, "it has"},
		{"a finding that is none", func(r *explore.Result) {
			f := r.Findings[0]
			f.Anomaly, f.Anomalies = checker.Starvation, []checker.Anomaly{checker.Starvation}
			f.Script = strings.ReplaceAll(f.Script, "expect "+string(r.Findings[0].Anomaly), "expect starvation")
			r.Findings = append(slices.Clone(r.Findings), f)
		}, "says that a script shows [starvation], and on this machine it shows"},
		{"a script that is none", func(r *explore.Result) {
			r.Findings = slices.Clone(r.Findings)
			r.Findings[0].Script = "rm -rf"
		}, "a script that is none"},
		{"an anomaly that is none", func(r *explore.Result) {
			r.Findings = slices.Clone(r.Findings)
			r.Findings[0].Anomaly = "../../evil"
		}, "is no anomaly"},
		{"the same twice", func(r *explore.Result) { r.Findings = append(slices.Clone(r.Findings), r.Findings[0]) }, "twice"},
		{"few states", func(r *explore.Result) { r.States, r.Ends, r.Moves, r.Depth, r.Common = 3, 0, 3, 3, nil }, "this machine sees more"},
		{"one state more", func(r *explore.Result) { r.States++ }, "states and"},
		{"more states than moves", func(r *explore.Result) { r.States = 999_999_999 }, "more states than moves"},
		{"another common part", func(r *explore.Result) {
			common := *r.Common
			common.Moves++
			r.Common = &common
		}, "is not what this machine finds"},
		{"numbers below 0", func(r *explore.Result) { r.Moves = -1 }, "numbers that no search has"},
		{"more in common than there is", func(r *explore.Result) { r.Common = &explore.Counts{States: 1 << 40} }, "more is common"},
		{"not exhausted, for no reason", func(r *explore.Result) { r.Exhausted, r.Findings = false, nil }, "not exhausted, and not why"},
		{"no result", func(r *explore.Result) { *r = explore.Result{} }, "not exhausted, and not why"},
		{"no states", func(r *explore.Result) { *r = explore.Result{Exhausted: true} }, "has seen no state"},
		{"nothing but ends", func(r *explore.Result) { r.States, r.Ends, r.Moves = 9999, 9999, 9999 }, "more ends"},
		{"a path through more states than there are", func(r *explore.Result) { r.Moves = 9999; r.Depth = 9999 }, "a longer path"},
		{"cut, and exhausted", func(r *explore.Result) { r.Cut = "x" }, "it is exhausted, and why it is not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sh := &cells.Remote{Random: rand.New(rand.NewPCG(1, 2))}
			options := *o
			options.Remote = sh
			s := &sharedSearch{exploreOptions: &options, strategy: strategy.Name, explorer: e}
			r := right
			c.spoil(&r)
			body, err := json.Marshal(search.PartResult{Result: r})
			if err != nil {
				t.Fatal(err)
			}
			var found error
			draws := finer // of a shard
			if c.want == "" {
				draws = 2
			}
			for range draws {
				p := &piece{shard: 1, of: 2, began: time.Now().Add(-time.Hour)}
				if _, found = s.read(t.Context(), p, queue.Answer{Body: body}); found != nil {
					break
				}
			}
			var wrong *cells.WrongAnswer
			if found != nil && !errors.As(found, &wrong) || (found == nil) != (c.want == "") || found != nil && !strings.Contains(found.Error(), c.want) {
				t.Errorf("%v, want %q", found, c.want)
			}
		})
	}
}
