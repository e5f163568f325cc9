package scenarios

import (
	"slices"

	"github.com/lockfault/lockfault/faults"
)

// stepWords returns the first words of steps, apart from the names of clients and nodes.
func stepWords() []string {
	return append([]string{"begin", "await", "wait", "measure", "stop"}, faults.Words(faults.OnMessages, faults.OnLinks, faults.BetweenNodes)...)
}

// clientWords returns the verbs for clients.
func clientWords() []string { return append(callWords(), faults.Words(faults.OnClient)...) }

// callWords returns the verbs for the clients' own actions, which may follow begin.
func callWords() []string {
	return []string{"acquire", "try", "release", "extend", "work", "write", "rounds"}
}

// statement parses one step. A line that applies a fault to several clients or nodes returns one
// action for each.
func (p *parser) statement(c *cursor) ([]Action, error) {
	switch first := c.peek(); {
	case first == "begin":
		c.next()
		return p.call(c, true)
	case first == "await":
		c.next()
		return p.await(c)
	case first == "wait":
		c.next()
		length, err := span(c, faults.PositiveSpan)
		return one(Wait{length}, err)
	case first == "measure" || first == "stop":
		c.next()
		name := c.next()
		if !madeOf(name.text, isStopwatchLetter) {
			return nil, c.wrong(name, "a stopwatch's name is made of lower-case letters, digits and dashes")
		}
		return []Action{Measure{Name: name.text, Stop: first == "stop"}}, nil
	}
	if d, ok := faults.DefinitionOf(c.texts()); isNode(c.peek()) || ok {
		return p.fault(c, d)
	}
	return p.call(c, false)
}

// isStep reports whether a line that begins with the word is a step.
func isStep(first string) bool {
	return slices.Contains(stepWords(), first) || isNode(first) || isClient(first)
}

// one converts a single action to the result of a statement.
func one(action Action, err error) ([]Action, error) {
	if err != nil {
		return nil, err
	}
	return []Action{action}, nil
}

// call parses the clients' own actions: "A B acquire within 2ttl".
func (p *parser) call(c *cursor, begin bool) ([]Action, error) {
	clients, err := p.clients(c)
	if err != nil {
		return nil, err
	}
	if len(clients) == 0 {
		return nil, c.unexpected("a client", p.script.Clients...)
	}
	switch verb := c.peek(); verb {
	case "acquire", "try", "release", "extend":
		c.next()
		call := Call{Clients: clients, Op: verb, Begin: begin}
		if verb == "acquire" && c.skip("within") {
			call.Within, err = span(c, faults.PositiveSpan)
		}
		return one(call, err)
	case "work":
		c.next()
		length, err := span(c, faults.PositiveSpan)
		return one(Work{Clients: clients, For: length, Begin: begin}, err)
	case "write":
		c.next()
		return []Action{Write{Clients: clients, Begin: begin}}, nil
	case "rounds":
		c.next()
		rounds, err := roundsOf(c)
		rounds.Clients, rounds.Begin = clients, begin
		return one(rounds, err)
	}
	if begin {
		return nil, c.unexpected("acquire, try, release, extend, work, write or rounds", callWords()...)
	}
	return nil, c.unexpectedVerb("client", "what the client does", clientWords()...)
}

// roundsOf parses the number or the duration of rounds, and the content of a round.
func roundsOf(c *cursor) (r Rounds, err error) {
	if c.skip("for") {
		r.For, err = span(c, faults.PositiveSpan)
	} else {
		r.Times, err = number(c, "rounds", 1, maxCount)
	}
	if err == nil && c.skip("work") {
		r.Work, err = span(c, faults.PositiveSpan)
	} else if err == nil && c.skip("update") {
		r.Update = true
		r.Work, err = span(c, faults.PositiveSpan)
	}
	if err == nil && c.skip("think") {
		r.Think, err = span(c, faults.PositiveSpan)
	} else if err == nil && c.peek() != "" {
		err = c.unexpected("what is in a round", "work", "update", "think")
	}
	return r, err
}

// await parses "await A B held within 2ttl".
func (p *parser) await(c *cursor) ([]Action, error) {
	clients, err := p.clients(c)
	if err != nil {
		return nil, err
	}
	if len(clients) == 0 {
		return nil, c.unexpected("a client", p.script.Clients...)
	}
	await := Await{Clients: clients, State: AwaitState(c.peek())}
	switch await.State {
	case AwaitDone, AwaitHeld, AwaitHolding:
		c.next()
	case AwaitReplies:
		c.next()
		if await.Count, err = number(c, "replies", 1, maxCount); err != nil {
			return nil, err
		}
	default:
		return nil, c.unexpected("done, held, holding or replies",
			string(AwaitDone), string(AwaitHeld), string(AwaitHolding), string(AwaitReplies))
	}
	if await.State == AwaitHeld {
		if err := p.parseFields(c, []faults.Field{{Keyword: "on", Optional: true, Value: faults.NodesField{To: &await.Nodes}}}, "await A held on n1"); err != nil {
			return nil, err
		}
	}
	if c.skip("within") {
		await.Within, err = span(c, faults.PositiveSpan)
	}
	return one(await, err)
}
