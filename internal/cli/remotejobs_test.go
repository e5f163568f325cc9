package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/queue/item"
	"github.com/lockfault/lockfault/internal/soak"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies/all"
)

// A liar is a campaign whose items are answered by two workers in turns: an honest one, and one
// whose answers are spoiled.
type liar struct {
	t       *testing.T
	hands   *queueWorker
	spoil   func(n int, r *workerpool.Result[played], a *queue.Answer) // the nth answer of the worker that lies
	ready   chan queue.Item                                            // put, and not answered yet
	lied    int
	turn    int
	out     map[string]bool // workers that are excluded
	refused int
}

const (
	honest = "aaaaaaaaaaaa0000"
	lying  = "bbbbbbbbbbbb0000"
)

func (l *liar) Put(_ context.Context, i queue.Item) error {
	l.ready <- i
	return nil
}

func (l *liar) Next(ctx context.Context) (queue.Answer, error) {
	var i queue.Item
	select {
	case i = <-l.ready:
	case <-ctx.Done():
		return queue.Answer{}, ctx.Err()
	}
	worker := []string{honest, lying}[l.turn%2]
	if l.turn++; l.out[lying] {
		worker = honest
	}
	c, err := item.ReadCell(i)
	if err != nil {
		return queue.Answer{}, err
	}
	j, err := l.hands.job(c)
	if err != nil {
		return queue.Answer{}, err
	}
	dir := l.t.TempDir()
	if c.History {
		j.History, j.HistoryLink = filepath.Join(dir, historyFile), historyFile
	}
	r := playInTest(l.t, j)
	a := queue.Answer{Name: i.Name, Worker: worker}
	if a.Files, err = filesIn(dir); err != nil {
		return a, err
	}
	if worker == lying {
		l.spoil(l.lied, &r, &a)
		l.lied++
	}
	if a.Body == nil {
		a.Body, err = json.Marshal(r)
	}
	return a, err
}

func (l *liar) Refuse(ctx context.Context, i queue.Item, a queue.Answer, exclude bool) error {
	l.refused++
	if exclude {
		l.out[a.Worker] = true
	}
	return l.Put(ctx, i)
}

func (l *liar) Refused() int                                  { return l.refused }
func (l *liar) State(context.Context) (queue.State, error)    { return queue.State{}, nil }
func (l *liar) SetNote(context.Context, string, string) error { return nil }
func (l *liar) Drop(context.Context, queue.Item) error        { return nil }
func (l *liar) Close(bool) error                              { return nil }

