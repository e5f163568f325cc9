package nats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/lockfault/lockfault/internal/queue"
)

// A job implements [queue.Job].
type job struct {
	*conn
	program   queue.Program
	name      string
	round     string // of the campaign: see epoch.go
	what      string // description of the round
	id        string // distinguishes this requester from others of the same round
	consumers []jetstream.Consumer
	stop      context.CancelFunc

	mu       sync.Mutex
	excluded map[string]bool       // excluded workers
	refused  map[string]int        // number of refused answers to each item, by the item's name
	had      map[string]bool       // items answered before they were put, by name
	pending  map[string]queue.Item // items that were put, and whose answers Next has not returned
	ready    []stored              // answers to pending items
	opened   map[string]uint64     // position of the last answer to each item that was returned or refused
	heard    time.Time             // time of the last answer, or of the last check for lost items
	more     chan struct{}         // signals that ready is not empty; has a buffer of 1
}

// A stored is an answer as stored on a server: its text, or headers with the name of the object
// that holds the text. An answer with neither is still to be read from the server.
type stored struct {
	name    string
	headers nats.Header
	text    []byte
	at      uint64 // position in the stream; 0 if it is unknown
}

func (a stored) object() string { return a.headers.Get(objectHeader) }

// Campaign implements [queue.Conn].
func (c *conn) Campaign(ctx context.Context, p queue.Program, name, what string) (queue.Job, error) {
	g := &job{conn: c, program: p, name: name, id: nuid.Next(), excluded: map[string]bool{}, refused: map[string]int{}, opened: map[string]uint64{}, had: map[string]bool{}, pending: map[string]queue.Item{}, more: make(chan struct{}, 1), heard: time.Now()}
	for _, kind := range []queue.Kind{queue.Cell, queue.Search} {
		consumer, err := c.consumer(ctx, p, kind)
		if err != nil {
			return nil, err
		}
		g.consumers = append(g.consumers, consumer)
	}
	if err := g.begin(ctx, what); err != nil {
		return nil, err
	}
	var from uint64
	err := persist(ctx, patience, func(ctx context.Context) error {
		info, err := c.results.Info(ctx, jetstream.WithSubjectFilter(g.result("*")))
		if err != nil {
			return err
		}
		from = info.State.LastSeq + 1
		for subject := range info.State.Subjects {
			g.had[lastToken(subject)] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	g.stop = stop
	go g.follow(following, from)
	go g.keepAsking(following)
	return g, nil
}

func (g *job) result(name string) string {
	return strings.Join([]string{resultSubject, g.program.Class, g.round, name}, ".")
}

func lastToken(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }

// follow records answers as they are stored, from the given position of the stream.
func (g *job) follow(ctx context.Context, from uint64) {
	for ctx.Err() == nil {
		from = g.read(ctx, from)
		select { // reading continues after an interruption
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// read records answers until an error occurs, and returns the position at which to continue.
func (g *job) read(ctx context.Context, from uint64) uint64 {
	within, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	info, err := g.results.Info(within)
	if err != nil {
		return from
	}
	if from > info.State.LastSeq+1 { // a server has lost its disk, and its sequence numbers begin at 1 again
		from = 1
	}
	answers, err := g.results.OrderedConsumer(within, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{g.result("*")}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, InactiveThreshold: 2 * ackWait,
	})
	if err != nil {
		return from
	}
	messages, err := answers.Messages()
	if err != nil {
		return from
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	for {
		m, err := messages.Next()
		if err != nil {
			return from
		}
		a := stored{name: lastToken(m.Subject()), headers: m.Headers(), text: m.Data()}
		if about, err := m.Metadata(); err == nil {
			a.at = about.Sequence.Stream
			from = a.at + 1
		}
		g.note(a)
	}
}

// note records a stored answer.
func (g *job) note(a stored) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, waited := g.pending[a.name]; !waited {
		g.had[a.name] = true
		return
	}
	g.ready, g.heard = append(g.ready, a), time.Now()
	select {
	case g.more <- struct{}{}:
	default:
	}
}

// Put implements [queue.Job].
func (g *job) Put(ctx context.Context, item queue.Item) error {
	g.mu.Lock()
	_, twice := g.pending[item.Name]
	g.pending[item.Name] = item
	had := g.had[item.Name]
	g.mu.Unlock()
	switch {
	case twice:
		return fmt.Errorf("queue: %s is on its way already", item.Name)
	case had:
		g.note(stored{name: item.Name})
		return nil
	}
	return g.publish(ctx, item)
}

// publish puts an item into the work queue, unless it is already there.
func (g *job) publish(ctx context.Context, item queue.Item) error {
	_, err := g.store(ctx, workStream, &nats.Msg{Subject: g.subject(item), Data: item.Body})
	return err
}

func (g *job) subject(item queue.Item) string {
	return strings.Join([]string{workSubject, g.program.Class, string(item.Kind), g.round, item.Name}, ".")
}

// Next implements [queue.Job].
func (g *job) Next(ctx context.Context) (queue.Answer, error) {
	for {
		if a, ok := g.pop(); ok {
			if err := g.givenUp(a.name); err != nil {
				return queue.Answer{Name: a.name, Err: err}, nil
			}
			answer, err := g.open(ctx, a)
			if err != nil {
				g.note(a) // for the next call
			}
			return answer, err
		}
		// The wait spans calls: a caller with a short timeout waits as long in total as with a
		// single call.
		g.mu.Lock()
		left := time.Until(g.heard.Add(g.quiet))
		g.mu.Unlock()
		select {
		case <-g.more:
		case <-time.After(left):
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), attempt)
			err := g.restoreLost(within)
			cancel()
			if err != nil && !passes(err) {
				return queue.Answer{}, err
			}
			g.mu.Lock()
			g.heard = time.Now() // what repair missed is repaired the next time
			g.mu.Unlock()
		case <-ctx.Done():
			return queue.Answer{}, context.Cause(ctx)
		}
	}
}

// givenUp returns an error if too many answers to the item were refused, and marks the item as
// answered; else nil.
func (g *job) givenUp(name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused[name] < queue.MostTimes {
		return nil
	}
	delete(g.pending, name)
	return fmt.Errorf("%d answers of workers were refused", g.refused[name])
}

// pop returns an answer that is ready and was not returned yet.
func (g *job) pop() (a stored, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.ready) > 0 && !ok {
		a, g.ready = g.ready[0], g.ready[1:]
		// The reader and restoreLost may find the same answer. The item of a refused answer is still
		// pending, so only the position shows that the answer was opened before.
		_, pending := g.pending[a.name]
		ok = pending && (a.at == 0 || a.at != g.opened[a.name])
	}
	return a, ok
}

// restoreLost looks for answers that were not received, and publishes lost items again. A server that lost
// its disk has lost what it should have kept.
func (g *job) restoreLost(ctx context.Context) error {
	g.mu.Lock()
	var list []queue.Item
	for _, item := range g.pending {
		list = append(list, item)
	}
	g.mu.Unlock()
	if len(list) > 0 { // a server that lost its disk has also lost its streams and notes
		if err := g.restore(ctx); err != nil {
			return err
		}
	}
	for _, item := range list {
		switch a, err := g.readAnswer(ctx, item.Name); {
		case err == nil:
			g.note(a)
		case !errors.Is(err, jetstream.ErrMsgNotFound):
			return err
		default:
			if err := g.publish(ctx, item); err != nil {
				return err
			}
		}
	}
	return nil
}

// restore creates the streams and consumers again if they are lost, and renews the requester's
// note.
func (g *job) restore(ctx context.Context) error {
	if _, err := g.work.Info(ctx); errors.Is(err, jetstream.ErrStreamNotFound) {
		fresh := conn{nc: g.nc, where: g.where, say: g.say} // the fields of g.conn hold only names and stay valid
		if err := fresh.open(ctx); err != nil {
			return err
		}
		for _, kind := range []queue.Kind{queue.Cell, queue.Search} {
			if _, err := g.consumer(ctx, g.program, kind); err != nil {
				return err
			}
		}
	}
	return g.ask(ctx)
}

// readAnswer reads an answer from the server.
func (g *job) readAnswer(ctx context.Context, name string) (stored, error) {
	var m *jetstream.RawStreamMsg
	err := persist(ctx, forEver, func(ctx context.Context) (err error) {
		m, err = g.results.GetLastMsgForSubject(ctx, g.result(name))
		return err
	})
	if err != nil {
		return stored{}, err
	}
	return stored{name, m.Header, m.Data, m.Sequence}, nil
}

// A badAnswer is the error of an answer that is refused, whoever stored it.
type badAnswer struct {
	worker string // empty if unknown
	err    error
}

func (b *badAnswer) Error() string { return b.err.Error() }

// open returns an answer, and marks its item as returned. An answer that is refused or was removed
// is replaced by the next one.
func (g *job) open(ctx context.Context, a stored) (queue.Answer, error) {
	answer, at, err := g.fetch(ctx, a)
	var bad *badAnswer
	if err == nil || errors.As(err, &bad) {
		g.mu.Lock()
		g.opened[a.name] = at
		g.mu.Unlock()
	}
	switch {
	case bad != nil:
		return g.refuseStored(ctx, a.name, bad)
	case errors.Is(err, jetstream.ErrMsgNotFound): // another process has removed the answer
		g.mu.Lock()
		item := g.pending[a.name]
		delete(g.had, a.name)
		g.mu.Unlock()
		if err := g.publish(ctx, item); err != nil {
			return queue.Answer{}, err
		}
		return g.Next(ctx)
	case err != nil:
		return queue.Answer{}, err
	}
	g.mu.Lock()
	delete(g.pending, a.name)
	delete(g.had, a.name)
	g.mu.Unlock()
	return answer, nil
}

// fetch returns an answer and its position in the stream. The error is a badAnswer if the answer is
// not signed by a worker, or if the worker is excluded.
func (g *job) fetch(ctx context.Context, a stored) (answer queue.Answer, at uint64, err error) {
	if a.object() == "" && a.text == nil {
		if a, err = g.readAnswer(ctx, a.name); err != nil {
			return answer, 0, err
		}
	}
	answer, err = g.verified(ctx, a)
	return answer, a.at, err
}

// verified returns the answer that is stored, with the errors of fetch.
func (g *job) verified(ctx context.Context, a stored) (answer queue.Answer, err error) {
	name := a.name
	if a.object() != "" {
		if a.text, err = g.object(ctx, name, a.object()); err != nil {
			return answer, err
		}
	}
	worker, err := verify(a.headers, g.result(name), a.text)
	if err != nil {
		return answer, &badAnswer{"", err}
	}
	g.mu.Lock()
	excluded := g.excluded[worker]
	g.mu.Unlock()
	if excluded {
		return answer, &badAnswer{worker, fmt.Errorf("worker %s is excluded", queue.Short(worker))}
	}
	if answer, err = unpack(a.text); err != nil {
		return answer, &badAnswer{worker, err}
	}
	answer.Name, answer.Worker = name, worker
	return answer, nil
}

// refuseStored refuses an answer that cannot be opened, and returns the next one.
func (g *job) refuseStored(ctx context.Context, name string, bad *badAnswer) (queue.Answer, error) {
	g.mu.Lock()
	item := g.pending[name]
	known := bad.worker != "" && g.excluded[bad.worker]
	g.mu.Unlock()
	if !known {
		g.say(fmt.Sprintf("an answer to %s is refused: %v: it is asked anew", name, bad))
	}
	err := g.Refuse(ctx, item, queue.Answer{Name: name, Worker: bad.worker}, bad.worker != "")
	if err != nil {
		return queue.Answer{}, err
	}
	return g.Next(ctx)
}

// Refuse implements [queue.Job].
func (g *job) Refuse(ctx context.Context, item queue.Item, a queue.Answer, exclude bool) error {
	g.mu.Lock()
	if exclude && a.Worker != "" {
		g.excluded[a.Worker] = true
	}
	g.refused[item.Name]++
	given := g.refused[item.Name] >= queue.MostTimes
	delete(g.had, item.Name)
	g.pending[item.Name] = item
	g.mu.Unlock()
	if given {
		g.note(stored{name: item.Name})
		return nil
	}
	err := persist(ctx, forEver, func(ctx context.Context) error {
		return g.results.Purge(ctx, jetstream.WithPurgeSubject(g.result(item.Name)))
	})
	if err != nil {
		return err
	}
	return g.publish(ctx, item)
}

// Refused implements [queue.Job].
func (g *job) Refused() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, times := range g.refused {
		n += times
	}
	return n
}

// objectPatience is the time for which an object may be missing. An object is stored before its
// answer, but another server of a cluster may not have it yet.
const objectPatience = 10 * time.Second

// object returns the content of the object to which an answer refers. A worker chooses the object's
// name, size and content, so any error except a lost connection makes the answer a badAnswer.
func (g *job) object(ctx context.Context, name, object string) (text []byte, err error) {
	if !strings.HasPrefix(object, strings.Join([]string{g.program.Class, g.round, name, ""}, "/")) {
		return nil, &badAnswer{"", errors.New("its object is none of this item's")}
	}
	err = persistWithin(ctx, objectPatience, transfer(queue.MaxAnswer), func(ctx context.Context) error {
		asking, cancel := context.WithTimeout(ctx, attempt)
		info, err := g.files.GetInfo(asking, object)
		cancel()
		switch {
		case errors.Is(err, jetstream.ErrObjectNotFound):
			return fmt.Errorf("%w: %w", errNotYet, err)
		case err != nil:
			return err
		case info.Opts != nil && info.Opts.Link != nil:
			return errors.New("it is a link")
		case info.Size > queue.MaxAnswer:
			return errTooLarge
		}
		text, err = g.readObject(ctx, object)
		return err
	})
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil || !g.nc.IsConnected():
		return nil, err
	}
	return nil, &badAnswer{"", fmt.Errorf("its object can't be read: %w", err)}
}

