package scenarios

import (
	"slices"
	"strings"

	"github.com/lockfault/lockfault/faults"
)

// gateWords returns the verbs of the gate commands.
func gateWords() []string {
	return []string{"hold", "delay", "drop", "reset", "pass", "clear"}
}

// gate parses a gate command.
func (p *parser) gate(c *cursor) ([]Action, error) {
	verb := c.next()
	clients, err := p.clients(c)
	if err != nil {
		return nil, err
	}
	switch verb.text {
	case "pass":
		if len(clients) == 0 {
			return nil, c.unexpected("a client", p.script.Clients...)
		}
		pass, err := p.pass(c)
		pass.Clients = clients
		return one(Inject{pass}, err)
	case "clear":
		return []Action{Inject{faults.Clear{Clients: clients}}}, nil
	}
	o := order{match: faults.Match{Clients: clients}}
	if err := p.messages(c, &o.match); err != nil {
		return nil, err
	}
	if err := p.clauses(c, verb.text, &o); err != nil {
		return nil, err
	}
	switch verb.text {
	case "hold":
		return []Action{Inject{faults.Hold{Match: o.match, Times: o.times}}}, nil
	case "delay":
		return []Action{Inject{faults.Delay{Match: o.match, By: o.by, Times: o.times}}}, nil
	case "drop":
		return []Action{Inject{faults.Drop{Match: o.match, Times: o.times}}}, nil
	default:
		return []Action{Inject{faults.Reset{Match: o.match, Times: o.times}}}, nil
	}
}

// pass parses the clauses after the clients of a pass, in any order: once, on NODES.
func (p *parser) pass(c *cursor) (pass faults.Pass, err error) {
	for c.peek() != "" && err == nil {
		switch clause := c.peek(); {
		case clause == "once" && pass.Once || clause == "on" && pass.Nodes != nil:
			err = c.wrong(c.next(), "%q stands twice")
		case clause == "once":
			pass.Once = c.skip("once")
		case clause == "on":
			pass.Nodes, err = p.listed(c, "on")
		default:
			err = c.unexpected("once, on, or the end of the line", "once", "on")
		}
	}
	return pass, err
}

// order holds the common fields of hold, delay, drop and reset.
type order struct {
	match faults.Match
	by    faults.Span
	times int
}

// messages parses the messages that a gate command selects: "before SETNX SET".
func (p *parser) messages(c *cursor, match *faults.Match) error {
	match.Way = faults.Way(c.peek())
	switch match.Way {
	case faults.Messages:
		c.next()
		return nil
	case faults.Before, faults.After:
		c.next()
	default:
		candidates := append([]string{string(faults.Before), string(faults.After), string(faults.Messages)}, p.script.Clients...)
		return c.unexpected("before, after or messages", candidates...)
	}
	if c.skip("any") {
		return nil
	}
	if effect := faults.Effect(c.peek()); slices.Contains(faults.Effects(match.Way), effect) {
		c.next()
		match.Effect = effect
		return nil
	}
	if effect := faults.Effect(c.peek()); slices.Contains(faults.Effects(faults.After), effect) {
		return c.wrong(c.next(), "what a request will do shows when it was executed: %q stands with after; with before, writing does")
	}
	for isCommand(c.peek()) {
		w := c.next()
		switch {
		case synonymOf(w.text) != "":
			return c.wrong(w, "the command %q is called "+synonymOf(w.text)+" here, as PostgreSQL answers it")
		case !knownCommand(w.text):
			return c.wrong(w, "Redis has no command %q, nor has PostgreSQL or ZooKeeper", allCommands()...)
		case slices.Contains(match.Commands, w.text):
			return c.wrong(w, "command %q is named twice")
		}
		match.Commands = append(match.Commands, w.text)
	}
	if len(match.Commands) == 0 {
		candidates := append(allCommands(), "any")
		for _, effect := range faults.Effects(match.Way) {
			candidates = append(candidates, string(effect))
		}
		return c.unexpected("a command in capital letters, any, or what it does: "+effects(match.Way)+",", candidates...)
	}
	return nil
}

// effects returns the list of effects that select messages in the given direction.
func effects(way faults.Way) string {
	var list []string
	for _, effect := range faults.Effects(way) {
		list = append(list, string(effect))
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// clauses parses the clauses of a gate command, in any order: by SPAN, on NODES, times N, or none.
func (p *parser) clauses(c *cursor, verb string, o *order) error {
	var seen []string
	for c.peek() != "" {
		clause := c.peek()
		if slices.Contains(seen, clause) {
			return c.wrong(c.next(), "%q stands twice")
		}
		seen = append(seen, clause)
		var err error
		switch {
		case clause == "by" && verb == "delay":
			c.next()
			o.by, err = span(c, positive)
		case clause == "on":
			o.match.Nodes, err = p.listed(c, "on")
		case clause == "times":
			c.next()
			o.times, err = number(c, "times", 1, maxCount)
		case clause == "or":
			c.next()
			if o.match.OrNone = c.skip("none"); !o.match.OrNone {
				return c.unexpected("none", "none")
			}
		case verb == "delay":
			return c.unexpected("by, on, times, the words or none, or the end of the line", "by", "on", "times", "or")
		default:
			return c.unexpected("on, times, the words or none, or the end of the line", "on", "times", "or")
		}
		if err != nil {
			return err
		}
	}
	if verb == "delay" && !slices.Contains(seen, "by") {
		return c.unexpected("by and a length of time")
	}
	return nil
}
