package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/queue/item"
	"github.com/lockfault/lockfault/internal/tempdir"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

type joinOptions struct {
	queueFlags
	jobs        int
	memory      string
	servers     []string // programs that items may name
	images      []string // images that items may name
	cellTimeout time.Duration
	searchLimit time.Duration
}

func newWorkerCommand(a *app) *cobra.Command {
	var o joinOptions
	cmd := &cobra.Command{
		Use:   workerCommand,
		Short: "Play what other machines ask for, by a queue",
		Long: `Take work from a queue and answer it, until it is interrupted: cells, windows and points of
run, soak and map, and parts of searches of explore, that were started with --on.

Every worker must be the same program as the requester, the same file: the locks of another
build may do something else. When a worker ends or dies, another one gets what it had in hand.

An item of a queue holds names, seeds, bounded numbers and the text of a script. Nothing in it
is a path, a program or an argument list: servers are redis-server or valkey-server from PATH,
and --redis-server and --image name all others that items may ask for.`,
		Example: `  lockfault worker --join nats://127.0.0.1:4222 --queue-creds queue/queue.key
  lockfault worker --join tls://queue.example:4222 --queue-creds worker.creds --queue-ca ca.pem`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags := cmd.Flags(); flags.NFlag() == 0 && !term.IsTerminal(int(os.Stdin.Fd())) {
				return work(a) // a worker process of a parent process
			}
			return o.join(cmd, a)
		},
	}
	o.addFlags(cmd.Flags(), "join", "`URL` of the queue, such as nats://127.0.0.1:4222; several of its servers with commas between them")
	cmd.Flags().IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of cells to play at a time, each in a process")
	cmd.Flags().StringSliceVar(&o.servers, "redis-server", nil, "server `programs` that items may ask for by the name of their file, besides redis-server and valkey-server from PATH")
	cmd.Flags().StringSliceVar(&o.images, "image", []string{worlds.DefaultImage}, "`images` of the world docker that items may ask for")
	cmd.Flags().DurationVar(&o.cellTimeout, "cell-timeout", time.Hour, "longest real time that one cell may take, whatever an item asks for")
	cmd.Flags().DurationVar(&o.searchLimit, "search-timeout", 12*time.Hour, "longest real time that one part of a search may take")
	cmd.Flags().StringVar(&o.memory, "memory", "4GiB", "`size` of this process at which a search ends, such as 512MiB; the processes that play are beside that")
	return cmd
}

func (o *joinOptions) join(cmd *cobra.Command, a *app) error {
	switch {
	case o.at.URLs == "":
		return usage("name a queue with --join, such as nats://127.0.0.1:4222")
	case o.jobs < 1 || o.jobs > mostWorkers:
		return usage("--jobs %d: give 1 to %d", o.jobs, mostWorkers)
	case o.cellTimeout <= 0 || o.cellTimeout > item.MaxLimit:
		return usage("--cell-timeout %v: must be more than 0 and at most %v", o.cellTimeout, item.MaxLimit)
	case o.searchLimit <= 0:
		return usage("--search-timeout %v: must be more than 0", o.searchLimit)
	}
	servers, err := serversByName(o.servers)
	if err != nil {
		return err
	}
	if err := o.check(cmd); err != nil {
		return err
	}
	start, err := startWorker()
	if err != nil {
		return err
	}
	memory, err := limitMemory(o.memory)
	if err != nil {
		return err
	}
	defer memory.release()
	p, err := programOf(a.everything)
	if err != nil {
		return err
	}
	c, err := o.connect(cmd, a)
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
	h := &queueWorker{
		registry: a.everything, jobs: o.jobs, memory: memory, temp: temp.Path(), orders: make(chan order), seen: map[string]worlds.Place{},
		servers: servers, images: o.images, searchLimit: o.searchLimit,
		pool: workerpool.Options{Workers: o.jobs, Start: start, Limit: func(j any) time.Duration { return min(limitOf(j), o.cellTimeout) }, Grace: grace(worlds.Docker), Busy: busy, Fresh: func(j any) bool { return j.(order).isolated() }},
	}
	var playing sync.WaitGroup
	playing.Go(func() { cancel(h.play(ctx)) })
	fmt.Fprintf(cmd.OutOrStdout(), "taking work of %s, build %s, as worker %s\n", p.Version, p.Class, queue.Short(c.Worker()))
	err = c.Work(ctx, p, queue.Worker{Slots: o.jobs, Do: h.do})
	interrupted := cmd.Context().Err() != nil
	cancel(nil)
	playing.Wait()
	h.sweep()
	switch {
	case interrupted:
		return &statusError{ExitInterrupted, nil}
	case errors.Is(err, queue.ErrForeign):
		return usage("%v: a worker must be the same program as the requester", err)
	}
	return err
}

