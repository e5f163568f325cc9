package real

import (
	"context"
	"time"

	"github.com/lockfault/lockfault/faults/topology"
	"github.com/lockfault/lockfault/internal/proc"
)

// liveness is what a server of a node with replicas must do since a given time.
type liveness struct {
	since   time.Time
	answers bool // the server must answer
	follows bool // the server must follow its leader, over an undisturbed stream
}

// suspend removes all duties of servers, before a fault is applied.
func (w *World) suspend() {
	for _, s := range w.servers {
		s.duty.Store(nil)
	}
}

// assign sets the duties of the servers in the current state.
func (w *World) assign() {
	now := time.Now()
	for _, s := range w.servers {
		d := liveness{since: now, answers: s.Answers()}
		// Sentinels need time to reconfigure the other servers.
		d.follows = d.answers && s.Leader != nil && s.Leader.Answers() && s.Leader.Stream == topology.Stream{} && w.cfg.Sentinels == 0
		s.duty.Store(&d)
	}
}

// watch polls a server's replication until gone is closed, and records delays. Clients wait for a
// slow primary, and so does the world. Nothing waits for a slow replica, and the data that it lacks
// when its primary fails is lost.
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
		case <-gone: // the answer was affected by the end of the process
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

// follows reports whether a server has a link to its leader and, unless it had one before, has
// persisted the leader's data. A server that doesn't answer counts as not following.
func follows(of Replica, before bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	is, err := of.Progress(ctx)
	return err == nil && is.Linked && (before || is.Persistent)
}
