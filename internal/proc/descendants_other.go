//go:build !linux

package proc

import (
	"errors"
	"time"
)

const (
	dead    = ""
	stopped = ""
)

// Adopt does nothing here.
func Adopt() error { return nil }

// Orphans returns nothing here.
func Orphans() []int { return nil }

// EndOrphan does nothing here.
func EndOrphan(int) error { return nil }

func reapGroup(int) {}

func descendants(pid int) []int { return []int{pid} }

func grouped(int, []int) []int { return nil }

// awaitAll does not wait: a signal between processes of one user takes
// effect within a scheduling delay.
func awaitAll([]int, string) bool { return true }

func knowsFamilies() error { return errors.New("child: only Linux says whose child a process is") }

func (*Proc) pauseApart() error { return nil }
func (*Proc) resumeApart()      {}
func (*Proc) killApart() []int  { return nil }

// CanWatch returns an error: the system doesn't say.
func CanWatch() error {
	return errors.New("child: only Linux says how long a process waits for a processor")
}

// A SchedDelay sees nothing here.
type SchedDelay struct{}

// Measure returns nothing.
func (*SchedDelay) Measure(*Proc) (late time.Duration, strays []int) { return 0, nil }
