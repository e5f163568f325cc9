package scenarios

import (
	"strconv"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

func (a Call) String() string {
	return called(a.Begin, a.Clients, a.Op) + within(a.Within)
}

func (a Work) String() string {
	return called(a.Begin, a.Clients, "work") + " " + a.For.String()
}

func (a Rounds) String() string {
	text := called(a.Begin, a.Clients, "rounds") + " "
	if a.For.IsZero() {
		text += strconv.Itoa(a.Times)
	} else {
		text += "for " + a.For.String()
	}
	switch {
	case a.Update:
		text += " update " + a.Work.String()
	case !a.Work.IsZero():
		text += " work " + a.Work.String()
	}
	if !a.Think.IsZero() {
		text += " think " + a.Think.String()
	}
	return text
}

func (a Write) String() string { return called(a.Begin, a.Clients, "write") }

func (a Await) String() string {
	text := "await " + strings.Join(a.Clients, " ") + " " + string(a.State)
	if a.State == AwaitReplies {
		text += " " + strconv.Itoa(a.Count)
	}
	if len(a.Nodes) > 0 {
		text += " on " + strings.Join(a.Nodes, " ")
	}
	return text + within(a.Within)
}

func (a Wait) String() string { return "wait " + a.For.String() }

func (a Measure) String() string {
	if a.Stop {
		return "stop " + a.Name
	}
	return "measure " + a.Name
}

func (a Inject) String() string { return a.Fault.String() }

// String returns the line in the script language, without its comment.
func (e Expect) String() string {
	text := "expect"
	for _, selector := range e.For {
		text += " " + string(selector)
	}
	if len(e.For) > 0 {
		text += ":"
	}
	return text + " " + anomalyText(e.Anomalies)
}

// anomalyText returns a list in the form that [anomalies] parses.
func anomalyText(list []checker.Anomaly) string {
	if len(list) == 0 {
		return "none"
	}
	return joined(list)
}

func called(begin bool, clients []string, verb string) string {
	text := strings.Join(clients, " ") + " " + verb
	if begin {
		return "begin " + text
	}
	return text
}

func within(limit faults.Span) string {
	if limit.IsZero() {
		return ""
	}
	return " within " + limit.String()
}

// joined joins words with blanks.
func joined[W checker.Anomaly | Selector](list []W) string {
	words := make([]string, len(list))
	for i, word := range list {
		words[i] = string(word)
	}
	return strings.Join(words, " ")
}
