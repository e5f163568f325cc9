package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockfault/lockfault/faults"
)

// This file parses the lines of faults by the table of package faults: a [faults.Definition] says
// where names stand, and its fields what follows.

// ParseFault parses the line of one fault, such as the text of a history's fault event. Names of
// clients and nodes are not checked against declarations.
func ParseFault(text string) (faults.Fault, error) {
	l, syntax := cut("fault", text)
	if syntax != nil {
		return nil, syntax
	}
	p := parser{script: &Script{Settings: Settings{Replicas: 1}}, anyNames: true}
	c := &cursor{file: "fault", line: l}
	d, ok := faults.DefinitionOf(c.texts())
	if !ok {
		return nil, fmt.Errorf("parse fault %q: no such fault", text)
	}
	actions, err := p.fault(c, d)
	if err == nil {
		err = c.done()
	}
	switch {
	case err != nil:
		return nil, err
	case len(actions) != 1:
		return nil, fmt.Errorf("parse fault %q: must apply to one client or node", text)
	}
	return actions[0].(Inject).Fault, nil
}

// fault parses a line that applies a fault to several clients or nodes, and returns one action for
// each, or a line of a fault of another target. A line that begins with a node must be a fault.
func (p *parser) fault(c *cursor, d faults.Definition) ([]Action, error) {
	switch first := c.peek(); {
	case isNode(first):
		return p.nodeFault(c)
	case isClient(first):
		return p.clientFault(c)
	}
	c.next()
	f, err := p.fields(c, d)
	if err == nil && d.Target == faults.BetweenNodes {
		err = checkSides(c)
	}
	return one(Inject{f}, err)
}

// clientFault parses a line that begins with clients.
func (p *parser) clientFault(c *cursor) ([]Action, error) {
	clients, err := p.clients(c)
	if err != nil {
		return nil, err
	}
	return p.targeted(c, clients, faults.OnClient)
}

// nodeFault parses a line that begins with nodes or servers.
func (p *parser) nodeFault(c *cursor) ([]Action, error) {
	at := c.at
	nodes, err := p.places(c, true)
	if err != nil {
		return nil, err
	}
	if d, ok := faults.DefinitionOf([]string{nodes[0], c.peek()}); ok && d.Target == faults.OnNode {
		c.at = at // applies to nodes only
		if nodes, err = p.nodes(c); err != nil {
			return nil, err
		}
	}
	return p.targeted(c, nodes, faults.OnNode, faults.OnServer)
}

// targeted parses a fault after the names of its targets.
func (p *parser) targeted(c *cursor, names []string, targets ...faults.Target) ([]Action, error) {
	d, ok := faults.DefinitionOf([]string{names[0], c.peek()})
	switch {
	case !ok:
		return nil, c.unexpectedVerb("node", "a fault of the node", faults.Words(targets...)...)
	case d.Requires == faults.NeedsReplicas && p.script.Replicas == 0:
		return nil, c.wrong(c.next(), "%q needs a replica: add a line such as replicas 1 to the settings")
	}
	c.next()
	at := c.at
	var actions []Action
	for _, name := range names {
		c.at, p.target = at, name
		f, err := p.fields(c, d)
		if err != nil {
			return nil, err
		}
		actions = append(actions, Inject{f})
	}
	return actions, nil
}

// unexpectedVerb returns the error for the word after the names of clients or nodes: it is no verb
// for them, but perhaps the word of a fault with another target.
func (c *cursor) unexpectedVerb(of, wanted string, verbs ...string) error {
	all := faults.Definitions()
	if i := slices.IndexFunc(all, func(d faults.Definition) bool { return d.Word == c.peek() }); i >= 0 {
		return c.wrong(c.next(), "%q does not follow the name of a "+of+": write it as in "+all[i].Example)
	}
	return c.unexpected(wanted, verbs...)
}

// fields parses the fields of a fault after its word.
func (p *parser) fields(c *cursor, d faults.Definition) (faults.Fault, error) {
	return d.New(func(fields []faults.Field) error { return p.parseFields(c, fields, d.Example) })
}

// parseFields parses fields in their order, and then clauses in any order. The example is a correct
// line, for errors.
func (p *parser) parseFields(c *cursor, fields []faults.Field, example string) error {
	for i, field := range fields {
		if field.Clause {
			return p.clauses(c, fields[i:])
		}
		if field.Keyword != "" && !c.skip(field.Keyword) {
			if field.Optional {
				continue
			}
			return c.unexpected("a length of time such as "+field.Keyword+" 1s", field.Keyword)
		}
		if err := p.fieldValue(c, field); err != nil {
			return err
		}
		if err := checkMixed(c, field, fields[i+1:], example); err != nil {
			return err
		}
	}
	return nil
}

