package harness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
)

// cancel is a line of the script by which callers give up.
type cancel struct {
	line    int
	clients []string
	met     bool // one of them was in an operation
}

// cancelOperation lets the caller of a client's operation give up. That meets nothing if there
// is no operation, or its caller has given up already. A stopped client learns of it
// when it goes on.
func (s *runner) cancelOperation(line int, name string) {
	s.run(0, never) // what it has said until now counts
	if n := len(s.cancels); n == 0 || s.cancels[n-1].line != line {
		s.cancels = append(s.cancels, cancel{line: line})
	}
	c, p := &s.cancels[len(s.cancels)-1], s.clients[name]
	c.clients = append(c.clients, name)
	if !p.calling || p.gaveUp || s.failure != nil {
		return
	}
	if !p.cancels {
		s.fail(fmt.Errorf("harness: %s:%d: %s's program can't be told that a caller gives up: "+
			"its line ready has to say that it cancels (docs/client-protocol.md)", s.script.Name, line, name))
		return
	}
	c.met, p.gaveUp = true, true
	if p.unaware = s.stopped(name); !p.unaware {
		p.cancel()
		p.body.CancelOperation()
	}
}

// cancel records that the context of its operation ends.
func (p *participant) cancel() {
	p.stage.record(checker.Event{Kind: checker.Cancel, Time: p.stage.world.Now(), Client: p.name})
}

// aware tells a client that is about to go on what it has missed: that its caller gave
// up is the first that it learns.
func (p *participant) aware() (missed bool) {
	if missed = p.unaware; missed {
		p.unaware = false
		p.body.CancelOperation()
		if p.stage.bubble {
			p.stage.run(0, never) // it comes as far as one does that is stopped
		}
	}
	return missed
}

// idleCancels returns the lines by which nobody gave up.
func (s *runner) idleCancels() []UnmatchedStep {
	var list []UnmatchedStep
	for _, c := range s.cancels {
		if !c.met {
			list = append(list, UnmatchedStep{Line: c.line, Text: strings.Join(c.clients, " ") + " cancel"})
		}
	}
	return list
}

// inOrder puts what met nothing in the order of its lines.
func inOrder(list []UnmatchedStep) []UnmatchedStep {
	slices.SortStableFunc(list, func(a, b UnmatchedStep) int { return a.Line - b.Line })
	return list
}
