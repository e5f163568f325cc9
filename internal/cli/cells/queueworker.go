package cells

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/queue/item"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

// queueWorker plays the items of a queue.
type queueWorker struct {
	registry strategies.Registry
	temp     string // temporary directory
	Pool     workerpool.Options
	orders   chan Order
	servers  map[string]string // programs that items may name, by file name
	images   []string
	search   func(context.Context, queue.Task) (queue.Answer, error) // performs a part of a search

	mu   sync.Mutex
	n    int                     // number of directories handed out
	seen map[string]worlds.Place // places of real worlds that were played in, by world
}

// NewQueueWorker returns a worker that plays cells of the registry below the directory temp. servers
// and images are the programs and images that items may name, and search performs a part of a search.
func NewQueueWorker(registry strategies.Registry, temp string, servers map[string]string, images []string, search func(context.Context, queue.Task) (queue.Answer, error)) *queueWorker {
	return &queueWorker{registry: registry, temp: temp, servers: servers, images: images, search: search, orders: make(chan Order), seen: map[string]worlds.Place{}}
}

// Order is a job and the channel for its result.
type Order struct {
	Job
	answer chan workerpool.Result[Played]
}

// Play plays the orders until ctx is done.
func (h *queueWorker) Play(ctx context.Context) error {
	return workerpool.Run(ctx, h.Pool, func(yield func(Order) bool) {
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
	}, func(o Order, r workerpool.Result[Played]) error {
		o.answer <- r
		return nil
	})
}

// Sweep removes what killed processes left in the worlds that were played in.
func (h *queueWorker) Sweep() {
	for _, place := range h.seen {
		place.Sweep()
	}
}

// Do performs a task of the queue.
func (h *queueWorker) Do(ctx context.Context, t queue.Task) (queue.Answer, error) {
	if t.Kind == queue.Search {
		return h.search(ctx, t)
	}
	return h.cell(ctx, t)
}

// unread returns an answer with a failure, for a job that this worker cannot play or that killed
// its workers.
func unread(format string, args ...any) (queue.Answer, error) {
	text, err := json.Marshal(workerpool.Result[Played]{Failure: &workerpool.Failure{Reason: fmt.Sprintf(format, args...)}})
	return queue.Answer{Body: text}, err
}

// cell plays the cell of a task.
func (h *queueWorker) cell(ctx context.Context, t queue.Task) (queue.Answer, error) {
	if t.Times > queue.MostTimes {
		return unread("it was given to %d workers, and none of them answered: what it takes of a machine may end them", queue.MostTimes)
	}
	asked, err := item.ReadCell(t.Item)
	if err != nil {
		return queue.Answer{}, fmt.Errorf("%w: %w", queue.ErrBadItem, err)
	}
	o := Order{answer: make(chan workerpool.Result[Played], 1)}
	if o.Job, err = h.job(asked); err != nil {
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
	var r workerpool.Result[Played]
	select {
	case r = <-o.answer:
	case <-ctx.Done():
		return queue.Answer{}, context.Cause(ctx)
	}
	if r.Failure != nil && r.Failure.Limit == 0 && t.Times < MaxDeaths {
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
func (h *queueWorker) job(c item.Cell) (j Job, err error) {
	s, ok := h.registry.Lookup(c.Strategy)
	if !ok {
		return j, fmt.Errorf("strategy %q: unknown", c.Strategy)
	}
	j = Job{
		Strategy: c.Strategy, Scenario: c.Scenario, File: c.File, Source: []byte(c.Script), Place: worlds.Place{World: c.World, Sentinel: c.Sentinel},
		Seed: c.Seed, TTL: c.Lease, Base: c.Lease, Limit: c.Limit, Nodes: c.Nodes, Observed: c.Observed, Isolated: c.Isolated || !s.Builtin(), Count: c.Count,
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

// ServersByName returns server programs by file name: the standard programs and the programs of
// --redis-server.
func ServersByName(programs []string) (map[string]string, error) {
	by := map[string]string{"redis-server": "redis-server", "valkey-server": "valkey-server"}
	for i, program := range programs {
		name := filepath.Base(program)
		if program == "" || slices.ContainsFunc(programs[:i], func(other string) bool { return filepath.Base(other) == name && other != program }) {
			return nil, kit.Usage("--redis-server %q: give programs whose files have different names", program)
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
