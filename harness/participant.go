package harness

import (
	"fmt"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/harness/client"
)

// participant is what the stage knows of a client. It belongs to the stage's
// goroutine; the client itself is in the body.
type participant struct {
	name  string
	stage *stage
	body  Body
	lives []Body // of its former lives

	busy          bool
	begun         bool          // it has said so
	asks          bool          // it is in an operation of the lock, which asks servers
	what          string        // what it does, or did last
	queue         []task        // what to do when it is done with that
	due           time.Duration // when that should have ended; what it was paused since Begin comes on top
	repliesBefore int

	call, trips int // of the operation that it called last

	holds int           // how deep the present hold is
	hold  int           // its number
	taken int           // how many holds there were
	until time.Duration // end of the validity that the lock published; 0 if none
}

// task is something that the script tells a client to do.
type task struct {
	client.Task
	// limit is how long it may take; what the client is paused comes on top.
	limit time.Duration
}

// give gives the client something to do: at once, or if it is stopped in the
// middle of something else, when it is done with that.
func (p *participant) give(t task) {
	if p.busy {
		p.queue = append(p.queue, t)
		return
	}
	state := p.stage.world.Client(p.name)
	p.busy, p.due, p.repliesBefore = true, p.stage.world.Now()+t.limit-state.PausedFor, state.Replies
	p.what, p.begun, p.asks = string(t.Do), false, false
	p.body.Give(t.Task)
}

// hear does what a client's report asks for.
func (p *participant) hear(r client.Report) (a client.Answer) {
	s := p.stage
	now := s.world.Now()
	p.begun, p.asks = true, r.Kind == client.Invoked
	switch r.Kind {
	case client.Invoked:
		s.calls++
		p.what, p.call, p.trips = string(r.Op), s.calls, s.world.Client(p.name).RoundTrips
		if r.Op == checker.Release {
			p.holds = max(0, p.holds-1)
		}
		s.record(checker.Event{Kind: checker.Invoke, Time: now, Client: p.name, Op: r.Op, Call: p.call})
	case client.Returned:
		p.returned(r, now)
	case client.Lost:
		if p.holds == 0 || p.hold != r.Hold {
			break // that hold is over already
		}
		p.holds = 0
		s.record(checker.Event{Kind: checker.Lost, Time: now, Client: p.name})
	case client.Writes:
		p.what = string(client.DoWrite)
		p.write(r.Token, now)
	case client.WantsTime:
		p.what = string(client.DoWork)
		a.Paused = s.world.Client(p.name).PausedFor
	case client.Failed:
		who := p.name + "'s " + p.what
		if p.what == string(client.DoWarmUp) {
			who = s.cell.Strategy.Name
		}
		s.fail(fmt.Errorf("harness: %s %s", who, r.Error))
	case client.Done:
		p.busy = false
		if len(p.queue) > 0 {
			next := p.queue[0]
			p.queue = p.queue[1:]
			p.give(next)
		}
	default:
		s.fail(fmt.Errorf("harness: client %s reports %q, which means nothing here", p.name, r.Kind))
	}
	if p.holds > 0 {
		a.Hold = p.hold
	}
	return a
}

// returned records that an operation came back.
func (p *participant) returned(r client.Report, now time.Duration) {
	s := p.stage
	e := checker.Event{
		Kind: checker.Return, Time: now, Client: p.name, Op: r.Op, Call: p.call,
		Result: r.Result, Error: r.Error, Token: r.Token,
	}
	if r.Result == checker.OK {
		if r.Op == checker.Acquire || r.Op == checker.TryAcquire {
			if p.holds == 0 {
				p.taken++
				p.hold = p.taken
			}
			p.holds++
		}
		if r.Until != nil {
			p.until = now + r.Until.Sub(s.world.Wall(p.name))
			e.Until = p.until
		}
		spent := s.world.Client(p.name).RoundTrips - p.trips
		if best, ok := s.roundTrips[r.Op]; !ok || spent < best {
			s.roundTrips[r.Op] = spent
		}
	}
	s.record(e)
}

// write writes to the protected resource, if the client believes that it holds
// the lock: one that knows better doesn't. Where clients were told to stop when
// their lock is no longer valid, they don't believe that for longer.
func (p *participant) write(token int64, now time.Duration) {
	s := p.stage
	if p.holds == 0 || s.script.HonourValidity && p.until != 0 && now >= p.until {
		return
	}
	s.record(checker.Event{
		Kind: checker.Write, Time: now, Client: p.name, Token: token, Accepted: s.register.write(token),
	})
}
