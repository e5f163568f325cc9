package worlds

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/proc"
	"github.com/lockfault/lockfault/internal/stdio"
)

// part is which part of a lease the machine may be late. Scripts leave twice
// as much room.
const part = 20

// MinLease returns the shortest lease for which the machine may be that late.
func MinLease(late time.Duration) (lease time.Duration) { return part * late }

// RetryLease returns the lease for a cell to be played again with for which the machine
// was that late: at least twice as long, and so long that it would bear what was late
// now. Twice the lease is half the load. It is a multiple of base, which the first
// lease was: some locks count in whole seconds.
func RetryLease(base, lease, late time.Duration) time.Duration {
	longer := max(2*lease, MinLease(late))
	return (longer + base - 1) / base * base
}

// late is how late a cell was that bears no more than so much.
type late struct {
	real.Lateness
	bears time.Duration
}

// strain is which part of what it bears it was late.
func (l late) strain() float64 { return float64(l.By) / float64(l.bears) }

// late returns how late the cell was, where it came nearest to what it bears: that part
// of a lease, and half of anything that the script tells in absolute time, before
// which another thing has to happen.
func (w *world) late() late {
	lease, counts := w.Late()
	worst := late{lease, w.cell.TTL / part}
	for _, l := range counts {
		if l := (late{l, min(l.Within/2, w.cell.TTL/part)}); l.strain() > worst.strain() {
			worst = l
		}
	}
	return worst
}

// Settle implements [harness.World]. If the machine was too slow to say that what
// happened was the lock's doing, there is no verdict.
func (w *world) Settle(failure error) error {
	if broken := w.Err(); broken != nil && !errors.Is(failure, broken) {
		failure = errors.Join(failure, broken)
	}
	if failure != nil {
		failure = errors.Join(failure, w.keepLogs())
	}
	unfit := false
	for _, b := range w.lives {
		b.lastWords(w.Client(b.called()).Paused)
		if err := b.unfit(); err != nil {
			failure, unfit = err, true // whatever else happened, it has happened to another
		}
	}
	failure = w.withPrinted(failure)
	late := w.late()
	if err := ofServers(failure); err != nil {
		if late.By > late.bears {
			err.Late = late.By
		}
		return err
	}
	switch {
	case failure != nil && !unfit && !w.begun && !w.refused(failure):
		none := &harness.UndecidedError{Status: unbegun(failure), Late: max(late.By, 1), Err: failure}
		if late.By > late.bears { // a client that tells of its failure says no more than its text
			none.Status = harness.Unknown
		}
		return none
	case late.By > late.bears:
		return &harness.UndecidedError{Status: harness.Unknown, Late: late.By, Err: fmt.Errorf(
			"the machine was %v late, more than the %v that the script bears, most of it waiting for %s: give fewer --jobs or a longer --ttl",
			late.By.Round(time.Millisecond), late.bears, late.What)}
	}
	return failure
}

// Strain implements [harness.LoadReporter].
func (w *world) Strain() float64 { return w.late().strain() }

// Close implements [faults.World]. A process that the system doesn't end is a sign
// of a machine that is late with everything.
func (w *world) Close() error { return closed(errors.Join(w.World.Close(), w.clocks.close())) }

// closed says what it means how a world closed.
func closed(err error) error {
	var lingers *proc.StillRunningError
	if errors.As(err, &lingers) {
		return &harness.UndecidedError{Status: harness.Unknown, Late: proc.Patience, Err: err}
	}
	return err
}

// withPrinted adds to a failure the last lines that clients printed. What the failure
// says already it doesn't repeat.
func (w *world) withPrinted(failure error) error {
	for _, b := range w.lives {
		if text := b.stderrTail(); failure != nil && text != "" && !strings.Contains(failure.Error(), text) {
			failure = fmt.Errorf("%w%s", failure, stdio.OutputTail(b.called(), text))
		}
	}
	return failure
}

// refused reports whether a strategy made no lock of its own accord: before it had
// asked any server, so that it would do the same on another day.
func (w *world) refused(failure error) bool {
	var unmade *harness.ConstructError
	return errors.As(failure, &unmade) && w.Client(unmade.Client).RoundTrips == 0
}

// unopened says what it means that a world can't be opened: nothing has been done
// to the lock yet, and the machine may have been too slow to start everything. It
// is worth another try, unless the servers themselves are to blame.
func unopened(err error) error {
	if none := ofServers(err); none != nil {
		return none
	}
	return &harness.UndecidedError{Status: unbegun(err), Late: 1, Err: err}
}

// unbegun returns the status of a cell that never began, if that stays so: nothing
// is known if something took too long, and else something is wrong.
func unbegun(err error) harness.Status {
	if waited(err) {
		return harness.Unknown
	}
	return harness.Error
}

// waited reports whether something took longer than anybody waits for it.
func waited(err error) bool {
	var waited interface{ Timeout() bool }
	return errors.As(err, &waited) && waited.Timeout()
}

// ofServers returns how a cell came out that failed because of its servers; nil
// if it didn't.
func ofServers(err error) *harness.UndecidedError {
	switch {
	case errors.Is(err, real.ErrNoClock):
		return &harness.UndecidedError{Status: harness.NotApplicable, Err: err}
	case errors.Is(err, real.ErrTooFar):
		return &harness.UndecidedError{Status: harness.Unknown, Err: err}
	case errors.Is(err, real.ErrRefused):
		return &harness.UndecidedError{Status: harness.Error, Err: err}
	}
	return nil
}
