package scenarios

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/lockfault/lockfault/faults"
)

// latency parses "latency A n1 50ms jitter 10ms".
func (p *parser) latency(c *cursor) ([]Action, error) {
	c.next()
	var fault faults.Latency
	var err error
	if fault.Clients, err = p.clients(c); err != nil {
		return nil, err
	}
	if fault.Nodes, err = p.nodes(c); err != nil {
		return nil, err
	}
	if fault.Base, err = span(c, notNegative); err != nil {
		return nil, err
	}
	if c.skip("jitter") {
		fault.Jitter, err = span(c, positive)
	}
	return one(Inject{fault}, err)
}

// bandwidth parses "bandwidth A n1 200B/ttl".
func (p *parser) bandwidth(c *cursor) ([]Action, error) {
	c.next()
	var fault faults.Bandwidth
	var err error
	if fault.Clients, err = p.clients(c); err != nil {
		return nil, err
	}
	if fault.Nodes, err = p.nodes(c); err != nil {
		return nil, err
	}
	if !c.skip("unlimited") {
		fault.Rate, err = rate(c)
	}
	return one(Inject{fault}, err)
}

// links parses "partition A from n1 n2", "timeout A from n1 n2 after 0.5ttl" and "heal A from n1
// n2". For links between nodes, links calls [parser.between].
func (p *parser) links(c *cursor) ([]Action, error) {
	verb := c.next()
	if verb.text != "timeout" && isNode(c.peek()) {
		return p.between(c, verb.text)
	}
	clients, err := p.clients(c)
	if err != nil {
		return nil, err
	}
	if verb.text != "timeout" && isNode(c.peek()) {
		return nil, c.wrong(c.next(), "node %q stands beside clients: a line is about clients or about nodes, so write one for each")
	}
	if verb.text != "heal" && len(clients) == 0 {
		return nil, c.unexpected("a client", p.script.Clients...)
	}
	nodes, err := p.listed(c, "from")
	if err != nil {
		return nil, err
	}
	switch verb.text {
	case "partition":
		return []Action{Inject{faults.Partition{Clients: clients, Nodes: nodes}}}, nil
	case "heal":
		return []Action{Inject{faults.Heal{Clients: clients, Nodes: nodes}}}, nil
	}
	if !c.skip("after") {
		return nil, c.unexpected("after and a length of time", "after")
	}
	after, err := span(c, positive)
	return one(Inject{faults.Timeout{Clients: clients, Nodes: nodes, After: after}}, err)
}

// between parses "partition n1 from n2 n3" and "heal n1", after the verb.
func (p *parser) between(c *cursor, verb string) ([]Action, error) {
	nodes, err := p.nodes(c)
	if err != nil {
		return nil, err
	}
	if isClient(c.peek()) {
		return nil, c.wrong(c.next(), "client %q stands beside nodes: a line is about clients or about nodes, so write one for each")
	}
	at := c.at + 1
	from, err := p.listed(c, "from")
	if err != nil {
		return nil, err
	}
	for i, name := range from {
		if slices.Contains(nodes, name) {
			return nil, c.wrong(c.words[at+i], "node %q stands on both sides of from, and no node can be cut off from itself")
		}
	}
	if verb == "heal" {
		return []Action{Inject{faults.HealNodes{Nodes: nodes, From: from}}}, nil
	}
	return []Action{Inject{faults.PartitionNodes{Nodes: nodes, From: from}}}, nil
}

// listed parses the given word and the nodes after it, if the word is next.
func (p *parser) listed(c *cursor, word string) ([]string, error) {
	if !c.skip(word) {
		return nil, nil
	}
	nodes, err := p.nodes(c)
	if err == nil && len(nodes) == 0 {
		err = c.unexpected("a node", nodeNames(p.script.Nodes)...)
	}
	return nodes, err
}

// node parses a line that begins with nodes or servers.
func (p *parser) node(c *cursor) ([]Action, error) {
	at := c.at
	nodes, err := p.places(c, true)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(serverWords(), c.peek()) && slices.Contains(nodeWords(), c.peek()) {
		c.at = at // applies to nodes only
		if nodes, err = p.nodes(c); err != nil {
			return nil, err
		}
	}
	fault, err := p.nodeFault(c)
	if err != nil {
		return nil, err
	}
	var actions []Action
	for _, node := range nodes {
		actions = append(actions, Inject{fault(node)})
	}
	return actions, nil
}

