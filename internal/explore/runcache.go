package explore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/harness"
)

// A RunCache plays trials in virtual time and keeps their runs. A trial whose path continues that
// of a kept run is played on from there, in the same world with the same clients, instead of from
// the beginning. The outcome is byte-identical to that of a run played at once. Each run is
// continued at most once; a second trial with the same prefix gets a new run.
//
// The zero value is ready for use, by one goroutine at a time. The caller must call [RunCache.End]
// when done.
type RunCache struct {
	cell  string // the cell that the runs belong to
	moves int    // transitions of the trial that was played last
	runs  map[string][]*cachedRun
	many  int
	spare *harness.ServerPool
	left  string // what a run failed to clean up; from then on no run is kept
	leak  string // a goroutine that outlived its run, the first in the order of their texts
	leaky int    // number of runs that left goroutines, which stay until the process ends
}

// mostKept is the largest number of runs that a RunCache keeps; docs/explore.md states their size.
const mostKept = 256

// A cachedRun is a run that may be continued, and the number of transitions on its path.
type cachedRun struct {
	*harness.Run
	past  historyCursor
	moves int
}

// From returns the beginning of the script that the trial continues, up to its Mark. From and
// [Trial.Path] return "" for a trial that must be played from the beginning.
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

// Path returns the beginning of the script that contains the trial's whole path; see [Trial.From].
func (t Trial) Path() string {
	if t.Moves == 0 {
		return ""
	}
	return t.Script[:strings.LastIndex(t.Script, "\nexpect ")]
}

// Play plays a trial as the function [Play] does. [Outcome.Left] describes what went wrong when a
// kept run ended, which may be the run of an earlier trial.
func (h *RunCache) Play(t *testing.T, cell harness.Cell, trial Trial) (look Outcome) {
	if ok, _ := cell.Applies(); !ok || trial.Moves == 0 || h.left != "" || cell.Place != nil || cell.Limit > 0 {
		return Play(t, cell, trial)
	}
	defer func() { look.Left, look.Leak = h.left, h.leak }()
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
	} else if leak, err := run.End(); err != nil {
		look = Outcome{Err: err.Error()}
		h.spare = nil // goroutines of the run may still use the spare servers
	} else {
		h.leaks(leak)
	}
	return look
}

// leaks records a leak, unless it is empty. Its goroutines may still use the spare servers.
func (h *RunCache) leaks(leak string) {
	if leak == "" {
		return
	}
	if h.leak == "" || leak < h.leak {
		h.leak = leak
	}
	h.leaky++
	h.spare = nil
}

// mostLeaky limits the runs whose goroutines stay in memory.
const mostLeaky = 500

// Worn reports whether the process should not play on, because of what runs have left in it.
func (h *RunCache) Worn() bool { return h.leaky >= mostLeaky }

// acquire removes and returns a kept run with the given path; nil if there is none.
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

// tidy ends the runs that no trial continues any more, now that paths of the given length are
// played: searches play their paths layer by layer.
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
		leak, err := run.End()
		if h.leaks(leak); err != nil && h.left == "" {
			h.left = err.Error()
			h.spare = nil
		}
	}
}

// End ends all kept runs and returns a description of what went wrong; left is "" if nothing did.
// The RunCache may be used again after End.
func (h *RunCache) End() (left string) {
	for path := range h.runs {
		h.end(path)
	}
	return h.left
}
