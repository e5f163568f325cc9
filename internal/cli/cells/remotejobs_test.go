package cells

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
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
	spoil   func(n int, r *workerpool.Result[Played], a *queue.Answer) // the nth answer of the worker that lies
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
func playInTest(t *testing.T, j Job) workerpool.Result[Played] {
	p := player{registry: all.Registry()}
	answer, _ := p.play(t, j)
	return workerpool.Result[Played]{Value: answer}
}

// newLiar returns one, and what plays by it.
func newLiar(t *testing.T, spoil func(int, *workerpool.Result[Played], *queue.Answer)) (*liar, *Remote, *[]string) {
	t.Helper()
	l := &liar{t: t, hands: &queueWorker{registry: all.Registry()}, spoil: spoil, ready: make(chan queue.Item, ahead), out: map[string]bool{}}
	var said []string
	s, err := newRemote(l, &kit.App{Everything: all.Registry()}, func(text string) { said = append(said, text) })
	if err != nil {
		t.Fatal(err)
	}
	s.here = func(_ context.Context, _ workerpool.Options, j Job) (workerpool.Result[Played], error) {
		return playInTest(t, j), nil
	}
	return l, s, &said
}

// cellsOf are jobs of a run, with their histories below a directory.
func cellsOf(dir string) (list []Job) {
	for _, strategy := range []string{"set-nx-px-lua", "fenced", "redlock"} {
		for _, scenario := range []string{"contention", "gc-pause-holding", "flush", "node-down", "slow-quorum"} {
			link := reports.HistoryDir + "/sim/" + strategy + "/" + scenario + ".jsonl"
			list = append(list, Job{
				Number: len(list), Strategy: strategy, Scenario: scenario, Place: worlds.Place{World: worlds.Sim}, Seed: 1,
				History: filepath.Join(dir, filepath.FromSlash(link)), HistoryLink: link,
			})
		}
	}
	return list
}

