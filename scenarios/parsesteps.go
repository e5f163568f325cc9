package scenarios

import (
	"slices"

	"github.com/lockfault/lockfault/faults"
)

// stepWords returns the first words of steps, apart from the names of clients and nodes.
func stepWords() []string {
	return []string{
		"begin", "await", "wait", "measure", "stop",
		"hold", "delay", "drop", "reset", "pass", "clear",
		"latency", "bandwidth", "partition", "timeout", "heal",
	}
}

// clientWords returns the verbs for clients.
func clientWords() []string {
	return append(callWords(), "pause", "resume", "crash", "restart", "cancel", "clock")
}

// callWords returns the verbs for the clients' own actions, which may follow begin.
func callWords() []string {
	return []string{"acquire", "try", "release", "extend", "work", "write", "rounds"}
}

// nodeWords returns the verbs for nodes.
func nodeWords() []string {
	return []string{
		"crash", "restart", "pause", "resume", "failover", "split", "join",
		"clock", "drift", "flush", "evict", "script-flush", "replication",
	}
}

// serverWords returns the verbs that also apply to a single server.
func serverWords() []string { return []string{"crash", "restart", "pause", "resume", "clock", "drift"} }

// statement parses one step. A line that applies a fault to several clients or nodes returns one
// action for each.
func (p *parser) statement(c *cursor) ([]Action, error) {
	switch first := c.peek(); {
	case slices.Contains(gateWords(), first):
		return p.gate(c)
	case first == "begin":
		c.next()
		return p.call(c, true)
	case first == "await":
		c.next()
		return p.await(c)
	case first == "wait":
		c.next()
		length, err := span(c, positive)
		return one(Wait{length}, err)
	case first == "measure" || first == "stop":
		c.next()
		name := c.next()
		if !madeOf(name.text, isStopwatchLetter) {
			return nil, c.wrong(name, "a stopwatch's name is made of lower-case letters, digits and dashes")
		}
		return []Action{Measure{Name: name.text, Stop: first == "stop"}}, nil
	case first == "latency":
		return p.latency(c)
	case first == "bandwidth":
		return p.bandwidth(c)
	case first == "partition" || first == "timeout" || first == "heal":
		return p.links(c)
	case isNode(first):
		return p.node(c)
	default:
		return p.client(c)
	}
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
			call.Within, err = span(c, positive)
		}
		return one(call, err)
	case "work":
		c.next()
		length, err := span(c, positive)
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
	return nil, c.unexpected("what the client does", clientWords()...)
}

// roundsOf parses the number or the duration of rounds, and the content of a round.
func roundsOf(c *cursor) (r Rounds, err error) {
	if c.skip("for") {
		r.For, err = span(c, positive)
	} else {
		r.Times, err = number(c, "rounds", 1, maxCount)
	}
	if err == nil && c.skip("work") {
		r.Work, err = span(c, positive)
	} else if err == nil && c.skip("update") {
		r.Update = true
		r.Work, err = span(c, positive)
	}
	if err == nil && c.skip("think") {
		r.Think, err = span(c, positive)
	} else if err == nil && c.peek() != "" {
		err = c.unexpected("what is in a round", "work", "update", "think")
	}
	return r, err
}

// client parses a line that begins with clients.
func (p *parser) client(c *cursor) ([]Action, error) {
	at := c.at
	clients, err := p.clients(c)
	if err != nil {
		return nil, err
	}
	var by faults.Span
	verb := c.peek()
	switch verb {
	case "pause", "resume", "crash", "restart", "cancel":
		c.next()
	case "clock":
		c.next()
		if by, err = span(c, anySign); err != nil {
			return nil, err
		}
	default:
		c.at = at
		return p.call(c, false)
	}
	var actions []Action
	for _, client := range clients {
		switch verb {
		case "pause":
			actions = append(actions, Inject{faults.PauseClient{Client: client}})
		case "resume":
			actions = append(actions, Inject{faults.ResumeClient{Client: client}})
		case "crash":
			actions = append(actions, Inject{faults.CrashClient{Client: client}})
		case "restart":
			actions = append(actions, Inject{faults.RestartClient{Client: client}})
		case "cancel":
			actions = append(actions, Inject{faults.CancelClient{Client: client}})
		case "clock":
			actions = append(actions, Inject{faults.ClientClock{Client: client, By: by}})
		}
	}
	return actions, nil
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
		if await.Nodes, err = p.listed(c, "on"); err != nil {
			return nil, err
		}
	}
	if c.skip("within") {
		await.Within, err = span(c, positive)
	}
	return one(await, err)
}
