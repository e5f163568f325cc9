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

// A Place is where cells are played that are not played in virtual time: it
// makes a world for each. Package worlds has those of real servers.
type Place interface {
	// Name is the name of its worlds in histories and results.
	Name() string
	// Lease is the lease there, unless a cell says otherwise.
	Lease() time.Duration
	// Takes reports whether the cell can be played there, and why if not. It
	// touches nothing.
	Takes(Cell) (ok bool, why string)
	// Open makes the world of a cell whose TTL is set. The world records
	// events in order, with Time filled in and Index not, from Begin on.
	// The error may be a *[UndecidedError].
	Open(cell Cell, record func(checker.Event)) (World, error)
}

// A World is the world of one cell, in real time.
type World interface {
	faults.World
	// Key is the lock's key there.
	Key() string
	// Embody brings a client to life, or back to it after a crash, and doesn't
	// wait until its lock is made: that may need this world to go on.
	Embody(client.Setup) (ClientProcess, error)
	// Err says why the world itself can't go on, as soon as it can't.
	Err() error
	// Settle is told how playing ended, before Close, and returns how far that
	// can be believed: nil if the history says something about the lock, and
	// else why not, which may be a *[UndecidedError].
	Settle(failure error) error
}

// A LoadReporter is a [World] that knows how much its machine had to do: how late that was,
// in parts of how late it may be. From 1 on there is no verdict.
type LoadReporter interface{ Strain() float64 }

// UndecidedError is the error of a cell that came to nothing for reasons that are
// none of the lock's.
type UndecidedError struct {
	// Status is NotApplicable, Unknown or Error.
	Status Status
	// Late is how late the machine was, if that is the reason: the cell may be
	// played again.
	Late time.Duration
	// Err is the reason.
	Err error
}

func (e *UndecidedError) Error() string { return e.Err.Error() }
func (e *UndecidedError) Unwrap() error { return e.Err }

// A ClientProcess is one life of a client, in this process or one of its own. It makes its
// lock first, and reports what came of that. Its methods are for the goroutine that
// plays the script.
type ClientProcess interface {
	// Give gives the client something to do; its lock must be made, and it must
	// not be busy.
	Give(client.Task)
	// Take returns what the client has reported since the last time, and Empty whether
	// there is nothing.
	Take() []PendingReport
	Empty() bool
	// Skew moves its wall clock, where the world doesn't keep it.
	Skew(by time.Duration)
	// CancelOperation ends the context of the operation that the client is in, if it is
	// in one, and returns when it has ended; a stopped process ends it when it
	// goes on, and is not waited for. Only for a client whose lock was made with
	// Cancels.
	CancelOperation()
	// Kill says that the client's process crashed in this world: it does
	// nothing more, and nothing is heard of it.
	Kill()
	// Cancel asks the client to end, Over reports whether it has, and Leave,
	// which may be called when the world has gone, makes it go.
	Cancel()
	Done() bool
	Detach()
}

// A StackDumper is a [ClientProcess] that can be asked, instead of anything else, what it is
// doing.
type StackDumper interface {
	ClientProcess
	// Stacks returns what its goroutines do, empty if it doesn't say, and ends
	// it. It blocks for a moment.
	Stacks() string
}

// A PendingReport is a report of a client that waits for its answer.
type PendingReport struct {
	Report client.Report
	Answer func(client.Answer)
}

// A Mailbox holds the notes that nobody has taken yet. The zero value is empty. Safe
// for concurrent use.
type Mailbox struct {
	mu    sync.Mutex
	notes []PendingReport
}

// Put adds a note.
func (b *Mailbox) Put(n PendingReport) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes = append(b.notes, n)
}

// Empty reports whether nothing is in the box.
func (b *Mailbox) Empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.notes) == 0
}

// Take empties the box and returns what was in it, in order.
func (b *Mailbox) Take() []PendingReport {
	b.mu.Lock()
	defer b.mu.Unlock()
	notes := b.notes
	b.notes = nil
	return notes
}
