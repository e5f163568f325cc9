package harness

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness/client"
)

// participant is the runner's state of one client. Only the runner's goroutine may use it; the
// client itself runs in body.
type participant struct {
	name  string
	stage *runner
	body  ClientProcess
	lives []ClientProcess // of its previous lives
	line  int             // of the script that restarted it; 0 if no line did

	making        bool // it is making its lock, which precedes all tasks
	busy          bool
	begun         bool          // it has reported since its task began
	asks          bool          // it is in an operation of the lock, which sends requests to servers
	what          string        // its current or last task or operation
	queue         []task        // tasks to do after the current task
	due           time.Duration // when the current task should end; pauses since Begin extend this time
	repliesBefore int

	call, trips int // of its last operation

	cancels bool // its current operation can be cancelled
	calling bool // it is in that operation
	gaveUp  bool // the operation was cancelled,
	unaware bool // which it learns when it resumes

	holds int           // nesting depth of the current hold
	hold  int           // number of the current hold
	taken int           // number of holds so far
	until time.Duration // end of the validity that the lock computed; 0 if none
}

// task is a task from the script with its time limit.
type task struct {
	client.Task
	// limit is the maximum duration of the task; the client's pauses extend it.
	limit time.Duration
}

// awaken marks the client, which was just started, as making its lock.
func (p *participant) awaken(limit time.Duration) {
	p.occupy("New", limit)
	p.making, p.begun, p.asks = true, true, true
	p.trips = p.stage.world.Client(p.name).RoundTrips
}

// occupy marks the client as busy with a task.
func (p *participant) occupy(what string, limit time.Duration) {
	state := p.stage.world.Client(p.name)
	p.busy, p.due, p.repliesBefore = true, p.stage.world.Now()+limit-state.PausedFor, state.Replies
	p.what, p.begun, p.asks = what, false, false
}

// left returns the rest of the client's time limit, extended by its pauses.
func (p *participant) left() time.Duration {
	return p.due + p.stage.world.Client(p.name).PausedFor - p.stage.world.Now()
}

// overdue returns the error of a client that exceeds the time limit of its task.
func (p *participant) overdue(stacks string) error {
	s := p.stage
	if p.making {
		what := "its New still runs"
		if s.cell.Strategy.Program != nil {
			what = "its program has not answered to the first request"
		}
		return p.unmade(fmt.Errorf("%s after %v%s", what, s.makes(), stacks))
	}
	return fmt.Errorf("harness: %s ignores its context: %s's %s still runs %v after it should have ended%s",
		s.cell.Strategy.Name, p.name, p.what, s.forbearance(), stacks)
}

// unmade returns the error of a client without a lock.
func (p *participant) unmade(why error) error {
	return &ConstructError{Client: p.name, Strategy: p.stage.cell.Strategy.Name, Line: p.line, Err: why}
}

// ConstructError is the error of a cell in which the strategy's New made no lock.
type ConstructError struct {
	Client, Strategy string
	// Line is the line of the script that restarted the client; 0 if the error occurred before the
	// script began.
	Line int
	// Err is New's own error, or describes how New failed.
	Err error
}

func (e *ConstructError) Error() string {
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf(", restarted in line %d", e.Line)
	}
	return fmt.Sprintf("harness: client %s%s: %s can't be made: %v", e.Client, where, e.Strategy, e.Err)
}

func (e *ConstructError) Unwrap() error { return e.Err }

// give passes a task to the client: at once, or after its current task if the client was stopped
// during that task.
func (p *participant) give(t task) {
	if p.busy {
		p.queue = append(p.queue, t)
		return
	}
	p.occupy(string(t.Do), t.limit)
	p.body.Give(t.Task)
}

// hear processes a client's report and returns the answer.
func (p *participant) hear(r client.Report) (a client.Answer) {
	s := p.stage
	now := s.world.Now()
	p.begun, p.asks = true, r.Kind == client.Invoked
	switch r.Kind {
	case client.Made:
		s.history.Meta.Fenced = s.history.Meta.Fenced || r.Fenced
		p.making, p.cancels = false, r.Cancels
		p.done()
	case client.Refused:
		s.fail(p.unmade(errors.New(r.Error)))
	case client.Invoked:
		s.calls++
		p.what, p.call, p.trips = string(r.Op), s.calls, s.world.Client(p.name).RoundTrips
		p.calling, p.gaveUp = true, false
		if r.Op == checker.Release {
			p.holds = max(0, p.holds-1)
		}
		s.record(checker.Event{Kind: checker.Invoke, Time: now, Client: p.name, Op: r.Op, Call: p.call})
	case client.Returned:
		p.calling = false
		p.returned(r, now)
	case client.Lost:
		if p.holds == 0 || p.hold != r.Hold {
			break // that hold has already ended
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
		if p.making {
			s.fail(p.unmade(errors.New("its " + r.Error)))
			break
		}
		who := p.name + "'s " + p.what
		if p.what == string(client.DoWarmUp) {
			who = s.cell.Strategy.Name
		}
		s.fail(fmt.Errorf("harness: %s %s", who, r.Error))
	case client.Done:
		p.done()
	default:
		s.fail(fmt.Errorf("harness: client %s reports %q, which means nothing here", p.name, r.Kind))
	}
	if p.holds > 0 {
		a.Hold = p.hold
	}
	return a
}

// done marks the current task as done and starts the next task of the queue.
func (p *participant) done() {
	p.busy = false
	if len(p.queue) > 0 {
		next := p.queue[0]
		p.queue = p.queue[1:]
		p.give(next)
	}
}

// returned records the return of an operation.
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
			p.until = now + r.Until.Sub(s.world.ClientTime(p.name))
			e.Until = p.until
		}
		spent := s.world.Client(p.name).RoundTrips - p.trips
		if best, ok := s.roundTrips[r.Op]; !ok || spent < best {
			s.roundTrips[r.Op] = spent
		}
	}
	s.record(e)
}

// write writes to the protected resource if the client believes that it holds the lock. In scripts
// with HonourValidity, the belief ends with the lock's validity.
func (p *participant) write(token int64, now time.Duration) {
	s := p.stage
	if p.holds == 0 || s.script.HonourValidity && p.until != 0 && now >= p.until {
		return
	}
	s.record(checker.Event{
		Kind: checker.Write, Time: now, Client: p.name, Token: token, Accepted: s.register.write(token),
	})
}
