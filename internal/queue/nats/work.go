package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/lockfault/lockfault/internal/queue"
)

const (
	// idle is the time for which a worker waits for a cell before it looks for a search again.
	idle = time.Second
	// pulse is the interval at which a worker, or a requester, shows that it is alive.
	pulse = 10 * time.Second
	// large is the size in bytes above which an answer is stored as an object: servers accept
	// messages of up to 1 MiB by default.
	large = 256 << 10
)

// A worker takes items and answers them.
type worker struct {
	*conn
	queue.Worker
	program queue.Program
	tasks   sync.WaitGroup
	held    chan struct{} // one element for each cell that was taken and is not done
}

// Worker implements [queue.Conn].
func (c *conn) Worker() string { return c.identity.name() }

// Work implements [queue.Conn].
func (c *conn) Work(ctx context.Context, p queue.Program, w queue.Worker) error {
	if w.Slots < 1 {
		w.Slots = 1
	}
	cells, err := c.consumer(ctx, p, queue.Cell)
	if err != nil {
		return err
	}
	searches, err := c.consumer(ctx, p, queue.Search)
	if err != nil {
		return err
	}
	foreign, err := c.foreign(ctx, p)
	if err != nil {
		return err
	}
	if foreign != "" {
		return fmt.Errorf("%w: what waits at %s is for %s, and this is %s, build %s", queue.ErrForeign, c.where, foreign, p.Version, p.Class)
	}
	k := &worker{conn: c, Worker: w, program: p, held: make(chan struct{}, 2*w.Slots)} // one cell in progress per slot, and one waiting
	defer k.tasks.Wait()
	trouble := ""
	for ctx.Err() == nil {
		err := k.takeSearch(ctx, searches)
		if err == nil {
			err = k.takeCells(ctx, cells)
		}
		switch {
		case ctx.Err() != nil:
		case err == nil:
			trouble = ""
		default:
			if text := err.Error(); text != trouble && c.nc.IsConnected() {
				trouble = text
				c.say(fmt.Sprintf("the queue %s: %v: trying again", c.where, err))
			}
			select {
			case <-time.After(idle):
			case <-ctx.Done():
			}
		}
	}
	return context.Cause(ctx)
}

// foreign describes the programs whose work is waiting, or returns "" if some of it is this
// program's or none is waiting.
func (c *conn) foreign(ctx context.Context, p queue.Program) (text string, err error) {
	var whose []string
	ours := false
	err = persist(ctx, patience, func(ctx context.Context) error {
		whose, ours = nil, false
		list := c.work.ListConsumers(ctx)
		for info := range list.Info() {
			class, _, _ := strings.Cut(info.Name, "-")
			switch {
			case info.NumPending+uint64(info.NumAckPending) == 0:
			case class == p.Class:
				ours = true
			default:
				whose = append(whose, fmt.Sprintf("%s, build %s", info.Config.Description, class))
			}
		}
		return list.Err()
	})
	if err != nil || ours {
		return "", err
	}
	slices.Sort(whose)
	return strings.Join(slices.Compact(whose), " and "), nil
}

// takeSearch does a search, if one is waiting and no cell is in progress.
func (k *worker) takeSearch(ctx context.Context, searches jetstream.Consumer) error {
	if len(k.held) > 0 {
		return nil
	}
	batch, err := searches.FetchNoWait(1)
	if err != nil {
		return err
	}
	for m := range batch.Messages() {
		k.do(ctx, m)
	}
	return batch.Error()
}

// takeCells takes as many cells as there is room for, and waits a moment for them.
func (k *worker) takeCells(ctx context.Context, cells jetstream.Consumer) error {
	select {
	case k.held <- struct{}{}: // waits until there is room for a cell
		<-k.held
	case <-ctx.Done():
		return nil
	}
	batch, err := cells.Fetch(cap(k.held)-len(k.held), jetstream.FetchMaxWait(idle))
	if err != nil {
		return err
	}
	for m := range batch.Messages() {
		k.held <- struct{}{}
		k.tasks.Go(func() {
			defer func() { <-k.held }()
			k.do(ctx, m)
		})
	}
	if err := batch.Error(); err != nil && !errors.Is(err, nats.ErrTimeout) {
		return err
	}
	return nil
}

