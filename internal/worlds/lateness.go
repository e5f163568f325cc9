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

// part is the divisor for the machine's permitted delay: a twentieth of a lease. Scripts tolerate
// twice as much.
const part = 20

// MinLease returns the shortest lease for which the given delay of the machine is permitted.
func MinLease(late time.Duration) (lease time.Duration) { return part * late }

// RetryLease returns the lease for rerunning a cell that was late by the given delay. The new lease
// is at least twice the old lease, and long enough to permit that delay. Twice the lease means half
// the load. The result is a multiple of base, the first lease, because some locks count in whole
// seconds.
func RetryLease(base, lease, late time.Duration) time.Duration {
	longer := max(2*lease, MinLease(late))
	return (longer + base - 1) / base * base
}

// late is the delay of a cell with its limit.
type late struct {
	real.Lateness
	bears time.Duration
}

// strain returns the delay as a fraction of the limit.
func (l late) strain() float64 { return float64(l.By) / float64(l.bears) }

// late returns the delay of the cell that is closest to its limit. The limit is a twentieth of a
// lease, and at most half of any absolute time in the script before which another event must
// happen.
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

// Settle implements [harness.World]. If the machine was too slow to attribute the result to the
// lock, there is no verdict.
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
			failure, unfit = err, true // the result belongs to other processes, so other failures do not count
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
		if late.By > late.bears { // the text of a client's failure does not show whether the delay caused it
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

// Close implements [faults.World]. A process that the system does not end shows that the machine is
// late.
func (w *world) Close() error { return closed(errors.Join(w.World.Close(), w.clocks.close())) }

// closed converts the error of closing a world.
func closed(err error) error {
	var lingers *proc.StillRunningError
	if errors.As(err, &lingers) {
		return &harness.UndecidedError{Status: harness.Unknown, Late: proc.Patience, Err: err}
	}
	return err
}

// withPrinted adds the clients' last output lines to a failure, unless the failure already contains
// them.
func (w *world) withPrinted(failure error) error {
	for _, b := range w.lives {
		if text := b.stderrTail(); failure != nil && text != "" && !strings.Contains(failure.Error(), text) {
			failure = fmt.Errorf("%w%s", failure, stdio.OutputTail(b.called(), text))
		}
	}
	return failure
}

// refused reports whether a strategy failed to make its lock before it had sent a request to a
// server. Such a failure would occur again in a rerun.
func (w *world) refused(failure error) bool {
	var unmade *harness.ConstructError
	return errors.As(failure, &unmade) && w.Client(unmade.Client).RoundTrips == 0
}

// unopened converts the error of a world that cannot be opened. The lock was not tested yet, and
// the machine may have been too slow to start everything, so a rerun is useful unless the servers
// caused the error.
func unopened(err error) error {
	if none := ofServers(err); none != nil {
		return none
	}
	return &harness.UndecidedError{Status: unbegun(err), Late: 1, Err: err}
}

// unbegun returns the status of a cell that never began: Unknown after a timeout, and Error
// otherwise.
func unbegun(err error) harness.Status {
	if waited(err) {
		return harness.Unknown
	}
	return harness.Error
}

// waited reports whether the error is a timeout.
func waited(err error) bool {
	var waited interface{ Timeout() bool }
	return errors.As(err, &waited) && waited.Timeout()
}

// ofServers returns the result of a cell that failed because of its servers, or nil.
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
