package checkcmd

import (
	"fmt"
	"iter"
	"slices"

	"github.com/lockfault/lockfault/checker/linear"
)

// explained is the smallest part of a history that is still illegal, and the reason.
type explained struct {
	Message  string          `json:"says"` // the reason
	Of       int             `json:"of,omitempty"`
	Smallest bool            `json:"smallest"`
	Events   []explainedPart `json:"events,omitempty"`
}

type explainedPart struct {
	Line    int    `json:"line"`
	Message string `json:"says"`
}

// explain collects the events of the lock of violation v and shrinks them. For [linear.Multi] all
// events count, because one operation names several keys.
func explain(events iter.Seq2[linear.Event, error], spec linear.Spec, v *linear.Violation, strict bool) *explained {
	var list []linear.Event
	for e, err := range events {
		if err != nil {
			break
		}
		if spec == linear.Multi() || e.Key == v.Key || e.Phase == linear.Crash {
			list = append(list, e)
		}
	}
	x, ok := linear.Explain(spec, list, linear.Options{Strict: strict})
	if !ok {
		return &explained{Message: "it is not explained, since it took too long to be sure"}
	}
	all := &explained{Message: x.Violation.Message, Of: x.Of, Smallest: x.Smallest}
	if x.Violation.Rule == v.Rule && slices.Equal(linesOf(x.Violation.Events), linesOf(v.Events)) && slices.Equal(x.Violation.Clients, v.Clients) {
		all.Message = v.Message // the shrunk history ends early, so its message has no durations
	}
	for i := range x.Events {
		all.Events = append(all.Events, explainedPart{x.Events[i].Line, x.Events[i].Describe()})
	}
	return all
}

func linesOf(events []linear.Event) []int {
	lines := make([]int, len(events))
	for i := range events {
		lines[i] = events[i].Line
	}
	return lines
}

func (x *explained) lines() []string {
	if len(x.Events) == 0 {
		return []string{x.Message}
	}
	head := fmt.Sprintf("%d of %d events are illegal by themselves, and none can be left out:", len(x.Events), x.Of)
	if !x.Smallest {
		head = fmt.Sprintf("%d of %d events are illegal by themselves (looking for fewer took too long):", len(x.Events), x.Of)
	}
	lines := []string{head}
	for _, e := range x.Events {
		lines = append(lines, fmt.Sprintf("  line %d: %s", e.Line, e.Message))
	}
	return append(lines, "since "+x.Message)
}