// do does one item, and stores its answer before it acknowledges the item.
func (k *worker) do(ctx context.Context, m jetstream.Msg) {
	about, err := m.Metadata()
	tokens := strings.Split(m.Subject(), ".")
	if err != nil || len(tokens) != 6 {
		m.Term() // not an item
		return
	}
	t := queue.Task{Item: queue.Item{Kind: queue.Kind(tokens[3]), Name: tokens[5], Body: m.Data()}, Campaign: tokens[4], Times: int(about.NumDelivered)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var beats sync.WaitGroup
	defer beats.Wait()
	defer cancel()
	beats.Go(func() { beat(ctx, m) })

	subject := strings.Join([]string{resultSubject, k.program.Class, t.Campaign, t.Name}, ".")
	if t.Times > 1 { // the previous worker may have answered
		err := persist(ctx, forEver, func(ctx context.Context) error {
			_, err := k.results.GetLastMsgForSubject(ctx, subject)
			return err
		})
		if err == nil {
			k.acknowledge(ctx, m)
			return
		}
	}
	if t.Kind == queue.Search {
		notes := make(chan queue.Note)
		t.Notes = notes
		beats.Go(func() { k.watch(ctx, t.Campaign, notes, cancel) })
	}
	answer, err := k.Do(ctx, t)
	if err == nil {
		_, err = k.answer(ctx, subject, t, answer)
	}
	if errors.Is(err, queue.ErrBadItem) {
		const most = 300 // bytes of a text that a publisher may have chosen
		text := err.Error()
		if len(text) > most {
			text = text[:most] + "…"
		}
		k.say("an item is refused: " + text)
		_ = m.Term() // otherwise the item is given out and refused again
		return
	}
	if err != nil {
		m.Nak() // otherwise the item is given out again after ackWait
		return
	}
	k.acknowledge(ctx, m)
}

// acknowledge acknowledges an item, even if the worker is being stopped. An item whose
// acknowledgement is lost is given out again, and found to be answered.
func (k *worker) acknowledge(ctx context.Context, m jetstream.Msg) {
	_ = persist(context.WithoutCancel(ctx), idle, m.DoubleAck)
}

// beat tells the server at intervals that an item is in progress.
func beat(ctx context.Context, m jetstream.Msg) {
	// After an error the item may be given out again, and is still answered only once.
	eachPulse(ctx, func() { _ = m.InProgress() })
}

// eachPulse calls do at intervals until ctx is done.
func eachPulse(ctx context.Context, do func()) {
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			do()
		case <-ctx.Done():
			return
		}
	}
}

// watch passes the notes of a round to the task until ctx is done, and calls over when the round
// has ended.
func (k *worker) watch(ctx context.Context, name string, notes chan<- queue.Note, over context.CancelFunc) {
	defer close(notes)
	prefix := k.program.Class + "." + name + "."
	for ctx.Err() == nil {
		watcher, err := k.notes.Watch(ctx, prefix+">")
		if err != nil {
			select {
			case <-time.After(idle):
			case <-ctx.Done():
			}
			continue
		}
		k.pass(ctx, watcher, prefix, notes, over)
		_ = watcher.Stop()
	}
}

// pass passes the notes that a watcher receives, until the watcher ends or ctx is done.
func (k *worker) pass(ctx context.Context, watcher jetstream.KeyWatcher, prefix string, notes chan<- queue.Note, over context.CancelFunc) {
	for {
		var e jetstream.KeyValueEntry
		select {
		case next, more := <-watcher.Updates():
			if !more {
				return
			}
			if e = next; e == nil {
				continue // all existing notes have been delivered
			}
		case <-ctx.Done():
			return
		}
		key := strings.TrimPrefix(e.Key(), prefix)
		if strings.HasPrefix(key, asks) {
			continue
		}
		if e.Operation() != jetstream.KeyValuePut {
			if key == roundKey { // a round is never begun twice, so this round is over for good
				over()
			}
			continue
		}
		select {
		case notes <- queue.Note{Key: key, Value: string(e.Value())}:
		case <-ctx.Done():
			return
		}
	}
}

// answer stores an answer, and reports whether the item already had one.
func (k *worker) answer(ctx context.Context, subject string, t queue.Task, a queue.Answer) (had bool, err error) {
	text, err := pack(a)
	if err != nil {
		return false, err
	}
	m := &nats.Msg{Subject: subject, Data: text, Header: nats.Header{}}
	k.identity.sign(m.Header, subject, text)
	if len(text) > large {
		// Another worker may play the same item, so each answer has its own object.
		object := strings.Join([]string{k.program.Class, t.Campaign, t.Name, nuid.Next()}, "/")
		m.Data = nil
		m.Header.Set(objectHeader, object)
		if err := persistWithin(ctx, forEver, transfer(len(text)), func(ctx context.Context) error {
			_, err := k.files.PutBytes(ctx, object, text)
			return err
		}); err != nil {
			return false, err
		}
		defer func() {
			if had || err != nil {
				_ = k.files.Delete(ctx, object) // otherwise the object is removed with the campaign
			}
		}()
	}
	return k.store(ctx, resultStream, m)
}
