// Package workercmd is the command worker: it takes cells and parts of searches from a queue, or jobs
// from a parent process.
package workercmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/search"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/queue/item"
	"github.com/lockfault/lockfault/internal/tempdir"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
)

type joinOptions struct {
	cells.QueueFlags
	jobs        int
	memory      string
	servers     []string // programs that items may name
	images      []string // images that items may name
	cellTimeout time.Duration
	searchLimit time.Duration
}

func NewCommand(a *kit.App) *cobra.Command {
	var o joinOptions
	cmd := &cobra.Command{
		Use:   cells.WorkerCommand,
		Short: "Play work from a queue",
		Long: `Take work from a queue and reply with results until interrupted. The work consists of cells,
windows and points of run, soak and map, and parts of searches of explore, which were started
with --queue.

Workers and requesters must run the same executable file, because the locks of another build
may differ. If a worker ends or crashes, another worker takes its unfinished work.

An item of a queue holds names, seeds, bounded numbers and the text of a script, but no path,
program or argument list. Servers are redis-server or valkey-server from PATH, or those that
--redis-server and --image allow.`,
		Example: `  lockfault worker --queue nats://127.0.0.1:4222 --queue-creds queue/queue.key
  lockfault worker --queue tls://queue.example:4222 --queue-creds worker.creds --queue-ca ca.pem`,
		Args: kit.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags := cmd.Flags(); flags.NFlag() == 0 && !term.IsTerminal(int(os.Stdin.Fd())) {
				return cells.Work(a) // a worker process of a parent process
			}
			return o.join(cmd, a)
		},
	}
	o.AddFlags(cmd.Flags(), "`URL` of the queue, such as nats://127.0.0.1:4222; several servers are separated by commas")
	cmd.Flags().IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of cells to play in parallel, each in a process")
	cmd.Flags().StringSliceVar(&o.servers, "redis-server", nil, "server `programs` that items may request by file name, in addition to redis-server and valkey-server from PATH")
	cmd.Flags().StringSliceVar(&o.images, "image", []string{worlds.DefaultImage}, "`images` of the world docker that items may request")
	cmd.Flags().DurationVar(&o.cellTimeout, "cell-timeout", time.Hour, "maximum real time of one cell, even if an item requests more")
	cmd.Flags().DurationVar(&o.searchLimit, "search-timeout", 12*time.Hour, "maximum real time of one part of a search")
	cmd.Flags().StringVar(&o.memory, "memory", "4GiB", "`size` of this process at which a search ends, such as 512MiB, without the worker processes")
	return cmd
}

func (o *joinOptions) join(cmd *cobra.Command, a *kit.App) error {
	if err := cmp.Or(
		kit.UsageIf(o.Address.URLs == "", "name a queue with --queue, such as nats://127.0.0.1:4222"),
		kit.UsageIf(o.jobs < 1 || o.jobs > kit.MaxWorkers, "--jobs %d: give 1 to %d", o.jobs, kit.MaxWorkers),
		kit.UsageIf(o.cellTimeout <= 0 || o.cellTimeout > item.MaxLimit, "--cell-timeout %v: must be more than 0 and at most %v", o.cellTimeout, item.MaxLimit),
		kit.UsageIf(o.searchLimit <= 0, "--search-timeout %v: must be more than 0", o.searchLimit),
	); err != nil {
		return err
	}
	servers, err := cells.ServersByName(o.servers)
	if err != nil {
		return err
	}
	if err := o.Check(cmd); err != nil {
		return err
	}
	start, err := cells.StartWorker()
	if err != nil {
		return err
	}
	memory, err := kit.LimitMemory(o.memory)
	if err != nil {
		return err
	}
	defer memory.Release()
	p, err := cells.ProgramOf(a.Everything)
	if err != nil {
		return err
	}
	c, err := o.Connect(cmd, a)
	if err != nil {
		return err
	}
	defer c.Close()
	temp, err := tempdir.Make("", joinPrefix)
	if err != nil {
		return err
	}
	defer temp.Remove()
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	h := cells.NewQueueWorker(a.Everything, temp.Path(), servers, o.images, (&searchWorker{a.Everything, o.jobs, memory, start, o.searchLimit}).search)
	h.Pool = workerpool.Options{Workers: o.jobs, Start: start, Limit: func(j any) time.Duration { return min(cells.LimitOf(j.(cells.Order).Job), o.cellTimeout) }, Grace: cells.Grace(worlds.Docker), Busy: cells.Busy, Fresh: func(j any) bool { return j.(cells.Order).NeedsFresh() }}
	var playing sync.WaitGroup
	playing.Go(func() { cancel(h.Play(ctx)) })
	fmt.Fprintf(cmd.OutOrStdout(), "taking work of %s, build %s, as worker %s\n", p.Version, p.Class, queue.Short(c.Worker()))
	err = c.Work(ctx, p, queue.Worker{Slots: o.jobs, Do: h.Do})
	interrupted := cmd.Context().Err() != nil
	cancel(nil)
	playing.Wait()
	h.Sweep()
	switch {
	case interrupted:
		return kit.Exit(kit.ExitInterrupted, nil)
	case errors.Is(err, queue.ErrForeign):
		return kit.Usage("%v: a worker must be the same program as the requester", err)
	}
	return err
}