// nodeFault parses a node fault and returns a function that makes the fault for one node.
func (p *parser) nodeFault(c *cursor) (func(node string) faults.Fault, error) {
	verb := c.peek()
	switch verb {
	case "failover", "split", "join", "replication":
		if p.script.Replicas == 0 {
			return nil, c.wrong(c.next(), "%q needs a replica: add a line such as replicas 1 to the settings")
		}
	}
	switch verb {
	case "crash":
		c.next()
		return func(node string) faults.Fault { return faults.CrashNode{Node: node} }, nil
	case "restart":
		c.next()
		empty := c.skip("empty")
		return func(node string) faults.Fault { return faults.RestartNode{Node: node, Empty: empty} }, nil
	case "pause":
		c.next()
		return func(node string) faults.Fault { return faults.PauseNode{Node: node} }, nil
	case "resume":
		c.next()
		return func(node string) faults.Fault { return faults.ResumeNode{Node: node} }, nil
	case "failover":
		c.next()
		return func(node string) faults.Fault { return faults.Failover{Node: node} }, nil
	case "split":
		c.next()
		clients, err := p.clients(c)
		if err == nil && len(clients) == 0 {
			err = c.unexpected("a client that goes to the new primary", p.script.Clients...)
		}
		return func(node string) faults.Fault { return faults.Split{Node: node, Clients: clients} }, err
	case "join":
		c.next()
		return func(node string) faults.Fault { return faults.Join{Node: node} }, nil
	case "clock":
		c.next()
		by, err := span(c, anySign)
		return func(node string) faults.Fault { return faults.NodeClock{Node: node, By: by} }, err
	case "drift":
		c.next()
		rate, err := drift(c)
		return func(node string) faults.Fault { return faults.NodeDrift{Node: node, Rate: rate} }, err
	case "flush":
		c.next()
		return func(node string) faults.Fault { return faults.Flush{Node: node} }, nil
	case "evict":
		c.next()
		return func(node string) faults.Fault { return faults.Evict{Node: node} }, nil
	case "script-flush":
		c.next()
		return func(node string) faults.Fault { return faults.ScriptFlush{Node: node} }, nil
	case "replication":
		c.next()
		fault, err := replication(c)
		return func(node string) faults.Fault {
			fault.Node = node
			return fault
		}, err
	}
	return nil, c.unexpected("what befalls the node", nodeWords()...)
}

func drift(c *cursor) (float64, error) {
	if c.peek() == "" {
		return 0, c.unexpected("a rate such as 1.5")
	}
	w := c.next()
	rate, err := strconv.ParseFloat(w.text, 64)
	if err != nil {
		return 0, c.wrong(w, "%q is not a rate such as 1.5")
	}
	if !(rate >= minDrift && rate <= maxDrift) {
		return 0, c.wrong(w, fmt.Sprintf("the rate must be from %v to %v", minDrift, maxDrift))
	}
	return rate, nil
}

// replication parses the words after "n1 replication".
func replication(c *cursor) (fault faults.Replication, err error) {
	fault.Mode = faults.ReplicationMode(c.peek())
	switch fault.Mode {
	case faults.ReplicationStop, faults.ReplicationStart, faults.ReplicationReset:
		c.next()
	case faults.ReplicationDelay:
		c.next()
		if fault.Delay, err = span(c, positive); err == nil && c.skip("jitter") {
			fault.Jitter, err = span(c, positive)
		}
	case faults.ReplicationBandwidth:
		c.next()
		fault.Rate, err = rate(c)
	case faults.ReplicationTimeout:
		c.next()
		fault.After, err = span(c, positive)
	default:
		err = c.unexpected("stop, start, delay, bandwidth, timeout or reset",
			string(faults.ReplicationStop), string(faults.ReplicationStart), string(faults.ReplicationDelay),
			string(faults.ReplicationBandwidth), string(faults.ReplicationTimeout), string(faults.ReplicationReset))
	}
	return fault, err
}
