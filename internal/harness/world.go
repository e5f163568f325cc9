package harness

import (
	"sync"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/harness/client"
)

// Sim is the name of the world of virtual time.
const Sim = "sim"

// Place makes the worlds of cells that do not run in virtual time. Package worlds implements the
// places with real servers.
type Place interface {
	// Name returns the name of the place's worlds in histories and results.
	Name() string
	// Lease returns the default lease of the place.
	Lease() time.Duration
	// Takes reports whether the cell can run there, and the reason if not. Takes has no side
	// effects.
	Takes(Cell) (ok bool, why string)
	// Open makes the world of a cell whose TTL is set. From Begin on, the world records events in
	// order, with Time and without Index. The error may be an *[UndecidedError].
	Open(cell Cell, record func(checker.Event)) (World, error)
}

// World is the world of one cell in real time.
type World interface {
	faults.World
	// Key returns the lock's key in this world.
	Key() string
	// Embody starts a client, or restarts it after a crash, without waiting until its lock is made,
	// which may require that the world continues.
	Embody(client.Setup) (ClientProcess, error)
	// Err returns the reason why the world cannot continue, or nil.
	Err() error
	// Settle receives the error of the run, before Close. Settle returns nil if the history is
	// valid evidence about the lock. Otherwise Settle returns the reason, which may be an
	// *[UndecidedError].
	Settle(failure error) error
}

// LoadReporter is a [World] that measures the load of its machine: the delay of the machine as a
// fraction of the limit. Above 1 there is no verdict.
type LoadReporter interface{ Strain() float64 }

// UndecidedError is the error of a cell without a verdict for reasons outside the lock.
type UndecidedError struct {
	// Status is NotApplicable, Unknown or Error.
	Status Status
	// Late is the delay of the machine, if the delay is the reason: the cell may run again.
	Late time.Duration
	// Err is the reason.
	Err error
}

func (e *UndecidedError) Error() string { return e.Err.Error() }
func (e *UndecidedError) Unwrap() error { return e.Err }

// ClientProcess is one life of a client, in this process or in a separate process. The client makes
// its lock first and reports the result. Only the goroutine that runs the script may call the
// methods.
type ClientProcess interface {
	// Give passes a task to the client. The client's lock must be made, and the client must not be
	// busy.
	Give(client.Task)
	// Take returns the client's reports since the previous call. Empty reports whether there are no
	// such reports.
	Take() []PendingReport
	Empty() bool
	// Skew moves the client's wall clock, in worlds that do not keep the clock themselves.
	Skew(by time.Duration)
	// CancelOperation ends the context of the client's current operation, if any, and returns after
	// the context has ended. A stopped process ends the context when it resumes; CancelOperation
	// does not wait for it. CancelOperation is only for clients that reported Cancels with their
	// lock.
	CancelOperation()
	// Kill marks the client's process as crashed: the client does nothing more, and its reports are
	// ignored.
	Kill()
	// Cancel asks the client to end. Done reports whether the client has ended. Detach forces the
	// client to end; Detach may be called after the world was closed.
	Cancel()
	Done() bool
	Detach()
}

// StackDumper is a [ClientProcess] that can print its stacks in place of any other action.
type StackDumper interface {
	ClientProcess
	// Stacks returns the stacks of the client's goroutines, or an empty string if the client does
	// not print them, and ends the client. Stacks blocks for a moment.
	Stacks() string
}

// PendingReport is a client's report that waits for its answer.
type PendingReport struct {
	Report client.Report
	Answer func(client.Answer)
}

// Mailbox holds the reports that were not taken yet. The zero value is empty. A Mailbox is safe for
// concurrent use.
type Mailbox struct {
	mu    sync.Mutex
	notes []PendingReport
}

// Put adds a report.
func (b *Mailbox) Put(n PendingReport) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes = append(b.notes, n)
}

// Empty reports whether the mailbox is empty.
func (b *Mailbox) Empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.notes) == 0
}

// Take empties the mailbox and returns its reports in order.
func (b *Mailbox) Take() []PendingReport {
	b.mu.Lock()
	defer b.mu.Unlock()
	notes := b.notes
	b.notes = nil
	return notes
}