// joinPrefix begins the names of the temporary directories of queue workers.
const joinPrefix = "lockfault-worker-"

// searchWorker searches parts for a queue.
type searchWorker struct {
	registry strategies.Registry
	jobs     int
	memory   kit.MemoryLimit
	start    func() *exec.Cmd
	limit    time.Duration // longest real time of a part
}

// search searches a part of a search with all worker processes.
func (w *searchWorker) search(ctx context.Context, t queue.Task) (queue.Answer, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	limit := time.AfterFunc(w.limit, func() { end(explore.Cut(fmt.Sprintf("more than the %v that its worker gives a part", w.limit))) })
	defer limit.Stop()
	reply := func(r explore.Result, err error) (queue.Answer, error) {
		s := search.PartResult{Result: r}
		if err != nil {
			s.Err = err.Error()
		}
		text, err := json.Marshal(s)
		return queue.Answer{Body: text}, err
	}
	p, err := item.ReadSearch(t.Item)
	if err != nil {
		return queue.Answer{}, fmt.Errorf("%w: %w", queue.ErrBadItem, err)
	}
	if t.Times > queue.MostTimes {
		return reply(explore.Result{}, fmt.Errorf("it was given to %d workers, and none of them answered: what it takes of a machine may end them", queue.MostTimes))
	}
	s, ok := w.registry.Lookup(p.Strategy)
	if !ok {
		return reply(explore.Result{}, fmt.Errorf("the worker knows no strategy %q", p.Strategy))
	}
	if p.Nodes > 0 {
		if s, err = s.On(p.Nodes); err != nil {
			return reply(explore.Result{}, err)
		}
	}
	options := cells.Settings{Seed: p.Seed, Nodes: p.Nodes, CellTimeout: p.Limit}
	list, err := options.Observe(ctx, []strategies.Strategy{s})
	if err != nil {
		return reply(explore.Result{}, err)
	}
	s = list[0]
	var reach search.Reach
	p.Bound.Reach, p.Bound.Lock = reach.Get, leases.LockOf(s)
	go func() {
		for note := range t.Notes {
			switch note.Key {
			case queue.Dropped + t.Name:
				end(search.ErrDropped)
			case search.ReachNote:
				reach.Set(note.Value)
			}
		}
	}()
	e := search.NewExplorer(&options, s, w.jobs, workerpool.Options{Start: w.start, Limit: cells.LimitOf})
	defer e.Close()
	result, err := explore.Search(ctx, p.Bound, e, func(explore.Result) { search.CutAt(w.memory, end) })
	var cut explore.Cut
	if cause := context.Cause(ctx); cause != nil && !errors.As(cause, &cut) && !errors.Is(cause, search.ErrDropped) {
		return queue.Answer{}, cause // this worker was stopped
	}
	return reply(result, err)
}
