package real

import (
	"context"
	"time"

	"github.com/lockfault/lockfault/faults/topology"
	"github.com/lockfault/lockfault/internal/proc"
)

// liveness is what a server of a node with replicas owes since a moment.
type liveness struct {
	since   time.Time
	answers bool // whoever asks
	follows bool // a leader, whose stream nothing slows
}

// suspend lets servers owe nothing: something is about to be done to some.
func (w *World) suspend() {
	for _, s := range w.servers {
		s.duty.Store(nil)
	}
}

// assign has them owe what they should by now.
func (w *World) assign() {
	now := time.Now()
	for _, s := range w.servers {
		d := liveness{since: now, answers: s.Answers()}
		// Sentinels take their time to tell the others whom to follow.
		d.follows = d.answers && s.Leader != nil && s.Leader.Answers() && s.Leader.Stream == topology.Stream{} && w.cfg.Sentinels == 0
		s.duty.Store(&d)
	}
}

// watch asks a server's process again and again how its replication does, and
// notes when it is late. What a primary is late with, its clients wait for and so
// does the world; for a replica nobody waits, and what it doesn't have yet when its
// primary goes is lost.
func (s *server) watch(of Replica, gone <-chan struct{}) {
	w := s.world
	beat := proc.LagInterval(w.cfg.TTL)
	timer := time.NewTimer(beat)
	defer timer.Stop()
	asked, stays := time.Now(), false
	for {
		select {
		case <-gone:
			return
		case <-timer.C:
		}
		if d := s.duty.Load(); d == nil || !d.answers {
			asked, stays = time.Now(), false
			timer.Reset(beat)
			continue
		}
		before := asked
		asked = time.Now()
		is := follows(of, stays)
		select {
		case <-gone: // what it said was of its end
			return
		default:
		}
		d := s.duty.Load()
		if d == nil || !d.answers {
			timer.Reset(beat)
			continue
		}
		since := func(t time.Time) time.Duration {
			if d.since.After(t) {
				t = d.since
			}
			return time.Since(t)
		}
		w.note(s.Name+" asked", s.Name+" to answer", since(asked)-s.trip())
		if stays = is; is || !d.follows {
			timer.Reset(beat)
			continue
		}
		w.note(s.Name+" following", s.Name+" to follow "+s.Node.Name, since(before))
		timer.Reset(proc.LagThreshold)
	}
}

// follows asks a server whether it has a link to its leader and, unless it had that
// before, all that it had to take over, for good. One that doesn't say doesn't.
func follows(of Replica, before bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	is, err := of.Progress(ctx)
	return err == nil && is.Linked && (before || is.Persistent)
}
