package cells

import (
	"context"
	"runtime"
	"slices"

	"github.com/lockfault/lockfault/internal/cellresult"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

// CompareWithReferences plays the reference locks of those cells that show less than they may, in
// virtual time on this machine. [Expectations.Of] tells the cells afterwards what these locks did.
// Visit calls a function for each cell of the run, which needs no expectations yet. A cell whose
// reference lock comes to no verdict is compared with none.
func (o *Settings) CompareWithReferences(ctx context.Context, e *Expectations, registry strategies.Registry, scripts []selection.Chosen, visit func(func(reports.Cell) error) error) error {
	type run struct {
		strategy, scenario string
		nodes              int
	}
	wanted := map[run][]pair{}
	refusals := map[pair]string{}
	var runs []run
	err := visit(func(c reports.Cell) error {
		of := pairOf(c)
		e.Of(&c)
		c.Settle()
		lock, refuses, ok := cellresult.Reference(e.cells[of].Strategy, registry)
		if _, known := refusals[of]; c.NotBetter == nil || known || !ok {
			return nil
		}
		r := run{lock.Name, c.Scenario, max(1, lock.Nodes)}
		if wanted[r] == nil {
			runs = append(runs, r)
		}
		wanted[r], refusals[of] = append(wanted[r], of), refuses
		return nil
	})
	if err != nil || len(runs) == 0 {
		return err
	}
	temp, err := MakeTraces()
	if err != nil {
		return err
	}
	defer temp.Remove() // a directory that cannot be removed now is removed by a later run
	here := *o
	here.Remote, here.Subject = nil, nil
	e.references = map[pair]*reports.ReferenceLock{}
	var jobs []Job
	for _, r := range runs {
		lock, _ := registry.Lookup(r.strategy)
		script := scripts[slices.IndexFunc(scripts, func(s selection.Chosen) bool { return s.Name == r.scenario })]
		here.Nodes = r.nodes
		for j := range here.Jobs(worlds.Sim, len(jobs), []selection.Chosen{script}, []strategies.Strategy{lock}, temp.Path()) {
			jobs = append(jobs, j)
		}
	}
	err = here.Play(ctx, worlds.Sim, runtime.NumCPU(), slices.Values(jobs), func(j Job, p Played) error {
		if p.Cell.Verdict != reports.Held && p.Cell.Verdict != reports.Violated {
			return nil
		}
		for _, of := range wanted[runs[j.Number]] {
			e.references[of] = &reports.ReferenceLock{Strategy: j.Strategy, Refuses: refusals[of], Acquires: p.Cell.Acquires}
		}
		return nil
	})
	return kit.Interrupted(err, "interrupted before the cells were compared with those of other locks; --resume goes on")
}
