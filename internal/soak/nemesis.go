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
	faults.Nemesis
	fault faults.Definition
}

// server reports whether the nemesis affects nodes, not clients.
func (k *kind) server() bool {
	return k.fault.Target == faults.OnNode || k.fault.Target == faults.OnServer
}

// instant reports whether the fault has no end; its span, if any, is the size of a clock jump.
func (k *kind) instant() bool { return k.End == "" }

// spanless reports whether the fault has neither a duration nor a size.
func (k *kind) spanless() bool { return k.End == "" && !k.Jump }

// resumeMark stands for the line with which a client resumes its rounds for the rest of the window.
const resumeMark = "again"

// lines returns the lines that begin the fault of the named client or node, and those that end it.
// A clock jumps forward or backward, with equal probability.
func (k *kind) lines(w *writer, who string, span time.Duration) (begin, end []string) {
	line := func(rest string) string {
		if k.fault.Target.PutsNamesFirst() {
			return who + " " + rest
		}
		return rest + " " + who
	}
	rest := k.fault.Word
	if k.Jump {
		sign := " +"
		if w.random.IntN(2) == 0 {
			sign = " -"
		}
		rest += sign + faults.Span{Abs: span}.String()
	}
	if begin = []string{line(rest)}; k.instant() {
		return begin, nil
	}
	end = []string{line(k.End)}
	switch {
	case k.fault.Name == (faults.CrashClient{}).Definition().Name:
		end = append(end, resumeMark)
	case k.fault.Requires == faults.NeedsReplicas && w.plan.Lag > 0: // the new primary's stream is not delayed yet
		end = append(end, who+" replication delay "+faults.Span{Abs: w.plan.Lag}.String())
	}
	return begin, end
}

func kinds() (list []kind) {
	for _, d := range faults.Definitions() {
		for _, n := range d.Nemeses {
			list = append(list, kind{n, d})
		}
	}
	return list
}

// Kinds returns the name of each kind of nemesis and a description of what it does.
func Kinds() (list [][2]string) {
	for _, k := range kinds() {
		list = append(list, [2]string{k.Name, k.Summary})
	}
	return list
}

// NeedsReplicas reports whether the nemesis needs nodes with replicas.
func (n Nemesis) NeedsReplicas() bool { return n.kind.fault.Requires == faults.NeedsReplicas }

// String returns the nemesis in the syntax of [ParseNemesis].
func (n Nemesis) String() string {
	text := n.kind.Name + ":" + faults.Span{Abs: n.Every}.String()
	switch {
	case n.kind.spanless():
		return text
	case n.Least == n.Most:
		return text + ":" + faults.Span{Abs: n.Most}.String()
	}
	return text + ":" + faults.Span{Abs: n.Least}.String() + ".." + faults.Span{Abs: n.Most}.String()
}

// MarshalText returns the nemesis in the syntax of [ParseNemesis].
func (n Nemesis) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText parses what MarshalText returns, in which no span is in leases.
func (n *Nemesis) UnmarshalText(text []byte) (err error) {
	*n, err = ParseNemesis(string(text), 0)
	return err
}

// ParseNemesis parses KIND[:EVERY[:SPAN|SPAN..SPAN]]. Spans may be given in leases. The defaults
// are one fault every 20 leases on average, with a duration from a tenth of a lease to two leases.
func ParseNemesis(text string, ttl time.Duration) (Nemesis, error) {
	words := strings.Split(text, ":")
	all := kinds()
	var n Nemesis
	for i := range all {
		if all[i].Name == words[0] {
			n.kind = &all[i]
		}
	}
	if n.kind == nil {
		return n, &UnknownKind{words[0]}
	}
	if len(words) > 3 || n.kind.spanless() && len(words) > 2 {
		return n, fmt.Errorf("%q has too many parts: KIND:EVERY:SPAN, such as pause:5m:1s..40s", text)
	}
	n.Every, n.Least, n.Most = 20*ttl, ttl/10, 2*ttl
	if n.kind.spanless() {
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