// joinPrefix begins the names of the temporary directories of queue workers.
const joinPrefix = "lockfault-worker-"

// queueWorker plays the items of a queue.
type queueWorker struct {
	registry    strategies.Registry
	jobs        int
	memory      memoryLimit
	temp        string // temporary directory
	pool        workerpool.Options
	orders      chan order
	servers     map[string]string // programs that items may name, by file name
	images      []string
	searchLimit time.Duration

	mu   sync.Mutex
	n    int                     // number of directories handed out
	seen map[string]worlds.Place // places of real worlds that were played in, by world
}

// order is a job and the channel for its result.
type order struct {
	job
	answer chan workerpool.Result[played]
}

// play plays the orders until ctx is done.
func (h *queueWorker) play(ctx context.Context) error {
	return workerpool.Run(ctx, h.pool, func(yield func(order) bool) {
		for {
			select {
			case o := <-h.orders:
				if !yield(o) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}, func(o order, r workerpool.Result[played]) error {
		o.answer <- r
		return nil
	})
}

// sweep removes what killed processes left in the worlds that were played in.
func (h *queueWorker) sweep() {
	for _, place := range h.seen {
		place.Sweep()
	}
}

// do performs a task of the queue.
func (h *queueWorker) do(ctx context.Context, t queue.Task) (queue.Answer, error) {
	if t.Kind == queue.Search {
		return h.search(ctx, t)
	}
	return h.cell(ctx, t)
}

// unread returns an answer with a failure, for a job that this worker cannot play or that killed
// its workers.
func unread(format string, args ...any) (queue.Answer, error) {
	text, err := json.Marshal(workerpool.Result[played]{Failure: &workerpool.Failure{Reason: fmt.Sprintf(format, args...)}})
	return queue.Answer{Body: text}, err
}

// deaths is the number of times a job must end its process before the job is taken to be the cause.
// Before that, the cause may be a shutdown of the machine or a lack of memory.
const deaths = 3

// cell plays the cell of a task.
func (h *queueWorker) cell(ctx context.Context, t queue.Task) (queue.Answer, error) {
	if t.Times > queue.MostTimes {
		return unread("it was given to %d workers, and none of them answered: what it takes of a machine may end them", queue.MostTimes)
	}
	asked, err := item.ReadCell(t.Item)
	if err != nil {
		return queue.Answer{}, fmt.Errorf("%w: %w", queue.ErrBadItem, err)
	}
	o := order{answer: make(chan workerpool.Result[played], 1)}
	if o.job, err = h.job(asked); err != nil {
		return unread("the worker does not play it: %v", err)
	}
	dir := h.directory(o.Place)
	defer os.RemoveAll(dir)
	if asked.History {
		o.History, o.HistoryLink = filepath.Join(dir, historyFile), historyFile
	}
	if o.Place.Real() {
		o.Place.Logs = filepath.Join(dir, reports.LogsDir)
	}
	select {
	case h.orders <- o:
	case <-ctx.Done():
		return queue.Answer{}, context.Cause(ctx)
	}
	var r workerpool.Result[played]
	select {
	case r = <-o.answer:
	case <-ctx.Done():
		return queue.Answer{}, context.Cause(ctx)
	}
	if r.Failure != nil && r.Failure.Limit == 0 && t.Times < deaths {
		return queue.Answer{}, r.Failure
	}
	text, err := json.Marshal(r)
	if err != nil {
		return queue.Answer{}, err
	}
	files, err := filesIn(dir)
	if errors.Is(err, errTooLarge) {
		return unread("its history and its logs are larger than the limit of %d bytes: take a shorter script or window", maxFiles)
	}
	return queue.Answer{Body: text, Files: files}, err
}

// job returns the job for an item. job returns an error if the item names a strategy, server
// program or image that this worker does not allow.
func (h *queueWorker) job(c item.Cell) (j job, err error) {
	s, ok := h.registry.Lookup(c.Strategy)
	if !ok {
		return j, fmt.Errorf("strategy %q: unknown", c.Strategy)
	}
	j = job{
		Strategy: c.Strategy, Scenario: c.Scenario, File: c.File, Source: []byte(c.Script), Place: worlds.Place{World: c.World, Sentinel: c.Sentinel},
		Seed: c.Seed, TTL: c.Lease, Base: c.Lease, Limit: c.Limit, Nodes: c.Nodes, Isolated: c.Isolated || !s.Builtin(), Count: c.Count,
	}
	switch c.World {
	case worlds.Process:
		if j.Place.RedisServer, ok = h.servers[c.Server]; !ok && c.Server != "" {
			return j, fmt.Errorf("server program %q: start the worker with --redis-server and its path to allow it", c.Server)
		}
	case worlds.Docker:
		if j.Place.Image = cmp.Or(c.Image, worlds.DefaultImage); !slices.Contains(h.images, j.Place.Image) {
			return j, fmt.Errorf("image %q: start the worker with --image to allow it", j.Place.Image)
		}
	}
	return j, nil
}

// serversByName returns server programs by file name: the standard programs and the programs of
// --redis-server.
func serversByName(programs []string) (map[string]string, error) {
	by := map[string]string{"redis-server": "redis-server", "valkey-server": "valkey-server"}
	for i, program := range programs {
		name := filepath.Base(program)
		if program == "" || slices.ContainsFunc(programs[:i], func(other string) bool { return filepath.Base(other) == name && other != program }) {
			return nil, usage("--redis-server %q: give programs whose files have different names", program)
		}
		by[name] = program
	}
	return by, nil
}

// directory returns the path of a new directory for a job, which is not created, and records the
// place for sweep.
func (h *queueWorker) directory(place worlds.Place) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n++
	if place.Real() {
		h.seen[place.World] = place
	}
	return filepath.Join(h.temp, fmt.Sprint(h.n))
}

// errTooLarge reports that the files of an answer exceed maxFiles.
var errTooLarge = errors.New("too large for an answer")

// filesIn returns the contents of the regular files below dir, by slash-separated relative path. A
// missing directory has no files.
func filesIn(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	size := int64(0)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // the job wrote no files
		case err != nil || !e.Type().IsRegular():
			return err
		}
		about, err := e.Info()
		if err != nil {
			return err
		}
		if size += about.Size(); size > maxFiles {
			return errTooLarge
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			files[filepath.ToSlash(name)], err = os.ReadFile(path)
		}
		return err
	})
	return files, err
}

