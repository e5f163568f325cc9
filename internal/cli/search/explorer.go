package search

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/stdio"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
)

// Explorer plays scripts in worker processes. A script that continues another is played by the
// worker that caches its run: see [explore.RunCache].
type Explorer struct {
	options  *cells.Settings
	strategy strategies.Strategy
	pool     workerpool.Options
	workers  []workerpool.IdleWorkers // one worker each, by lane
	keeps    []bool                   // lanes whose worker may cache runs

	seed  maphash.Seed
	homes map[int]map[uint64][]int // number of moves → hash of the path → lanes that cache its run
}

// NewExplorer returns an explorer with the given number of workers. The caller closes it.
func NewExplorer(o *cells.Settings, strategy strategies.Strategy, workers int, options workerpool.Options) *Explorer {
	options.Workers = 1
	options.Fresh = func(j any) bool { return j.(cells.Job).Isolated }
	return &Explorer{
		options: o, strategy: strategy, pool: options, workers: make([]workerpool.IdleWorkers, workers), keeps: make([]bool, workers),
		seed: maphash.MakeSeed(), homes: map[int]map[uint64][]int{},
	}
}

// Close ends the worker processes and waits for them.
func (e *Explorer) Close() {
	var ends sync.WaitGroup
	for i := range e.workers {
		ends.Go(func() { e.workers[i].Close(0) })
	}
	ends.Wait()
}

// PlayAlone implements [explore.Player].
func (e *Explorer) PlayAlone(ctx context.Context, trial explore.Trial) (look explore.Outcome, err error) {
	trial.Moves = 0 // run it to its end in the same process
	err = workerpool.Run(ctx, e.pool, slices.Values([]cells.Job{e.job(true, []explore.Trial{trial}, []int{0})}), func(_ cells.Job, r workerpool.Result[cells.Played]) error {
		look = looksOf(r)[0]
		return nil
	})
	return look, err
}

// Play implements [explore.Player].
func (e *Explorer) Play(ctx context.Context, trials []explore.Trial) ([]explore.Outcome, error) {
	d := itemBatch{Explorer: e, trials: trials, outcomes: make([]explore.Outcome, len(trials)), singly: make([]bool, len(e.workers))}
	d.own, d.unassigned = e.assign(trials)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	for lane := range e.workers {
		work.Go(func() {
			if err := d.play(ctx, lane); err != nil {
				cancel(err)
			}
		})
	}
	work.Wait()
	return d.outcomes, context.Cause(ctx)
}

// End implements [explore.ResumingPlayer].
func (e *Explorer) End(ctx context.Context) (left string, err error) {
	for lane := range e.workers {
		if !e.keeps[lane] {
			continue
		}
		e.keeps[lane] = false
		options := e.pool
		options.Idle = &e.workers[lane]
		err := workerpool.Run(ctx, options, slices.Values([]cells.Job{{Strategy: e.strategy.Name, Nodes: e.options.Nodes, Leave: true}}), func(_ cells.Job, r workerpool.Result[cells.Played]) error {
			left = cmp.Or(left, r.Value.Left)
			if r.Failure != nil {
				left = cmp.Or(left, r.Failure.Error())
			}
			return nil
		})
		if err != nil {
			return left, err
		}
	}
	return left, nil
}

// sheaf is the largest number of trials per job, which saves waking the worker for each.
const sheaf = 16

// itemBatch is a list of trials during one call of Play.
type itemBatch struct {
	*Explorer
	trials   []explore.Trial
	outcomes []explore.Outcome

	mu         sync.Mutex // guards the fields below, and homes
	own        [][]int    // indexes of the trials assigned to each lane
	unassigned []int      // indexes of the trials for any lane
	singly     []bool     // lanes that lost a worker to an unknown trial, and play trials one by one
}

