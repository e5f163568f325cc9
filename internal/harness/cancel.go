package harness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
)

// cancel is a cancel line of the script.
type cancel struct {
	line    int
	clients []string
	met     bool // at least one of the clients was in an operation
}

// cancelOperation cancels a client's current operation. cancelOperation has no effect if the client
// is in no operation, or if the operation was already cancelled. A stopped client learns of the
// cancel when it resumes.
func (s *runner) cancelOperation(line int, name string) {
	s.run(0, never) // processes the client's reports up to now
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

// cancel records that the context of the client's operation has ended.
func (p *participant) cancel() {
	p.stage.record(checker.Event{Kind: checker.Cancel, Time: p.stage.world.Now(), Client: p.name})
}

// aware delivers the cancel that a stopped client has missed, just before the client resumes: the
// cancel is the first thing that the client learns. aware reports whether there was such a cancel.
func (p *participant) aware() (missed bool) {
	if missed = p.unaware; missed {
		p.unaware = false
		p.body.CancelOperation()
		if p.stage.bubble {
			p.stage.run(0, never) // runs the client as far as a stopped client can run
		}
	}
	return missed
}

// idleCancels returns the cancel lines without an effect.
func (s *runner) idleCancels() []UnmatchedStep {
	var list []UnmatchedStep
	for _, c := range s.cancels {
		if !c.met {
			list = append(list, UnmatchedStep{Line: c.line, Text: strings.Join(c.clients, " ") + " cancel"})
		}
	}
	return list
}

// inOrder sorts the list by script lines.
func inOrder(list []UnmatchedStep) []UnmatchedStep {
	slices.SortStableFunc(list, func(a, b UnmatchedStep) int { return a.Line - b.Line })
	return list
}
