package soak

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// A Nemesis injects faults of one kind, again and again.
type Nemesis struct {
	kind *kind
	// Every is the mean time between the beginnings of two faults. The times are exponentially
	// distributed, so faults are independent of earlier ones.
	Every time.Duration
	// Least and Most bound the duration of a fault, or the size of a clock jump. Values between
	// them are equally likely.
	Least, Most time.Duration
}

// A kind is a kind of nemesis.
type kind struct {
	name, text string
	server     bool // it affects nodes, not clients
	instant    bool // the fault has no end; the span, if any, is the size of a clock jump
	spanless   bool
	// does returns the lines that begin the fault, and those that end it.
	does func(w *writer, who string, span time.Duration) (begin, end []string)
}

// resumeMark stands for the line with which a client resumes its rounds for the rest of the window.
const resumeMark = "again"

// simple returns a fault with one line that begins it and one that ends it; no line ends it if end
// is "".
func simple(begin, end string) func(*writer, string, time.Duration) ([]string, []string) {
	return func(_ *writer, who string, _ time.Duration) ([]string, []string) {
		if end == "" {
			return []string{who + " " + begin}, nil
		}
		return []string{who + " " + begin}, []string{who + " " + end}
	}
}

// jump moves a clock forward or backward, with equal probability.
func jump(w *writer, who string, span time.Duration) ([]string, []string) {
	sign := "+"
	if w.random.IntN(2) == 0 {
		sign = "-"
	}
	return []string{who + " clock " + sign + faults.Span{Abs: span}.String()}, nil
}

func kinds() []kind {
	return []kind{
		{name: "pause", text: "a client's process stops", does: simple("pause", "resume")},
		{name: "crash", text: "a client's process dies, and is started anew", does: func(w *writer, who string, _ time.Duration) ([]string, []string) {
			return []string{who + " crash"}, []string{who + " restart", resumeMark}
		}},
		{name: "partition", text: "a client is cut off", does: func(_ *writer, who string, _ time.Duration) ([]string, []string) {
			return []string{"partition " + who}, []string{"heal " + who}
		}},
		{name: "clock", text: "a client's wall clock jumps", instant: true, does: jump},
		{name: "server-pause", text: "a node's process stops", server: true, does: simple("pause", "resume")},
		{name: "server-crash", text: "a node's process dies, and comes back with its data", server: true, does: simple("crash", "restart")},
		{name: "server-empty", text: "a node's process dies, and comes back without its data", server: true, does: simple("crash", "restart empty")},
		{name: "server-clock", text: "a node's clock jumps", server: true, instant: true, does: jump},
		{name: "failover", text: "a node's primary dies, a replica is promoted, and the dead one comes back as its replica", server: true,
			does: func(w *writer, who string, _ time.Duration) ([]string, []string) {
				if w.plan.Lag == 0 {
					return []string{who + " failover"}, []string{who + " restart"}
				}
				return []string{who + " failover"}, []string{who + " restart", who + " replication delay " + faults.Span{Abs: w.plan.Lag}.String()}
			}},
		{name: "flush", text: "an operator removes all keys of a node", server: true, instant: true, spanless: true, does: simple("flush", "")},
		{name: "evict", text: "a node removes the lock's key for want of memory", server: true, instant: true, spanless: true, does: simple("evict", "")},
	}
}

// Kinds returns the name of each kind of nemesis and a description of what it does.
func Kinds() (list [][2]string) {
	for _, k := range kinds() {
		list = append(list, [2]string{k.name, k.text})
	}
	return list
}

// Kind returns the name of the nemesis's kind.
func (n Nemesis) Kind() string { return n.kind.name }

// NeedsReplicas reports whether the nemesis needs nodes with replicas.
func (n Nemesis) NeedsReplicas() bool { return n.kind.name == "failover" }

// String returns the nemesis in the syntax of [ParseNemesis].
func (n Nemesis) String() string {
	text := n.kind.name + ":" + faults.Span{Abs: n.Every}.String()
	switch {
	case n.kind.spanless:
		return text
	case n.Least == n.Most:
		return text + ":" + faults.Span{Abs: n.Most}.String()
	}
	return text + ":" + faults.Span{Abs: n.Least}.String() + ".." + faults.Span{Abs: n.Most}.String()
}

// ParseNemesis parses KIND[:EVERY[:SPAN|SPAN..SPAN]]. Spans may be given in leases. The defaults
// are one fault every 20 leases on average, with a duration from a tenth of a lease to two leases.
func ParseNemesis(text string, ttl time.Duration) (Nemesis, error) {
	words := strings.Split(text, ":")
	all := kinds()
	var n Nemesis
	for i := range all {
		if all[i].name == words[0] {
			n.kind = &all[i]
		}
	}
	if n.kind == nil {
		return n, &UnknownKind{words[0]}
	}
	if len(words) > 3 || n.kind.spanless && len(words) > 2 {
		return n, fmt.Errorf("%q has too many parts: KIND:EVERY:SPAN, such as pause:5m:1s..40s", text)
	}
	n.Every, n.Least, n.Most = 20*ttl, ttl/10, 2*ttl
	if n.kind.spanless {
		n.Least, n.Most = 0, 0
	}
	var err error
	if len(words) > 1 {
		if n.Every, err = length(words[1], ttl); err != nil {
			return n, err
		}
	}
	if len(words) > 2 {
		least, most, ranged := strings.Cut(words[2], "..")
		if n.Least, err = length(least, ttl); err != nil {
			return n, err
		}
		n.Most = n.Least
		if ranged {
			if n.Most, err = length(most, ttl); err != nil {
				return n, err
			}
		}
		if n.Most < n.Least {
			return n, fmt.Errorf("%s is from more to less: write %s..%s", words[2], most, least)
		}
	}
	return n, nil
}

// An UnknownKind reports a nemesis whose kind does not exist.
type UnknownKind struct{ Name string }

func (e *UnknownKind) Error() string { return fmt.Sprintf("there is no nemesis %q", e.Name) }

// length parses a span, rounded to milliseconds, of at least 1 ms.
func length(word string, ttl time.Duration) (time.Duration, error) {
	span, err := faults.ParseSpan(word)
	if err != nil {
		return 0, err
	}
	d := span.Of(ttl).Round(time.Millisecond)
	if d < time.Millisecond {
		return 0, fmt.Errorf("%s is less than a millisecond", word)
	}
	return d, nil
}

// gap draws the time until the next fault, at least 1 ms.
func (n Nemesis) gap(random *rand.Rand) time.Duration {
	return max(time.Millisecond, time.Duration(random.ExpFloat64()*float64(n.Every)).Round(time.Millisecond))
}

// span draws the duration of a fault.
func (n Nemesis) span(random *rand.Rand) time.Duration {
	if n.Most == n.Least {
		return n.Least
	}
	return n.Least + time.Duration(random.Int64N(int64((n.Most-n.Least)/time.Millisecond)+1))*time.Millisecond
}
