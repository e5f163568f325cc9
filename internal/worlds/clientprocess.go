package worlds

import (
	"bufio"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/harness/client"
	"github.com/lockfault/lockfault/internal/proc"
)

// processClient is a client in a separate process. It speaks the protocol of
// docs/client-protocol.md.
type processClient struct {
	name    string
	world   *real.World
	process *real.Process
	beats   atomic.Bool // the client reported that it replies to beats

	in sync.Mutex // guards the process's standard input

	harness.Mailbox

	cancels   int      // number of cancels sent
	cancelled chan int // the number of the last confirmed cancel

	beat     chan struct{} // the client replied to a beat
	finished chan struct{} // closed when the process's output has ended

	mu   sync.Mutex
	dead bool // the script ended the process
	left bool // the runner ended the process, or the client has no lock
}

var _ harness.StackDumper = (*processClient)(nil)

// newRemote starts a client's process, which makes its lock while the world continues.
func newRemote(setup client.Setup, world *real.World) (*processClient, error) {
	process, err := world.Spawn(setup.Client)
	if err != nil {
		return nil, err
	}
	b := &processClient{name: setup.Client, world: world, process: process, cancelled: make(chan int, 1), beat: make(chan struct{}, 1), finished: make(chan struct{})}
	home := process.Home
	start := client.Start{
		Setup: setup, Sentinels: home.Sentinels, Master: home.Master, SentinelPassword: home.Password, Addresses: home.Addresses,
		Skew: time.Until(world.ClientTime(setup.Client)).Round(time.Microsecond), Sent: proc.SinceBoot(),
	}
	for _, p := range home.Places {
		start.Places = append(start.Places, client.Place(p))
	}
	if err := b.say(client.Order{Setup: &start}); err != nil {
		return nil, fmt.Errorf("telling its process who it is: %w", err)
	}
	go b.listen()
	return b, nil
}

// listen puts the process's reports into the mailbox until the process has ended.
func (b *processClient) listen() {
	lines := bufio.NewScanner(b.process.Out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l client.Line
		err := json.Unmarshal(lines.Bytes(), &l)
		heard := proc.SinceBoot()
		switch {
		case err == nil && l.Gap != nil:
			b.late(*l.Gap)
		case err == nil && l.Beat != nil:
			select {
			case b.beat <- struct{}{}:
			default:
			}
		case err == nil && l.Cancelled != nil:
			select {
			case <-b.cancelled: // no goroutine waits for an older number
			default:
			}
			b.cancelled <- l.Cancelled.ID
		case err == nil && l.Ready != nil:
			b.beats.Store(l.Ready.Beats)
			b.unasked(client.Report{Kind: client.Made, Fenced: l.Ready.Fenced, Cancels: l.Ready.Cancels})
		case err == nil && l.Refused != "":
			b.leaves()
			b.unasked(client.Report{Kind: client.Refused, Error: l.Refused})
		case err == nil && l.Report != nil:
			b.heard(*l.Report, heard)
		default:
			b.failed(fmt.Sprintf("said what is no report: %.80q", lines.Bytes()))
		}
	}
	close(b.finished)
	<-b.process.Ended()
	b.mu.Lock()
	expected := b.dead || b.left
	b.mu.Unlock()
	if !expected {
		b.failed(fmt.Sprintf("process ended by itself: %v", b.process.Why()))
	}
	b.world.Notify()
}

// heard puts a report into the mailbox.
func (b *processClient) heard(r client.Numbered, at time.Duration) {
	if r.Sent != 0 {
		b.late(client.Gap{From: r.Sent, To: at})
	}
	for _, gap := range r.Gaps {
		b.late(gap)
	}
	b.put(harness.PendingReport{Report: r.Report, Answer: func(a client.Answer) {
		// A process that has ended needs no answer.
		_ = b.say(client.Order{Answer: &client.Heard{ID: r.ID, Answer: a}})
	}})
}

func (b *processClient) late(gap client.Gap) { b.world.ClientLate(b.name, gap.From, gap.To) }

// body is one life of a client in these worlds.
type body interface {
	harness.ClientProcess
	// called returns the client's name. stderrTail returns the end of the process's standard error.
	called() string
	stderrTail() string
	// lastWords waits until the delay of the process is known.
	lastWords(stopped bool)
	// unfit returns an error if faults did not reach all processes of the client.
	unfit() error
}

// lastWords waits until the process has reported all of its delays. The wait ends when the process
// has replied to a beat, or when its output has ended if the process has ended. A stopped process
// has reported its delays before. A wait of more than a second counts as a delay itself.
func (b *processClient) lastWords(stopped bool) {
	b.process.MeasureLateness()
	alarm := time.NewTimer(time.Second)
	defer alarm.Stop()
	begun := proc.SinceBoot()
	if b.Done() {
		select {
		case <-b.finished:
		case <-alarm.C:
		}
		return
	}
	if stopped || !b.beats.Load() || b.say(client.Order{Beat: &client.Beat{}}) != nil {
		return
	}
	select {
	case <-b.beat:
	case <-b.finished:
	case <-alarm.C:
	}
	b.late(client.Gap{From: begun, To: proc.SinceBoot()})
}

func (b *processClient) called() string     { return b.name }
func (b *processClient) stderrTail() string { return b.process.StderrTail() }
func (b *processClient) unfit() error       { return b.process.Stray() }

func (b *processClient) failed(why string) { b.unasked(client.Report{Kind: client.Failed, Error: why}) }

// unasked puts a report without an answer into the mailbox.
func (b *processClient) unasked(r client.Report) {
	b.put(harness.PendingReport{Report: r, Answer: func(client.Answer) {}})
}

func (b *processClient) put(n harness.PendingReport) {
	b.Put(n)
	b.world.Notify()
}

func (b *processClient) say(o client.Order) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	b.in.Lock()
	defer b.in.Unlock()
	_, err = b.process.In.Write(append(line, '\n'))
	return err
}

func (b *processClient) Give(t client.Task) {
	// listen detects a process that has ended.
	_ = b.say(client.Order{Task: &t})
}

func (b *processClient) Skew(by time.Duration) {
	_ = b.say(client.Order{Clock: &client.Clock{By: by}})
}

// CancelOperation implements [harness.ClientProcess]. The wait for the confirmation counts as a
// delay of the process and ends after a second.
func (b *processClient) CancelOperation() {
	b.cancels++
	begun := proc.SinceBoot()
	if b.say(client.Order{Cancel: &client.Cancel{ID: b.cancels}}) != nil || b.world.Client(b.name).Paused {
		return
	}
	alarm := time.NewTimer(time.Second)
	defer alarm.Stop()
	for answered := 0; answered != b.cancels; {
		select {
		case answered = <-b.cancelled:
		case <-b.finished:
			return
		case <-alarm.C:
			answered = b.cancels
		}
	}
	b.late(client.Gap{From: begun, To: proc.SinceBoot()})
}

func (b *processClient) Kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dead = true
}

// leaves marks the end of the process as expected.
func (b *processClient) leaves() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = true
}

func (b *processClient) Cancel() {
	b.leaves()
	_ = b.say(client.Order{End: &client.Ending{}})
}

func (b *processClient) Done() bool {
	select {
	case <-b.process.Ended():
		return true
	default:
		return false
	}
}

func (b *processClient) Detach() {}

// Stacks implements [harness.StackDumper].
func (b *processClient) Stacks() string {
	b.leaves()
	if b.process.Ask() != nil {
		return ""
	}
	select {
	case <-b.process.Ended():
		return "\n\n" + b.process.Why().Error()
	case <-time.After(time.Second):
		return ""
	}
}