// readObject reads an object. An error wraps [nats.ErrTimeout] if no part of it comes for the time of an
// attempt: a large object may take longer, and one that somebody claims to be large may never come.
func (g *job) readObject(within context.Context, object string) ([]byte, error) {
	// A read of the client library lasts until the deadline of its context; without one, it looks
	// every 5 s whether the context is done.
	ctx, cancel := context.WithCancel(context.WithoutCancel(within))
	defer cancel()
	defer context.AfterFunc(within, cancel)()
	var stalls atomic.Bool
	stall := time.AfterFunc(attempt, func() { stalls.Store(true); cancel() })
	defer stall.Stop()
	o, err := g.files.Get(ctx, object)
	if err == nil {
		var text []byte
		text, err = io.ReadAll(io.LimitReader(&progress{o, stall}, queue.MaxAnswer+1))
		if err = errors.Join(err, o.Close()); err == nil && len(text) > queue.MaxAnswer {
			err = errTooLarge
		}
		if err == nil {
			return text, nil
		}
	}
	if within.Err() != nil {
		return nil, within.Err()
	}
	if stalls.Load() {
		err = fmt.Errorf("%w: no part of the object came for %v", nats.ErrTimeout, attempt)
	}
	return nil, err
}

// progress sets a timer anew with each read that returns something.
type progress struct {
	io.Reader
	timer *time.Timer
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if n > 0 {
		p.timer.Reset(attempt)
	}
	return n, err
}

