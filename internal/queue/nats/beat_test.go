package nats

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/lockfault/lockfault/internal/queue"
)

// silence returns the longest time without a recorded sign of life, from the beginning until now.
func silence(since time.Time, said []time.Time) (most time.Duration) {
	for _, at := range append(said, time.Now()) {
		most = max(most, at.Sub(since))
		since = at
	}
	return most
}

// A message is a delivered item that records the replies to it.
type message struct {
	jetstream.Msg
	said  []time.Time
	given int // number of times that it was given back
}

func (m *message) Subject() string { return workSubject + ".class.cell.round.a" }
func (m *message) Data() []byte    { return nil }
func (m *message) Nak() error      { m.given++; return nil }

func (m *message) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{NumDelivered: 1}, nil
}

func (m *message) InProgress() error {
	m.said = append(m.said, time.Now())
	return nil
}

// TestAWorkerSaysThatItLives checks that a busy worker shows that it is alive, often enough that
// one lost message does no harm.
func TestAWorkerSaysThatItLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		k := &worker{conn: &conn{}, Worker: queue.Worker{Do: func(context.Context, queue.Task) (queue.Answer, error) {
			time.Sleep(5 * time.Minute)
			return queue.Answer{}, errors.New("not today")
		}}}
		var m message
		k.do(t.Context(), &m)
		if most := silence(began, m.said); most > ackWait/2 || m.given != 1 {
			t.Errorf("silent for %v, where %v are too long; given back %d times", most, ackWait, m.given)
		}
	})
}

// A bucket records the times at which notes were put.
type bucket struct {
	jetstream.KeyValue
	mu  sync.Mutex
	put map[string][]time.Time
}

func (b *bucket) PutString(_ context.Context, key, _ string) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put[key] = append(b.put[key], time.Now())
	return 1, nil
}

// TestWhoAsksSaysSo checks that a requester shows that it is alive, often enough that one lost
// message does no harm.
func TestWhoAsksSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		b := &bucket{put: map[string][]time.Time{}}
		g := &job{conn: &conn{notes: b}, program: queue.Program{Class: "class"}, round: "round", id: "me"}
		go g.keepAsking(ctx)
		time.Sleep(5 * time.Minute)
		cancel()
		synctest.Wait()
		for _, key := range []string{roundKey, asks + "me"} {
			if most := silence(began, b.put["class.round."+key]); most > gone/2 {
				t.Errorf("%s: silent for %v, where %v are too long", key, most, gone)
			}
		}
	})
}
