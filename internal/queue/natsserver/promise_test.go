package natsserver_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/lockfault/lockfault/internal/queue"
)

// employ is work with a stop function, which returns when the worker has ended.
func employ(t *testing.T, c queue.Conn, w queue.Worker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Work(ctx, ours, w) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// soon is next with a timeout shorter than the 30 s after which lost or unacknowledged items are
// given out again.
func soon(t *testing.T, g queue.Job) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	a, err := g.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return a.Name + "=" + string(a.Body)
}

// A holding counts what a server stores.
type holding struct{ items, answers, notes, objects, chunks int }

func holdingOf(t *testing.T, js jetstream.JetStream) (h holding) {
	t.Helper()
	for name, n := range map[string]*int{"LOCKFAULT_WORK": &h.items, "LOCKFAULT_RESULTS": &h.answers} {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		*n = int(s.CachedInfo().State.Msgs)
	}
	notes, err := js.KeyValue(t.Context(), "LOCKFAULT_NOTES")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := notes.ListKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range keys.Keys() {
		h.notes++
	}
	files, err := js.ObjectStore(t.Context(), "LOCKFAULT_FILES")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := files.List(t.Context())
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		t.Fatal(err)
	}
	h.objects = len(objects)
	s, err := js.Stream(t.Context(), "OBJ_LOCKFAULT_FILES")
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter("$O.LOCKFAULT_FILES.C.>"))
	if err != nil {
		t.Fatal(err)
	}
	h.chunks = len(info.State.Subjects)
	return h
}

// TestACampaignLeavesNothing checks that the end of a campaign removes everything that the server
// stores of it, and nothing of another campaign: waiting items, answers, notes and objects.
func TestACampaignLeavesNothing(t *testing.T) {
	t.Parallel()
	url := serve(t)
	js := raw(t, url)
	large := make([]byte, 600<<10)
	if _, err := rand.Read(large); err != nil {
		t.Fatal(err)
	}
	stop := employ(t, connect(t, url), queue.Worker{Slots: 1, Do: func(ctx context.Context, task queue.Task) (queue.Answer, error) {
		if task.Name == "large" {
			return queue.Answer{Body: large}, nil
		}
		return echo(ctx, task)
	}})
	one, other := campaign(t, connect(t, url), "one"), campaign(t, connect(t, url), "other")
	for _, g := range []queue.Job{one, other} {
		put(t, g, queue.Cell, "large", "small")
		soon(t, g)
		soon(t, g)
	}
	stop() // with all acknowledged
	for _, g := range []queue.Job{one, other} {
		put(t, g, queue.Cell, "waits")
		put(t, g, queue.Search, "waits-too")
	}
	if err := one.SetNote(t.Context(), "reach", "7"); err != nil {
		t.Fatal(err)
	}
	// Three more notes per campaign: the current round, its description, and the requester.
	if got, want := holdingOf(t, js), (holding{items: 4, answers: 4, notes: 7, objects: 2, chunks: 2}); got != want {
		t.Errorf("before: %+v, want %+v", got, want)
	}
	if err := one.Close(true); err != nil {
		t.Fatal(err)
	}
	if got, want := holdingOf(t, js), (holding{items: 2, answers: 2, notes: 3, objects: 1, chunks: 1}); got != want {
		t.Errorf("without the one: %+v, want %+v", got, want)
	}
	again := campaign(t, connect(t, url), "other") // no worker is left
	put(t, again, queue.Cell, "small")
	if got := soon(t, again); got != "small=small" {
		t.Error(got)
	}
	for _, g := range []queue.Job{again, other} {
		if err := g.Close(true); err != nil {
			t.Fatal(err)
		}
	}
	if got := holdingOf(t, js); got != (holding{}) {
		t.Errorf("without either: %+v", got)
	}
}