// checkMixed returns an error if a client follows a list of nodes, or a node a list of clients,
// where the next field is no such list.
func checkMixed(c *cursor, field faults.Field, rest []faults.Field, example string) error {
	switch field.Value.(type) {
	case faults.ClientsField:
		if !isNode(c.peek()) {
			return nil
		}
		advice := "no nodes belong here"
		for _, later := range rest {
			if _, nodes := later.Value.(faults.NodesField); !nodes {
				continue
			}
			if later.Keyword == "" {
				return nil
			}
			advice = "write " + later.Keyword + " before the nodes"
		}
		return c.wrong(c.next(), "node %q stands in the list of clients: "+advice+", as in "+example)
	case faults.NodesField:
		if !isClient(c.peek()) {
			return nil
		}
		// The same word may be about clients, too: "partition n1" and "partition A from n1".
		if d, ok := faults.DefinitionOf([]string{c.words[0].text, c.peek()}); ok {
			example = d.Example
		}
		return c.wrong(c.next(), "client %q stands in the list of nodes: name the clients first, as in "+example)
	}
	return nil
}

// clauses parses the clauses at the end of a line, each at most once.
func (p *parser) clauses(c *cursor, clauses []faults.Field) error {
	var words, first []string
	for _, clause := range clauses {
		word := keyword(clause)
		start, _, several := strings.Cut(word, " ")
		if first = append(first, start); several {
			word = "the words " + word
		}
		words = append(words, word)
	}
	var seen []string
	for c.peek() != "" {
		i := slices.Index(first, c.peek())
		if i < 0 {
			return c.unexpected(strings.Join(words, ", ")+", or the end of the line", first...)
		}
		if slices.Contains(seen, first[i]) {
			return c.wrong(c.next(), "%q stands twice")
		}
		seen = append(seen, first[i])
		if clauses[i].Keyword != "" {
			c.next()
		}
		if err := p.fieldValue(c, clauses[i]); err != nil {
			return err
		}
	}
	for i, clause := range clauses {
		if !clause.Optional && !slices.Contains(seen, first[i]) {
			return c.unexpected("a length of time such as " + words[i] + " 1s")
		}
	}
	return nil
}

// keyword returns the word or words with which a clause begins.
func keyword(clause faults.Field) string {
	if flag, ok := clause.Value.(faults.FlagField); ok {
		return flag.Word
	}
	return clause.Keyword
}

// fieldValue parses the value of a field.
func (p *parser) fieldValue(c *cursor, field faults.Field) (err error) {
	switch v := field.Value.(type) {
	case faults.TargetField:
		*v.To = p.target
	case faults.ClientsField:
		if *v.To, err = p.clients(c); err == nil && len(*v.To) == 0 && v.Missing != "" {
			err = c.unexpected(v.Missing, p.script.Clients...)
		}
	case faults.NodesField:
		if *v.To, err = p.nodes(c); err == nil && len(*v.To) == 0 && field.Keyword != "" {
			err = c.unexpected("a node", nodeNames(p.script.Nodes)...)
		}
	case faults.SpanField:
		*v.To, err = span(c, v.Rule)
	case faults.RateField:
		if !v.Unlimited || !c.skip("unlimited") {
			*v.To, err = rate(c)
		}
	case faults.DriftField:
		*v.To, err = drift(c)
	case faults.FlagField:
		err = flag(c, v, field.Clause)
	case faults.CountField:
		*v.To, err = number(c, "times", 1, maxCount)
	case faults.MessagesField:
		err = p.messages(c, v.To)
	case faults.ChoiceField:
		err = p.choice(c, v)
	}
	return err
}

// flag parses a word, or several of which the first decides that the others must follow. Unless the flag
// is a clause, it ends the line.
func flag(c *cursor, v faults.FlagField, clause bool) error {
	words := strings.Fields(v.Word)
	if *v.To = c.skip(words[0]); !*v.To {
		if c.peek() != "" && !clause {
			return c.unexpected(v.Word+", or the end of the line,", words[0])
		}
		return nil
	}
	for _, word := range words[1:] {
		if !c.skip(word) {
			return c.unexpected(word, word)
		}
	}
	return nil
}

// choice parses one of several words and the fields that follow it.
func (p *parser) choice(c *cursor, v faults.ChoiceField) error {
	var words []string
	for _, option := range v.Options {
		if words = append(words, string(option.Word)); c.skip(string(option.Word)) {
			*v.To = option.Word
			return p.parseFields(c, option.Fields, "")
		}
	}
	last := len(words) - 1
	return c.unexpected(strings.Join(words[:last], ", ")+" or "+words[last], words...)
}

// drift parses the rate of a clock.
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

// checkSides returns an error if a line names a node on both sides of from.
func checkSides(c *cursor) error {
	for i, w := range c.words {
		if isNode(w.text) && slices.ContainsFunc(c.words[:i], func(earlier word) bool { return earlier.text == w.text }) {
			return c.wrong(w, "node %q stands on both sides of from, and no node can be cut off from itself")
		}
	}
	return nil
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
			return c.wrong(w, "no service has the command %q: not Redis, PostgreSQL, etcd or ZooKeeper", allCommands()...)
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
