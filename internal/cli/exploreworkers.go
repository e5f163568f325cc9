package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/stdio"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
)

// An explorer plays scripts in worker processes. What goes on from another script is played where that
// was, for its run is kept there: see [explore.RunCache].
type explorer struct {
	options  *exploreOptions
	strategy strategies.Strategy
	pool     workerpool.Options
	workers  []workerpool.IdleWorkers // of one worker each
	keeps    []bool                   // there may be runs

	seed  maphash.Seed
	homes map[int]map[uint64][]int // for paths of so many moves, by their hash: the lanes where their runs are
}

// newExplorer returns one with so many workers. Whoever makes one closes it.
func newExplorer(o *exploreOptions, strategy strategies.Strategy, workers int, options workerpool.Options) *explorer {
	options.Workers = 1
	options.Fresh = func(j any) bool { return j.(job).Isolated }
	return &explorer{
		options: o, strategy: strategy, pool: options, workers: make([]workerpool.IdleWorkers, workers), keeps: make([]bool, workers),
		seed: maphash.MakeSeed(), homes: map[int]map[uint64][]int{},
	}
}

// close ends the workers.
func (e *explorer) close() {
	var ends sync.WaitGroup
	for i := range e.workers {
		ends.Go(func() { e.workers[i].Close(0) })
	}
	ends.Wait()
}

// PlayAlone implements [explore.Player].
func (e *explorer) PlayAlone(ctx context.Context, trial explore.Trial) (look explore.Outcome, err error) {
	trial.Moves = 0 // how it ends is seen in the same process
	err = workerpool.Run(ctx, e.pool, slices.Values([]job{e.job(true, []explore.Trial{trial}, []int{0})}), func(_ job, r workerpool.Result[played]) error {
		look = looksOf(r)[0]
		return nil
	})
	return look, err
}

// Play implements [explore.Player].
func (e *explorer) Play(ctx context.Context, trials []explore.Trial) ([]explore.Outcome, error) {
	d := itemBatch{explorer: e, trials: trials, outcomes: make([]explore.Outcome, len(trials)), singly: make([]bool, len(e.workers))}
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
func (e *explorer) End(ctx context.Context) (left string, err error) {
	for lane := range e.workers {
		if !e.keeps[lane] {
			continue
		}
		e.keeps[lane] = false
		options := e.pool
		options.Idle = &e.workers[lane]
		err := workerpool.Run(ctx, options, slices.Values([]job{{Strategy: e.strategy.Name, Nodes: e.options.nodes, Leave: true}}), func(_ job, r workerpool.Result[played]) error {
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

// sheaf is how many trials a worker is given at most at a time: so it is not woken for each.
const sheaf = 16

// An itemBatch is trials that are being played.
type itemBatch struct {
	*explorer
	trials   []explore.Trial
	outcomes []explore.Outcome

	mu         sync.Mutex // guards what follows, and homes
	own        [][]int    // the trials that are for a lane, by their places
	unassigned []int      // those for any
	singly     []bool     // a lane has lost a worker, and it isn't known by which trial
}

// play plays what a lane gets, until nothing is left for it.
func (d *itemBatch) play(ctx context.Context, lane int) error {
	options := d.pool
	options.Idle = &d.workers[lane]
	for some := true; some; {
		some = false
		err := workerpool.Run(ctx, options, func(yield func(job) bool) {
			for places := d.next(lane); len(places) > 0 && yield(d.job(false, d.trials, places)); {
				some = true
				places = d.next(lane)
			}
		}, func(j job, r workerpool.Result[played]) error {
			d.take(lane, j.places, r)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// next returns what a lane plays next.
func (d *itemBatch) next(lane int) (places []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	from, n := &d.own[lane], sheaf
	if len(*from) == 0 {
		from, n = &d.unassigned, min(sheaf, 1+len(d.unassigned)/len(d.workers)/2) // there is something left for each
	}
	if d.singly[lane] {
		n = 1
	}
	n = min(n, len(*from))
	places, *from = (*from)[:n:n], (*from)[n:]
	return places
}

// take takes note of what a worker saw. What it did not come to is played again.
func (d *itemBatch) take(lane int, places []int, r workerpool.Result[played]) {
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

// assign says which trials are for which lane, and which for any, by their places. All have as many
// moves; runs of other numbers are gone, see [explore.RunCache].
func (e *explorer) assign(trials []explore.Trial) (own [][]int, others []int) {
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

// settle takes note of the lane that has a trial's run.
func (e *explorer) settle(trial explore.Trial, lane int) {
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

func (e *explorer) hash(path string) uint64 { return maphash.String(e.seed, path) }

// job returns some trials, by their places, as work for a worker.
func (e *explorer) job(alone bool, trials []explore.Trial, places []int) job {
	list := make([]explore.Trial, len(places))
	for i, at := range places {
		list[i] = trials[at]
	}
	return job{
		Strategy: e.strategy.Name, Place: worlds.Place{World: worlds.Sim}, Seed: e.options.seed, Limit: e.options.cellTimeout, Nodes: e.options.nodes,
		Isolated: alone, Trials: list, places: places,
	}
}

// pack encodes looks. They are most of what goes between processes, and JSON would take as long as many a
// script.
func pack(looks []explore.Outcome) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(looks)
	return b.Bytes(), err
}

// unpack undoes pack.
func unpack(text []byte) (looks []explore.Outcome, err error) {
	err = gob.NewDecoder(bytes.NewReader(text)).Decode(&looks)
	return looks, err
}

// looksOf returns what a worker saw: something at least.
func looksOf(r workerpool.Result[played]) []explore.Outcome {
	switch {
	case r.Failure != nil:
		return []explore.Outcome{{Err: r.Failure.Error()}}
	case len(r.Value.Outcomes) == 0:
		return []explore.Outcome{{Err: r.Value.Cell.Reason + stdio.OutputTail("it", r.Stderr)}}
	}
	looks, err := unpack(r.Value.Outcomes)
	if err != nil {
		return []explore.Outcome{{Err: "the worker process gave an answer that can't be read: " + err.Error()}}
	}
	if last := &looks[len(looks)-1]; last.Err != "" {
		last.Err += stdio.OutputTail("it", r.Stderr)
	}
	return looks
}