// errTooLarge reports an answer whose object is too large.
var errTooLarge = fmt.Errorf("larger than the limit of %d bytes", queue.MaxAnswer)

// Drop implements [queue.Job].
func (g *job) Drop(ctx context.Context, item queue.Item) error {
	g.mu.Lock()
	delete(g.pending, item.Name)
	g.mu.Unlock()
	err := persist(ctx, forEver, func(ctx context.Context) error {
		return g.work.Purge(ctx, jetstream.WithPurgeSubject(g.subject(item)))
	})
	if err != nil {
		return err
	}
	return g.SetNote(ctx, queue.Dropped+item.Name, "")
}

// State implements [queue.Job].
func (g *job) State(ctx context.Context) (s queue.State, err error) {
	for _, consumer := range g.consumers {
		err = persist(ctx, patience, func(ctx context.Context) error {
			info, err := consumer.Info(ctx)
			if err != nil {
				return err
			}
			s.Waiting += int(info.NumPending)
			s.InHand += info.NumAckPending
			s.Idle += info.NumWaiting
			return nil
		})
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// key returns the key of a note in the bucket.
func (g *job) key(key string) string {
	return strings.Join([]string{g.program.Class, g.round, key}, ".")
}

// SetNote implements [queue.Job].
func (g *job) SetNote(ctx context.Context, key, value string) error {
	return persist(ctx, forEver, func(ctx context.Context) error {
		_, err := g.notes.PutString(ctx, g.key(key), value)
		return err
	})
}

// departure is the longest duration of Close.
const departure = 10 * time.Second

// Close implements [queue.Job].
func (g *job) Close(forget bool) error {
	g.stop()
	if !forget {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), departure)
	defer cancel()
	return persist(ctx, departure, func(ctx context.Context) error {
		if err := g.end(ctx); err != nil {
			return err
		}
		switch alone, err := g.isOnlyRequester(ctx); {
		case err != nil:
			return err
		case alone:
			return g.forget(ctx)
		}
		return g.notes.Purge(ctx, g.key(asks+g.id)) // another requester still uses the round
	})
}

// removeObjects removes the objects of the round.
func (g *job) removeObjects(ctx context.Context) error {
	list, err := g.files.List(ctx)
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil
	}
	var all []error
	for _, object := range list {
		if strings.HasPrefix(object.Name, g.program.Class+"/"+g.round+"/") {
			all = append(all, g.files.Delete(ctx, object.Name))
		}
	}
	return errors.Join(append(all, err)...)
}