// play plays the trials of a lane until none is left for it.
func (d *itemBatch) play(ctx context.Context, lane int) error {
	options := d.pool
	options.Idle = &d.workers[lane]
	for some := true; some; {
		some = false
		err := workerpool.Run(ctx, options, func(yield func(cells.Job) bool) {
			for places := d.next(lane); len(places) > 0 && yield(d.job(false, d.trials, places)); {
				some = true
				places = d.next(lane)
			}
		}, func(j cells.Job, r workerpool.Result[cells.Played]) error {
			d.take(lane, j.Places, r)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// next returns the indexes of the next trials of a lane, at most sheaf; none if no trial is left.
func (d *itemBatch) next(lane int) (places []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	from, n := &d.own[lane], sheaf
	if len(*from) == 0 {
		from, n = &d.unassigned, min(sheaf, 1+len(d.unassigned)/len(d.workers)/2) // leave some for the other lanes
	}
	if d.singly[lane] {
		n = 1
	}
	n = min(n, len(*from))
	places, *from = (*from)[:n:n], (*from)[n:]
	return places
}

// take records the outcomes of a job. Trials without an outcome are queued again; after a worker's
// failure in a job of several trials, all of them are repeated one by one.
func (d *itemBatch) take(lane int, places []int, r workerpool.Result[cells.Played]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Failure != nil && len(places) > 1 {
		d.singly[lane] = true
		d.own[lane] = append(d.own[lane], places...)
		return
	}
	seen := looksOf(r)
	for i, look := range seen {
		d.outcomes[places[i]] = look
		d.settle(d.trials[places[i]], lane)
	}
	d.own[lane] = append(d.own[lane], places[len(seen):]...)
}

// assign distributes trials by their indexes: own to the lanes that cache the runs they continue,
// others to any lane. All trials have the same number of moves; cached runs of other lengths are
// gone, see [explore.RunCache].
func (e *Explorer) assign(trials []explore.Trial) (own [][]int, others []int) {
	own = make([][]int, len(e.workers))
	for i, trial := range trials {
		for moves := range e.homes {
			if moves != trial.Moves && moves != trial.Moves-1 {
				delete(e.homes, moves)
			}
		}
		homes, from := e.homes[trial.Moves-1], e.hash(trial.From())
		if list := homes[from]; len(list) > 0 {
			lane := list[len(list)-1]
			homes[from] = list[:len(list)-1]
			own[lane] = append(own[lane], i)
		} else {
			others = append(others, i)
		}
	}
	return own, others
}

// settle records the lane that caches the run of a trial.
func (e *Explorer) settle(trial explore.Trial, lane int) {
	if trial.Moves == 0 || trial.Last {
		return
	}
	e.keeps[lane] = true
	if e.homes[trial.Moves] == nil {
		e.homes[trial.Moves] = map[uint64][]int{}
	}
	path := e.hash(trial.Path())
	e.homes[trial.Moves][path] = append(e.homes[trial.Moves][path], lane)
}

func (e *Explorer) hash(path string) uint64 { return maphash.String(e.seed, path) }

// job returns the trials at the given indexes as a job of a worker. With alone it runs in a new
// process.
func (e *Explorer) job(alone bool, trials []explore.Trial, places []int) cells.Job {
	list := make([]explore.Trial, len(places))
	for i, at := range places {
		list[i] = trials[at]
	}
	j := e.options.Job(e.strategy)
	j.Place, j.Isolated, j.Trials, j.Places = worlds.Place{World: worlds.Sim}, alone, list, places
	return j
}

// looksOf returns the outcomes of a job, at least one: a failure becomes an outcome with an error.
func looksOf(r workerpool.Result[cells.Played]) []explore.Outcome {
	switch {
	case r.Failure != nil:
		return []explore.Outcome{{Err: r.Failure.Error()}}
	case len(r.Value.Outcomes) == 0:
		return []explore.Outcome{{Err: r.Value.Cell.Reason + stdio.OutputTail("it", r.Stderr)}}
	}
	looks, err := cells.Unpack(r.Value.Outcomes)
	if err != nil {
		return []explore.Outcome{{Err: "the worker process gave an answer that can't be read: " + err.Error()}}
	}
	if last := &looks[len(looks)-1]; last.Err != "" {
		last.Err += stdio.OutputTail("it", r.Stderr)
	}
	return looks
}