// A worker that answers wrongly changes nothing of what a run comes to: it is excluded, and what it
// had answered is asked anew.
func TestSlowPoisonedCells(t *testing.T) {
	decide := func(r *workerpool.Result[Played]) bool { return decided(*r) }
	for _, c := range []struct {
		name  string
		spoil func(n int, r *workerpool.Result[Played], a *queue.Answer)
		said  string // of the worker; empty if its answers are taken
	}{
		{"nothing", func(int, *workerpool.Result[Played], *queue.Answer) {}, ""},
		{"garbage", func(n int, _ *workerpool.Result[Played], a *queue.Answer) { a.Body = []byte("{]") }, "can't be read"},
		{"no verdict of ours", func(n int, r *workerpool.Result[Played], a *queue.Answer) { r.Value.Cell.Verdict = "sound" }, `the verdict "sound"`},
		{"held", func(n int, r *workerpool.Result[Played], a *queue.Answer) {
			if decide(r) {
				r.Value.Cell.Verdict, r.Value.Cell.Anomalies = reports.Held, nil
			}
		}, "and its history is violated"},
		{"violated", func(n int, r *workerpool.Result[Played], a *queue.Answer) {
			if decide(r) {
				r.Value.Cell.Verdict, r.Value.Cell.Anomalies = reports.Violated, []checker.Anomaly{checker.Overlap}
			}
		}, "says violated, and its history is"},
		{"no history", func(n int, _ *workerpool.Result[Played], a *queue.Answer) { delete(a.Files, historyFile) }, "has a verdict and no history"},
		{"another's history", func(n int, _ *workerpool.Result[Played], a *queue.Answer) {
			if text, ok := a.Files[historyFile]; ok {
				a.Files[historyFile] = []byte(strings.Replace(string(text), `"strategy":"`, `"strategy":"x`, 1))
			}
		}, "the history of something else"},
		{"a longer bound in its history", func(n int, _ *workerpool.Result[Played], a *queue.Answer) {
			if text, ok := a.Files[historyFile]; ok {
				a.Files[historyFile] = []byte(strings.Replace(string(text), `"bound":`, `"bound":9`, 1))
			}
		}, "the history of something else"},
		{"a history that is none", func(n int, _ *workerpool.Result[Played], a *queue.Answer) { a.Files[historyFile] = []byte("no") }, "a history that can't be read"},
		{"a failure without a reason", func(n int, r *workerpool.Result[Played], a *queue.Answer) { r.Failure = &workerpool.Failure{} }, "a failure without a reason"},
		{"an error without a reason", func(n int, r *workerpool.Result[Played], a *queue.Answer) {
			r.Value.Cell.Verdict, r.Value.Cell.Reason = reports.Error, ""
		}, "is error without a reason"},
		{"an endless text", func(n int, r *workerpool.Result[Played], a *queue.Answer) { r.Stderr = strings.Repeat("x", maxBody) }, "more than the limit of 16777216"},
		{"not applicable", func(n int, r *workerpool.Result[Played], a *queue.Answer) {
			r.Value.Cell.Verdict, r.Value.Cell.Reason = reports.NotApplicable, "x"
		}, "there is nothing to play, and there is"},
		{"late where time is virtual", func(n int, r *workerpool.Result[Played], a *queue.Answer) { r.Value.Late = time.Hour }, "is late by"},
		{"paths and names", func(n int, r *workerpool.Result[Played], a *queue.Answer) {
			r.Value.Cell.World, r.Value.Cell.Strategy, r.Value.Cell.Scenario = "../../../secret", "evil", "../evil"
			r.Value.Cell.History = "../../../secret"
			a.Files["../../secret"], a.Files["/secret"], a.Files[logsPrefix+"../../secret"] = []byte("x"), []byte("x"), []byte("x")
		}, ""},
		{"what is expected", func(n int, r *workerpool.Result[Played], a *queue.Answer) {
			r.Value.Cell.Expected, r.Value.Cell.AtMost, r.Value.Cell.Late = checker.Anomalies(), true, []string{"x"}
			r.Value.Cell.Twin = &reports.ReferenceCell{Verdict: reports.Held}
		}, ""},
		{"figures", func(n int, r *workerpool.Result[Played], a *queue.Answer) {
			r.Value.Cell.RoundTrips = map[checker.Op]int{checker.Acquire: 77}
		}, "its figures differ"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			l, s, said := newLiar(t, c.spoil)
			got := map[int]reports.Cell{}
			err := s.run(t.Context(), workerpool.Options{}, slices.Values(cellsOf(filepath.Join(dir, "out"))), func(j Job, r workerpool.Result[Played]) error {
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
func TestSlowPoisonedCounts(t *testing.T) {
	plan := soak.Plan{Clients: 2, Think: 10 * time.Second, Hold: time.Second, TTL: 10 * time.Second, Nodes: 1, Window: 2 * time.Minute, Seed: 1}
	nemesis, err := soak.ParseNemesis("pause:40s:12s..20s", plan.TTL)
	if err != nil {
		t.Fatal(err)
	}
	plan.Nemeses = []soak.Nemesis{nemesis}
	jobs := func(yield func(Job) bool) {
		for n := range 3 * sampled {
			name := fmt.Sprintf("window-%d", n)
			if !yield(Job{
				Number: n, Strategy: "set-nx-px-lua", Scenario: name, File: name + selection.ScriptSuffix, Source: []byte(plan.Script(n)),
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
		spoil func(n int, r *workerpool.Result[Played], a *queue.Answer)
		most  int // replays
		out   bool
	}{
		{"nothing", func(int, *workerpool.Result[Played], *queue.Answer) {}, 12, false},
		{"all without anomalies", func(_ int, r *workerpool.Result[Played], _ *queue.Answer) {
			r.Value.Counts = &soak.Counts{Acquired: 1000, Updates: 1000}
			r.Value.Cell.Verdict = reports.Held
		}, 12, true},
		{"an incident that is none", func(n int, r *workerpool.Result[Played], _ *queue.Answer) {
			if n == 5 {
				r.Value.Counts.First[checker.TokenOrder] = time.Second
			}
		}, 12, true},
		{"no counts", func(_ int, r *workerpool.Result[Played], _ *queue.Answer) { r.Value.Counts = nil }, 12, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, s, said := newLiar(t, c.spoil)
			replays := 0
			play := s.here
			s.here = func(ctx context.Context, o workerpool.Options, j Job) (workerpool.Result[Played], error) {
				replays++
				return play(ctx, o, j)
			}
			got := map[int]*soak.Counts{}
			err := s.run(t.Context(), workerpool.Options{}, jobs, func(j Job, r workerpool.Result[Played]) error {
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
	j := Job{Strategy: "set-nx-px-lua", Scenario: "contention", Place: worlds.Place{World: worlds.Sim}, Seed: 1}
	a := &kit.App{Everything: all.Registry()}
	s, err := newRemote(nil, a, func(string) {})
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
