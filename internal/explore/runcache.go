package explore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/harness"
)

// A RunCache plays trials in virtual time, and keeps what they have come to: one whose path goes on from that
// of another is played on from there, in the same world with the same clients, not from the beginning. So it is no
// other run than one that was played at once, and what comes of it is the same to the byte. A run goes on
// once: who comes second has one of its own. The zero value is ready for use, by one goroutine at a time; whoever is done
// with it calls [RunCache.End].
type RunCache struct {
	cell  string // of which the runs are
	moves int    // of the trial that was played last
	runs  map[string][]*cachedRun
	many  int
	spare *harness.ServerPool
	left  string // what a run left behind; from then on none is kept
}

// mostKept is how many runs a house keeps: some 100 KiB each.
const mostKept = 256

// A cachedRun is a run that may go on, with a path of so many moves.
type cachedRun struct {
	*harness.Run
	past  historyCursor
	moves int
}

// From returns the path that a trial goes on from, and Path its own, as scripts begin; both are empty for a
// trial that nobody goes on from.
func (t Trial) From() string {
	if t.Moves == 0 {
		return ""
	}
	rest := t.Script
	for range t.Mark - 1 {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	return t.Script[:len(t.Script)-len(rest)]
}

// Path returns the path of a trial; see [Trial.From].
func (t Trial) Path() string {
	if t.Moves == 0 {
		return ""
	}
	return t.Script[:strings.LastIndex(t.Script, "\nexpect ")]
}

// Play plays a trial as [Play] does. How a run ends that was kept is seen when it does, and [Outcome.Left] says what was
// wrong with that.
func (h *RunCache) Play(t *testing.T, cell harness.Cell, trial Trial) (look Outcome) {
	if ok, _ := cell.Applies(); !ok || trial.Moves == 0 || h.left != "" || cell.Place != nil || cell.Limit > 0 {
		return Play(t, cell, trial)
	}
	defer func() { look.Left = h.left }()
	name := fmt.Sprintf("%s %d %v %d", cell.Strategy.Name, cell.Strategy.Nodes, cell.TTL, cell.Seed)
	if h.cell != name {
		h.End()
		h.cell = name
	}
	h.tidy(trial.Moves)
	if h.spare == nil {
		h.spare = &harness.ServerPool{}
	}
	cell.Spares = h.spare
	run := h.acquire(trial.From())
	if run == nil {
		run = &cachedRun{Run: harness.Begin(t, cell)}
	}
	outcome, views := run.Continue(cell.Script, trial.Half)
	look = lookAt(outcome, views, trial, &run.past)
	if run.moves = trial.Moves; look.Err == "" && !trial.Last && h.many < mostKept {
		h.keep(trial.Path(), run)
	} else if err := run.End(); err != nil {
		look = Outcome{Err: err.Error()}
		h.spare = nil // somebody may have them still
	}
	return look
}

// acquire returns a run with that path, nil if there is none.
func (h *RunCache) acquire(path string) *cachedRun {
	list := h.runs[path]
	if len(list) == 0 {
		return nil
	}
	run := list[len(list)-1]
	h.many--
	if h.runs[path] = list[:len(list)-1]; len(list) == 1 {
		delete(h.runs, path)
	}
	return run
}

func (h *RunCache) keep(path string, run *cachedRun) {
	if h.runs == nil {
		h.runs = map[string][]*cachedRun{}
	}
	h.runs[path] = append(h.runs[path], run)
	h.many++
}

// tidy ends runs that nobody goes on from, now that paths of so many moves are played: searches play them
// layer by layer.
func (h *RunCache) tidy(moves int) {
	if h.moves == moves {
		return
	}
	h.moves = moves
	for path, list := range h.runs {
		if m := list[0].moves; m != moves && m != moves-1 {
			h.end(path)
		}
	}
}

func (h *RunCache) end(path string) {
	for run := h.acquire(path); run != nil; run = h.acquire(path) {
		if err := run.End(); err != nil && h.left == "" {
			h.left = err.Error()
			h.spare = nil
		}
	}
}

// End ends all runs, and says what was wrong with that; nothing if it is empty. The house may go on.
func (h *RunCache) End() (left string) {
	for path := range h.runs {
		h.end(path)
	}
	return h.left
}