// TestAWorkerThatIsStopped checks that the items of a stopped worker are given to other workers at
// once, whether the worker was still at work or could not store its answer any more.
func TestAWorkerThatIsStopped(t *testing.T) {
	t.Parallel()
	answered := echo
	atWork := func(ctx context.Context, _ queue.Task) (queue.Answer, error) { return queue.Answer{}, ctx.Err() }
	for _, c := range []struct {
		name string
		kind queue.Kind
		had  int // of two items, by a worker with one slot
		do   func(context.Context, queue.Task) (queue.Answer, error)
	}{
		{"cells at work", queue.Cell, 2, atWork},
		{"cells answered", queue.Cell, 2, answered},
		{"search at work", queue.Search, 1, atWork},
		{"search answered", queue.Search, 1, answered},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := serve(t)
			held := make(chan bool, 2)
			first := connect(t, url)
			stop := employ(t, first, queue.Worker{Slots: 1, Do: func(ctx context.Context, task queue.Task) (queue.Answer, error) {
				held <- true
				<-ctx.Done()
				a, err := c.do(ctx, task)
				a.Body = []byte("too late")
				return a, err
			}})
			g := campaign(t, connect(t, url), "c")
			put(t, g, c.kind, "a", "b")
			for range c.had {
				<-held
			}
			stop()
			first.Close() // as the end of its process does
			work(t, connect(t, url), ours, queue.Worker{Slots: 1, Do: echo})
			if had := map[string]bool{soon(t, g): true, soon(t, g): true}; !had["a=a"] || !had["b=b"] {
				t.Error(had)
			}
		})
	}
}

// TestWorkersShare checks that workers share the waiting items: no worker takes all of them while
// others wait, and no item is given to two workers.
func TestWorkersShare(t *testing.T) {
	t.Parallel()
	const workers = 3
	for kind, each := range map[queue.Kind]int{queue.Cell: 2, queue.Search: 1} { // items that a worker with one slot takes
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			url := serve(t)
			var given atomic.Int32
			all := make(chan bool)
			for range workers {
				work(t, connect(t, url), ours, queue.Worker{Slots: 1, Do: func(ctx context.Context, task queue.Task) (queue.Answer, error) {
					if given.Add(1) == int32(workers*each) {
						close(all)
					}
					select {
					case <-all: // at work at the same time
						return echo(ctx, task)
					case <-ctx.Done():
						return queue.Answer{}, ctx.Err()
					}
				}})
			}
			g := campaign(t, connect(t, url), "c")
			await(t, "all workers wait", func() bool {
				state, err := g.State(t.Context())
				return err == nil && state.Idle == workers
			})
			for i := range workers * each {
				put(t, g, kind, fmt.Sprint(i))
			}
			had := map[string]bool{}
			for range workers * each {
				had[soon(t, g)] = true
			}
			if len(had) != workers*each || given.Load() != int32(workers*each) {
				t.Errorf("%v, and %d were given", had, given.Load())
			}
		})
	}
}

// TestAnAnswerIsNotReplaced checks that a stored answer is not replaced by a later one: all
// requesters of the same item get the same answer.
func TestAnAnswerIsNotReplaced(t *testing.T) {
	t.Parallel()
	url := serve(t)
	held, free := make(chan bool), make(chan bool)
	// Searches are played one after the other: when the next one begins, the previous one is
	// completely done.
	work(t, connect(t, url), ours, queue.Worker{Do: func(ctx context.Context, task queue.Task) (queue.Answer, error) {
		if task.Name == "a" {
			held <- true
			<-free
			return queue.Answer{Body: []byte("second")}, nil
		}
		return echo(ctx, task)
	}})
	g := campaign(t, connect(t, url), "c")
	item := queue.Item{Kind: queue.Search, Name: "a"}
	if err := g.Put(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	<-held
	// Dropped and put again, so that another worker has the item, too.
	if err := g.Drop(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	stop := employ(t, connect(t, url), queue.Worker{Do: func(context.Context, queue.Task) (queue.Answer, error) {
		return queue.Answer{Body: []byte("first")}, nil
	}})
	if err := g.Put(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	if got := soon(t, g); got != "a=first" {
		t.Error(got)
	}
	stop()
	free <- true
	put(t, g, queue.Search, "b")
	if got := soon(t, g); got != "b=b" {
		t.Error(got)
	}
	again := campaign(t, connect(t, url), "c")
	if err := again.Put(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	if got := soon(t, again); got != "a=first" {
		t.Error(got)
	}
}
