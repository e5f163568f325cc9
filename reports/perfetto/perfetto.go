// Package perfetto writes a picture as a trace in the Trace Event Format, the JSON format that
// ui.perfetto.dev, chrome://tracing and other viewers read. The format is described in "Trace Event
// Format", a document of the Chromium project. A lane becomes a process, a span a slice of a
// thread, and a moment an instant. The package does not read traces.
package perfetto

import (
	"bufio"
	"container/heap"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lockfault/lockfault/reports/diagram"
)

// An event is an event of the trace.
type event struct {
	Name  string  `json:"name"`
	Kind  string  `json:"cat,omitempty"`
	Phase string  `json:"ph"`
	TS    micros  `json:"ts"`
	Dur   *micros `json:"dur,omitempty"` // of slices only
	PID   int     `json:"pid"`
	TID   int     `json:"tid"`
	Scope string  `json:"s,omitempty"`
	Args  *args   `json:"args,omitempty"`
}

type args struct {
	Name      string `json:"name,omitempty"` // name of a process or thread
	SortIndex *int   `json:"sort_index,omitempty"`
	Event     *int   `json:"event,omitempty"` // number in the history
	Text      string `json:"says,omitempty"`
	To        string `json:"to,omitempty"`
	Effect    string `json:"effect,omitempty"`
	Proves    bool   `json:"proves,omitempty"`
	Open      bool   `json:"open,omitempty"`
}

// micros is a time in the format's unit: microseconds, with 3 decimal places.
type micros time.Duration

// MarshalJSON returns the number.
func (m micros) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d.%03d", int64(m)/1000, int64(m)%1000), nil
}

func length(d time.Duration) *micros { return (*micros)(&d) }

// A threadKind describes the threads for spans of one kind.
type threadKind struct {
	kind diagram.SpanKind
	name string
}

// threads holds the threads of a lane, in the order of display. Spans that overlap go to further
// threads with their own numbers.
var threads = []threadKind{
	{diagram.Hold, "belief"}, {diagram.Key, "key"}, {diagram.Call, "operations"}, {diagram.Repeat, "asks again"},
	{diagram.Stop, "process"}, {diagram.Cut, "partition"}, {diagram.Gated, "kept by the gate"}, {diagram.Odd, "fault"},
}

const (
	happens  = 1   // thread of the moments
	apart    = 100 // distance between the thread numbers of two kinds
	together = 1   // process of overlaps; lanes follow
)

// Write writes the picture as a trace.
func Write(w io.Writer, p diagram.Picture) error {
	t := &trace{Picture: p}
	for i, lane := range p.Lanes {
		t.named("process_name", pid(i), 0, nameOf(lane))
		t.sorted("process_sort_index", pid(i), 0, i+1)
		t.named("thread_name", pid(i), happens, "what happens")
	}
	spans := make([][][]diagram.Span, len(p.Lanes)) // by lane and kind
	for _, s := range p.Spans {
		if spans[s.Lane] == nil {
			spans[s.Lane] = make([][]diagram.Span, len(threads))
		}
		k := slices.IndexFunc(threads, func(thread threadKind) bool { return thread.kind == s.Kind })
		spans[s.Lane][k] = append(spans[s.Lane][k], s)
	}
	for i := range p.Lanes {
		for k, list := range spans[i] {
			t.spans(i, list, apart*(k+1), threads[k].name)
		}
	}
	for _, m := range p.Points {
		t.moment(m)
	}
	if len(p.Overlaps) > 0 || len(p.Proofs) > 0 {
		t.named("process_name", together, 0, "what went wrong")
		t.sorted("process_sort_index", together, 0, 0)
	}
	t.overlaps()
	return t.write(w)
}

func pid(lane int) int { return lane + together + 1 }

func nameOf(lane diagram.Lane) string {
	switch lane.Kind {
	case diagram.Client:
		return "client " + lane.Name
	case diagram.Server:
		return "server " + lane.Name
	}
	return lane.Name
}

type trace struct {
	diagram.Picture
	events []event
}

