package faults

import (
	"strconv"
	"strings"
)

func (f PauseClient) String() string   { return f.Client + " pause" }
func (f ResumeClient) String() string  { return f.Client + " resume" }
func (f CrashClient) String() string   { return f.Client + " crash" }
func (f RestartClient) String() string { return f.Client + " restart" }
func (f CancelClient) String() string  { return f.Client + " cancel" }
func (f ClientClock) String() string   { return f.Client + " clock " + signed(f.By) }

func (f Latency) String() string {
	return words("latency", f.Clients, f.Nodes) + " " + f.Base.String() + jitter(f.Jitter)
}

func (f Bandwidth) String() string {
	return words("bandwidth", f.Clients, f.Nodes) + " " + f.Rate.String()
}

func (f Timeout) String() string {
	return words("timeout", f.Clients) + clause(" from", f.Nodes) + " after " + f.After.String()
}

func (f Partition) String() string { return words("partition", f.Clients) + clause(" from", f.Nodes) }
func (f Heal) String() string      { return words("heal", f.Clients) + clause(" from", f.Nodes) }

func (f PartitionNodes) String() string { return words("partition", f.Nodes) + clause(" from", f.From) }
func (f HealNodes) String() string      { return words("heal", f.Nodes) + clause(" from", f.From) }

func (f CrashNode) String() string { return f.Node + " crash" }

func (f RestartNode) String() string {
	if f.Empty {
		return f.Node + " restart empty"
	}
	return f.Node + " restart"
}

func (f PauseNode) String() string  { return f.Node + " pause" }
func (f ResumeNode) String() string { return f.Node + " resume" }
func (f Failover) String() string   { return f.Node + " failover" }
func (f Split) String() string      { return words(f.Node+" split", f.Clients) }
func (f Join) String() string       { return f.Node + " join" }
func (f NodeClock) String() string  { return f.Node + " clock " + signed(f.By) }
func (f NodeDrift) String() string {
	return f.Node + " drift " + strconv.FormatFloat(f.Rate, 'f', -1, 64)
}
func (f Flush) String() string       { return f.Node + " flush" }
func (f Evict) String() string       { return f.Node + " evict" }
func (f ScriptFlush) String() string { return f.Node + " script-flush" }

func (f Replication) String() string {
	line := f.Node + " replication " + string(f.Mode)
	switch f.Mode {
	case ReplicationDelay:
		line += " " + f.Delay.String() + jitter(f.Jitter)
	case ReplicationBandwidth:
		line += " " + f.Rate.String()
	case ReplicationTimeout:
		line += " " + f.After.String()
	}
	return line
}

func (f Hold) String() string { return "hold" + f.Match.text() + f.Match.clauses(f.Times) }
func (f Delay) String() string {
	return "delay" + f.Match.text() + " by " + f.By.String() + f.Match.clauses(f.Times)
}
func (f Drop) String() string  { return "drop" + f.Match.text() + f.Match.clauses(f.Times) }
func (f Reset) String() string { return "reset" + f.Match.text() + f.Match.clauses(f.Times) }

func (f Pass) String() string {
	line := words("pass", f.Clients)
	if f.Once {
		line += " once"
	}
	return line + clause(" on", f.Nodes)
}

func (f Clear) String() string { return words("clear", f.Clients) }

// text returns the middle of an order to the gate, with a leading blank: the clients, the way, and
// the effect or commands, without the clauses.
func (m Match) text() string {
	line := words("", m.Clients) + " " + string(m.Way)
	switch {
	case m.Way == Messages:
		return line
	case m.Effect != "":
		return line + " " + string(m.Effect)
	case len(m.Commands) == 0:
		return line + " any"
	}
	return words(line, m.Commands)
}

// clauses returns the end of an order, with a leading blank: the nodes, the number of messages, and
// whether the order may match no message.
func (m Match) clauses(n int) string {
	text := clause(" on", m.Nodes) + times(n)
	if m.OrNone {
		text += " or none"
	}
	return text
}

// words joins the first word of a line and the lists that follow it with blanks.
func words(first string, lists ...[]string) string {
	var line strings.Builder
	line.WriteString(first)
	for _, list := range lists {
		for _, word := range list {
			line.WriteByte(' ')
			line.WriteString(word)
		}
	}
	return line.String()
}

// clause returns words(first, list), or the empty string if the list is empty.
func clause(first string, list []string) string {
	if len(list) == 0 {
		return ""
	}
	return words(first, list)
}

func jitter(s Span) string {
	if s.IsZero() {
		return ""
	}
	return " jitter " + s.String()
}

func times(n int) string {
	if n == 0 {
		return ""
	}
	return " times " + strconv.Itoa(n)
}

// signed returns s with an explicit sign, which shows in which direction a clock moves.
func signed(s Span) string {
	if text := s.String(); text[0] == '-' {
		return text
	}
	return "+" + s.String()
}
