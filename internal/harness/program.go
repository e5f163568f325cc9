package harness

import (
	"fmt"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/scenarios"
)

// programApplies reports whether a strategy that is a program can run the cell, and the reason if
// not. A program uses the machine's time, and the simple protocol has no message that cancels an
// operation.
func (c Cell) programApplies() (ok bool, why string) {
	switch program := c.Strategy.Program; {
	case program == nil:
		return true, ""
	case c.Place == nil:
		return false, fmt.Sprintf("%s is a program, and virtual time is for locks in Go: give --world process or docker", c.Strategy.Name)
	case program.Full:
		return true, ""
	}
	for _, step := range c.Script.Steps {
		if inject, ok := step.Do.(scenarios.Inject); ok {
			if _, cancels := inject.Fault.(faults.CancelClient); cancels {
				return false, fmt.Sprintf("line %d, %q: a program can only be told that in the full protocol, --subject-protocol full", step.Line, inject.Fault)
			}
		}
	}
	return true, ""
}