// searched is the answer for a part of a search.
type searched struct {
	Result explore.Result
	Err    string // the error, if the search has no result
}

// search searches a part of a search with all worker processes.
func (h *queueWorker) search(ctx context.Context, t queue.Task) (queue.Answer, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	limit := time.AfterFunc(h.searchLimit, func() { end(explore.Cut(fmt.Sprintf("more than the %v that its worker gives a part", h.searchLimit))) })
	defer limit.Stop()
	reply := func(r explore.Result, err error) (queue.Answer, error) {
		s := searched{Result: r}
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
	s, ok := h.registry.Lookup(p.Strategy)
	if !ok {
		return reply(explore.Result{}, fmt.Errorf("the worker knows no strategy %q", p.Strategy))
	}
	if p.Nodes > 0 {
		if s, err = s.On(p.Nodes); err != nil {
			return reply(explore.Result{}, err)
		}
	}
	var reach reach
	p.Bound.Reach = reach.get
	go func() {
		for note := range t.Notes {
			switch note.Key {
			case queue.Dropped + t.Name:
				end(errDropped)
			case reachNote:
				reach.set(note.Value)
			}
		}
	}()
	options := exploreOptions{playOptions: playOptions{seed: p.Seed, nodes: p.Nodes, cellTimeout: p.Limit}}
	e := newExplorer(&options, s, h.jobs, workerpool.Options{Start: h.pool.Start, Limit: limitOf})
	defer e.close()
	result, err := explore.Search(ctx, p.Bound, e, func(explore.Result) { h.memory.check(end) })
	var cut explore.Cut
	if cause := context.Cause(ctx); cause != nil && !errors.As(cause, &cut) && !errors.Is(cause, errDropped) {
		return queue.Answer{}, cause // this worker was stopped
	}
	return reply(result, err)
}

// errDropped ends a search whose result is no longer needed.
var errDropped = errors.New("nobody needs it any more")