func (t *trace) named(what string, pid, tid int, name string) {
	t.events = append(t.events, event{Name: what, Phase: "M", PID: pid, TID: tid, Args: &args{Name: name}})
}

func (t *trace) sorted(what string, pid, tid, at int) {
	t.events = append(t.events, event{Name: what, Phase: "M", PID: pid, TID: tid, Args: &args{SortIndex: &at}})
}

// spans distributes the spans of a kind over threads of a lane, so that spans on a thread do not
// overlap.
func (t *trace) spans(lane int, list []diagram.Span, first int, name string) {
	var busy, free places // threads by the end of their last span, and idle threads by number
	threads := 0
	for _, s := range list {
		for len(busy) > 0 && busy[0].order <= s.From {
			at := heap.Pop(&busy).(place).thread
			heap.Push(&free, place{time.Duration(at), at})
		}
		at := threads
		if len(free) > 0 {
			at = heap.Pop(&free).(place).thread
		} else {
			threads++
			text := name
			if at > 0 {
				text = fmt.Sprintf("%s %d", name, at+1)
			}
			t.named("thread_name", pid(lane), first+at, text)
			t.sorted("thread_sort_index", pid(lane), first+at, first+at)
		}
		heap.Push(&busy, place{s.To, at})
		e := event{Name: s.Label, Kind: name, Phase: "X", TS: micros(s.From), Dur: length(s.Length()), PID: pid(lane), TID: first + at, Args: &args{Text: s.Text, Open: s.Open}}
		if s.Began >= 0 {
			e.Args.Event = &s.Began
		}
		t.events = append(t.events, e)
	}
}

// A place is a thread with its sort key.
type place struct {
	order  time.Duration
	thread int
}

// places is a heap for container/heap, smallest key first.
type places []place

func (p places) Len() int           { return len(p) }
func (p places) Less(i, j int) bool { return p[i].order < p[j].order }
func (p places) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *places) Push(x any)        { *p = append(*p, x.(place)) }
func (p *places) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

func (t *trace) moment(m diagram.Point) {
	e := event{Name: m.Label, Kind: "moment", Phase: "i", TS: micros(m.At), PID: together, TID: happens, Scope: "t",
		Args: &args{Event: &m.Event, Text: m.Text, Effect: m.Effect, Proves: m.Proves()}}
	if m.From >= 0 {
		e.PID = pid(m.From)
	} else {
		e.Scope = "g" // no shown lane is concerned
	}
	if m.To >= 0 {
		e.Args.To = nameOf(t.Lanes[m.To])
	}
	t.events = append(t.events, e)
}

// overlaps adds the overlaps and the proofs, each on a thread of its own.
func (t *trace) overlaps() {
	for i, o := range t.Overlaps {
		tid := apart + i
		t.named("thread_name", together, tid, nameOf(t.Lanes[o.A])+" and "+nameOf(t.Lanes[o.B]))
		t.events = append(t.events, event{Name: o.Label(), Kind: "overlap", Phase: "X", TS: micros(o.From), Dur: length(o.To - o.From), PID: together, TID: tid, Args: &args{Open: o.Open}})
	}
	at := map[int]time.Duration{}
	for _, m := range t.Points {
		at[m.Event] = m.At
	}
	for i, p := range t.Proofs {
		tid := 2*apart + i
		t.named("thread_name", together, tid, p.Anomaly)
		for _, number := range p.Events {
			if when, ok := at[number]; ok {
				t.events = append(t.events, event{Name: fmt.Sprintf("%s, event %d", p.Anomaly, number), Kind: "proof", Phase: "i", TS: micros(when), PID: together, TID: tid, Scope: "p",
					Args: &args{Event: &number, Text: p.Text, Proves: true}})
			}
		}
	}
}

// write writes the trace as JSON, an event on each line.
func (t *trace) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	title, err := json.Marshal(t.Title)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, `{"displayTimeUnit":"ms","otherData":{"title":%s},"traceEvents":[`, title)
	for i, e := range t.events {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(text)
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}
