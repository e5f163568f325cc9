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

// Adopt has no effect on this system.
func Adopt() error { return nil }

// Orphans returns an empty list on this system.
func Orphans() []int { return nil }

// EndOrphan has no effect on this system.
func EndOrphan(int) error { return nil }

func reapGroup(int) {}

func descendants(pid int) []int { return []int{pid} }

func grouped(int, []int) []int { return nil }

// awaitAll does not wait: a signal between processes of one user takes effect within a scheduling
// delay.
func awaitAll([]int, string) bool { return true }

func knowsFamilies() error { return errors.New("proc: only Linux says whose child a process is") }

func (*Proc) pauseApart() error { return nil }
func (*Proc) resumeApart()      {}
func (*Proc) killApart() []int  { return nil }

// CanWatch returns an error, because only Linux reports waits for a processor.
func CanWatch() error {
	return errors.New("proc: only Linux says how long a process waits for a processor")
}

// SchedDelay measures nothing on this system.
type SchedDelay struct{}

// Measure returns zero values.
func (*SchedDelay) Measure(int) (late time.Duration, strays []int) { return 0, nil }