// text returns a value as JSON.
func text(t *testing.T, of any) string {
	t.Helper()
	b, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// playInTest plays a job in this process.
func playInTest(t *testing.T, j job) workerpool.Result[played] {
	p := player{registry: all.Registry()}
	answer, _ := p.play(t, j)
	return workerpool.Result[played]{Value: answer}
}

// newLiar returns one, and what plays by it.
func newLiar(t *testing.T, spoil func(int, *workerpool.Result[played], *queue.Answer)) (*liar, *shared, *[]string) {
	t.Helper()
	l := &liar{t: t, hands: &queueWorker{registry: all.Registry()}, spoil: spoil, ready: make(chan queue.Item, ahead), out: map[string]bool{}}
	var said []string
	s, err := newShared(l, &app{everything: all.Registry()}, func(text string) { said = append(said, text) })
	if err != nil {
		t.Fatal(err)
	}
	s.here = func(_ context.Context, _ workerpool.Options, j job) (workerpool.Result[played], error) {
		return playInTest(t, j), nil
	}
	return l, s, &said
}

// cellsOf are jobs of a run, with their histories below a directory.
func cellsOf(dir string) (list []job) {
	for _, strategy := range []string{"set-nx-px-lua", "fenced", "redlock"} {
		for _, scenario := range []string{"contention", "gc-pause-holding", "flush", "node-down", "slow-quorum"} {
			link := reports.HistoryDir + "/sim/" + strategy + "/" + scenario + ".jsonl"
			list = append(list, job{
				Number: len(list), Strategy: strategy, Scenario: scenario, Place: worlds.Place{World: worlds.Sim}, Seed: 1,
				History: filepath.Join(dir, filepath.FromSlash(link)), HistoryLink: link,
			})
		}
	}
	return list
}

// A worker that answers wrongly changes nothing of what a run comes to: it is excluded, and what it
// had answered is asked anew.
func TestPoisonedCells(t *testing.T) {
	decide := func(r *workerpool.Result[played]) bool { return decided(*r) }
	for _, c := range []struct {
		name  string
		spoil func(n int, r *workerpool.Result[played], a *queue.Answer)
		said  string // of the worker; empty if its answers are taken
	}{
		{"nothing", func(int, *workerpool.Result[played], *queue.Answer) {}, ""},
		{"garbage", func(n int, _ *workerpool.Result[played], a *queue.Answer) { a.Body = []byte("{]") }, "can't be read"},
		{"no verdict of ours", func(n int, r *workerpool.Result[played], a *queue.Answer) { r.Value.Cell.Verdict = "sound" }, `the verdict "sound"`},
		{"held", func(n int, r *workerpool.Result[played], a *queue.Answer) {
			if decide(r) {
				r.Value.Cell.Verdict, r.Value.Cell.Anomalies = reports.Held, nil
			}
		}, "and its history is violated"},
		{"violated", func(n int, r *workerpool.Result[played], a *queue.Answer) {
			if decide(r) {
				r.Value.Cell.Verdict, r.Value.Cell.Anomalies = reports.Violated, []checker.Anomaly{checker.Overlap}
			}
		}, "says violated, and its history is"},
		{"no history", func(n int, _ *workerpool.Result[played], a *queue.Answer) { delete(a.Files, historyFile) }, "has a verdict and no history"},
		{"another's history", func(n int, _ *workerpool.Result[played], a *queue.Answer) {
			if text, ok := a.Files[historyFile]; ok {
				a.Files[historyFile] = []byte(strings.Replace(string(text), `"strategy":"`, `"strategy":"x`, 1))
			}
		}, "the history of something else"},
		{"a longer bound in its history", func(n int, _ *workerpool.Result[played], a *queue.Answer) {
			if text, ok := a.Files[historyFile]; ok {
				a.Files[historyFile] = []byte(strings.Replace(string(text), `"bound":`, `"bound":9`, 1))
			}
		}, "the history of something else"},
		{"a history that is none", func(n int, _ *workerpool.Result[played], a *queue.Answer) { a.Files[historyFile] = []byte("no") }, "a history that can't be read"},
		{"a failure without a reason", func(n int, r *workerpool.Result[played], a *queue.Answer) { r.Failure = &workerpool.Failure{} }, "a failure without a reason"},
		{"an error without a reason", func(n int, r *workerpool.Result[played], a *queue.Answer) {
			r.Value.Cell.Verdict, r.Value.Cell.Reason = reports.Error, ""
		}, "is error without a reason"},
		{"an endless text", func(n int, r *workerpool.Result[played], a *queue.Answer) { r.Stderr = strings.Repeat("x", maxBody) }, "more than the limit of 16777216"},
		{"not applicable", func(n int, r *workerpool.Result[played], a *queue.Answer) {
			r.Value.Cell.Verdict, r.Value.Cell.Reason = reports.NotApplicable, "x"
		}, "there is nothing to play, and there is"},
		{"late where time is virtual", func(n int, r *workerpool.Result[played], a *queue.Answer) { r.Value.Late = time.Hour }, "is late by"},
		{"paths and names", func(n int, r *workerpool.Result[played], a *queue.Answer) {
			r.Value.Cell.World, r.Value.Cell.Strategy, r.Value.Cell.Scenario = "../../../secret", "evil", "../evil"
			r.Value.Cell.History = "../../../secret"
			a.Files["../../secret"], a.Files["/secret"], a.Files[logsPrefix+"../../secret"] = []byte("x"), []byte("x"), []byte("x")
		}, ""},
		{"what is expected", func(n int, r *workerpool.Result[played], a *queue.Answer) {
			r.Value.Cell.Expected, r.Value.Cell.AtMost, r.Value.Cell.Late = checker.Anomalies(), true, []string{"x"}
			r.Value.Cell.Twin = &reports.ReferenceCell{Verdict: reports.Held}
		}, ""},
		{"figures", func(n int, r *workerpool.Result[played], a *queue.Answer) {
			r.Value.Cell.RoundTrips = map[checker.Op]int{checker.Acquire: 77}
		}, "its figures differ"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			l, s, said := newLiar(t, c.spoil)
			got := map[int]reports.Cell{}
			err := s.run(t.Context(), workerpool.Options{}, slices.Values(cellsOf(filepath.Join(dir, "out"))), func(j job, r workerpool.Result[played]) error {
				if _, twice := got[j.Number]; twice || r.Failure != nil {
					return fmt.Errorf("%d is done again: %v", j.Number, r.Failure)
				}
				got[j.Number] = r.Value.Cell
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range cellsOf(filepath.Join(dir, "want")) {
				want, is := playInTest(t, j).Value.Cell, got[j.Number]
				want.Elapsed, is.Elapsed = 0, 0
				if text(t, want) != text(t, is) {
					t.Errorf("%s under %s:\n%s, want\n%s", j.Strategy, j.Scenario, text(t, is), text(t, want))
				}
			}
			if all := strings.Join(*said, "\n"); l.out[lying] != (c.said != "") || l.out[honest] || c.said != "" && (len(*said) != 1 || !strings.Contains(all, c.said) || !strings.Contains(all, "worker bbbbbbbbbbbb is excluded: ")) {
				t.Errorf("said %q, want %q; excluded %v", all, c.said, slices.Collect(maps.Keys(l.out)))
			}
			if err := os.RemoveAll(filepath.Join(dir, "want")); err != nil {
				t.Fatal(err)
			}
			if here, err := filesIn(dir); err != nil || slices.ContainsFunc(slices.Collect(maps.Keys(here)), func(name string) bool { return !strings.HasPrefix(name, "out/histories/sim/") }) {
				t.Errorf("files %v, %v", slices.Sorted(maps.Keys(here)), err)
			}
		})
	}
}

// Of what has no history a sample is played here, and every incident: a worker that counts wrongly is
// excluded, and none of the answers that were sampled with the wrong one counts.
func TestPoisonedCounts(t *testing.T) {
	plan := soak.Plan{Clients: 2, Think: 10 * time.Second, Hold: time.Second, TTL: 10 * time.Second, Nodes: 1, Window: 2 * time.Minute, Seed: 1}
	nemesis, err := soak.ParseNemesis("pause:40s:12s..20s", plan.TTL)
	if err != nil {
		t.Fatal(err)
	}
	plan.Nemeses = []soak.Nemesis{nemesis}
	jobs := func(yield func(job) bool) {
		for n := range 3 * sampled {
			name := windowName(n)
			if !yield(job{
				Number: n, Strategy: "set-nx-px-lua", Scenario: name, File: name + scriptSuffix, Source: []byte(plan.Script(n)),
				Place: worlds.Place{World: worlds.Sim}, Seed: uint64(n), TTL: plan.TTL, Count: true,
			}) {
				return
			}
		}
	}
	want := map[int]*soak.Counts{}
	for j := range jobs {
		want[j.Number] = playInTest(t, j).Value.Counts
	}
	for _, c := range []struct {
		name  string
		spoil func(n int, r *workerpool.Result[played], a *queue.Answer)
		most  int // replays
		out   bool
	}{
		{"nothing", func(int, *workerpool.Result[played], *queue.Answer) {}, 12, false},
		{"all without anomalies", func(_ int, r *workerpool.Result[played], _ *queue.Answer) {
			r.Value.Counts = &soak.Counts{Acquired: 1000, Updates: 1000}
			r.Value.Cell.Verdict = reports.Held
		}, 12, true},
		{"an incident that is none", func(n int, r *workerpool.Result[played], _ *queue.Answer) {
			if n == 5 {
				r.Value.Counts.First[checker.TokenOrder] = time.Second
			}
		}, 12, true},
		{"no counts", func(_ int, r *workerpool.Result[played], _ *queue.Answer) { r.Value.Counts = nil }, 12, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, s, said := newLiar(t, c.spoil)
			replays := 0
			play := s.here
			s.here = func(ctx context.Context, o workerpool.Options, j job) (workerpool.Result[played], error) {
				replays++
				return play(ctx, o, j)
			}
			got := map[int]*soak.Counts{}
			err := s.run(t.Context(), workerpool.Options{}, jobs, func(j job, r workerpool.Result[played]) error {
				if got[j.Number] != nil {
					return fmt.Errorf("%d is counted twice", j.Number)
				}
				got[j.Number] = r.Value.Counts
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for n := range want {
				if text(t, got[n]) != text(t, want[n]) {
					t.Errorf("window %d: %s, want %s", n, text(t, got[n]), text(t, want[n]))
				}
			}
			if l.out[lying] != c.out || l.out[honest] || replays > c.most || len(*said) > 1 {
				t.Errorf("excluded %v, %d replays, said %q", l.out, replays, *said)
			}
		})
	}
}

// No answer, whatever is in it, ends the command or is taken for that of another question.
func FuzzAnswer(f *testing.F) {
	j := job{Strategy: "set-nx-px-lua", Scenario: "contention", Place: worlds.Place{World: worlds.Sim}, Seed: 1}
	a := &app{everything: all.Registry()}
	s, err := newShared(nil, a, func(string) {})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"Value":{"Cell":{"verdict":"held"}}}`), []byte(""))
	f.Add([]byte(`{"Value":{"Cell":{"verdict":"violated","world":"../..","strategy":"evil","witnesses":[{"events":[-1]}]},"Counts":{}}}`), []byte(`{"lockfault":1,"strategy":"set-nx-px-lua","scenario":"contention","world":"sim","seed":1}`+"\n"))
	f.Add([]byte(`{"Failure":{"Reason":"x"}}`), []byte("x"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, body, history []byte) {
		for _, count := range []bool{false, true} {
			j := j
			j.History, j.HistoryLink, j.Count = filepath.Join(dir, "history"), "history", count
			q, err := s.ask(j)
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.read(q, queue.Answer{Name: q.item.Name, Body: body, Files: map[string][]byte{historyFile: history}})
			if c := r.Value.Cell; err == nil && r.Failure == nil && (c.World != "sim" || c.Strategy != j.Strategy || c.Scenario != j.Scenario || c.Verdict == reports.NotApplicable) {
				t.Errorf("%+v", c)
			}
		}
	})
}

// What a search is said to have come to is played here, its scripts and a small shard of it.
func TestPoisonedSearches(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	strategy, _ := all.Registry().Lookup("getset-timestamp")
	o := &exploreOptions{bound: explore.Bound{Clients: 2, Rounds: 1, Nodes: 1, TTL: 30 * time.Second, Budget: map[explore.Fault]int{explore.Advance: 1}}}
	o.seed = defaultSeed
	e := newExplorer(o, strategy, 2, workerpool.Options{Limit: limitOf, Start: func() *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Args = []string{"lockfault", workerCommand}
		return cmd
	}})
	defer e.close()
	b := o.bound
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
			sh := &shared{random: rand.New(rand.NewPCG(1, 2))}
			options := *o
			options.shared = sh
			s := &sharedSearch{exploreOptions: &options, strategy: strategy.Name, explorer: e}
			r := right
			c.spoil(&r)
			body := text(t, searched{Result: r})
			var found error
			draws := finer // of a shard
			if c.want == "" {
				draws = 2
			}
			for range draws {
				p := &piece{shard: 1, of: 2, began: time.Now().Add(-time.Hour)}
				if _, found = s.read(t.Context(), p, queue.Answer{Body: []byte(body)}); found != nil {
					break
				}
			}
			var wrong *wrongAnswer
			if found != nil && !errors.As(found, &wrong) || (found == nil) != (c.want == "") || found != nil && !strings.Contains(found.Error(), c.want) {
				t.Errorf("%v, want %q", found, c.want)
			}
		})
	}
}

func TestOutlier(t *testing.T) {
	for want, acquired := range map[int][]int{-1: {10, 12, 20, 9}, 2: {10, 12, 9_000_000, 9}, 0: {50, 12, 20}} {
		var claims []claim
		for _, n := range acquired {
			var c claim
			c.result.Value.Counts = &soak.Counts{Acquired: n}
			claims = append(claims, c)
		}
		claims = append(claims, claim{}) // a cell without counts
		if got := outlier(claims); got != want {
			t.Errorf("of %v: %d, want %d", acquired, got, want)
		}
	}
	if got := outlier([]claim{{}}); got != -1 {
		t.Errorf("of none: %d", got)
	}
}
