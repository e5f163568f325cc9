package cells

import (
	"context"
	"iter"
	"runtime"
	"slices"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

// Observe returns the strategies with the tags that short runs on this machine show ([leases.Observe]).
// They run in virtual time, and those of a user's program in the first of the worlds. Built-in
// strategies and strategies of other services than Redis keep their tags, as does a strategy whose runs
// fail: its cells will say why.
func (o *Settings) Observe(ctx context.Context, list []strategies.Strategy) ([]strategies.Strategy, error) {
	list = slices.Clone(list)
	o.observed = map[string][]string{}
	here := *o
	here.Remote, here.CellTimeout = nil, 0
	var own, programs []*strategies.Strategy
	for i, s := range list {
		if classes := leases.Declared(s.Tags); len(classes) > 1 && !s.Builtin() {
			return nil, kit.Usage("%s declares two classes, %s and %s: leave one of these tags out", s.Name, classes[0], classes[1])
		}
		switch {
		case !isObserved(s):
		case s.Program != nil:
			programs = append(programs, &list[i])
		default:
			own = append(own, &list[i])
		}
	}
	err := here.observe(ctx, worlds.Sim, own)
	if err == nil && len(programs) > 0 {
		err = here.observe(ctx, o.Worlds[0], programs)
	}
	o.hints = here.hints
	return list, err
}

// isObserved reports whether Observe plays the probes of a strategy.
func isObserved(s strategies.Strategy) bool {
	return !s.Builtin() && s.RunsOn() == strategies.Redis
}

// observe adds to strategies the tags that they show in a world.
func (o *Settings) observe(ctx context.Context, world string, list []*strategies.Strategy) error {
	if len(list) == 0 {
		return nil
	}
	temp, err := MakeTraces()
	if err != nil {
		return err
	}
	defer temp.Remove() // a directory that cannot be removed now is removed by a later run
	histories := map[string]map[string]checker.History{}
	// The first probe alone at first: a lock that fails there, or hangs, would fail in the others, too.
	for _, first := range []bool{true, false} {
		jobs := o.probes(world, list, temp.Path(), func(s *strategies.Strategy, n int) bool {
			return first == (n == 0) && (first || histories[s.Name] != nil)
		})
		err := o.Play(ctx, world, o.At(world).Crowd()*runtime.NumCPU(), jobs, func(j Job, p Played) error {
			if p.Cell.History == "" || !p.Cell.Decided() {
				return nil
			}
			h, err := reports.ReadHistory(temp.Path(), p.Cell.History)
			if histories[j.Strategy] == nil {
				histories[j.Strategy] = map[string]checker.History{}
			}
			histories[j.Strategy][j.Scenario] = h
			return err
		})
		if err != nil {
			return kit.Interrupted(err, "interrupted before a cell was played")
		}
	}
	for _, s := range list {
		if seen, err := leases.Observe(*s, histories[s.Name]); err == nil {
			for _, hint := range seen.Hints() {
				o.hints = append(o.hints, s.Name+": "+hint)
			}
			o.observed[s.Name] = seen.Tags[len(s.Tags):]
			s.Tags = seen.Tags
		}
	}
	return nil
}

// probes yields a job for each strategy and each of its probes that is wanted, by number.
func (o *Settings) probes(world string, list []*strategies.Strategy, dir string, wanted func(s *strategies.Strategy, n int) bool) iter.Seq[Job] {
	return func(yield func(Job) bool) {
		for _, s := range list {
			for n, script := range leases.Probes(*s) {
				if !wanted(s, n) {
					continue
				}
				chosen := selection.Chosen{Script: script, File: script.Name + selection.ScriptSuffix, Source: script.Format()}
				for j := range o.Jobs(world, 0, []selection.Chosen{chosen}, []strategies.Strategy{*s}, dir) {
					if !yield(j) {
						return
					}
				}
			}
		}
	}
}
