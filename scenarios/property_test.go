package scenarios_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/scenarios"
)

// Any script that can be said is read back as it was, whatever it is.
func TestFormatIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		script := scripts(t)
		text := script.Format()
		got, err := scenarios.Parse("x.txt", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !reflect.DeepEqual(meaning(got), meaning(script)) {
			t.Fatalf("%+v\nwas read back as\n%+v\nfrom\n%s", meaning(script), meaning(got), text)
		}
		roundTrip(t, text)
	})
}

// Any text that parses keeps its comments, in order, and its meaning. Comments
// and blank lines are strewn over a script that is known to parse.
func TestFormatKeepsComments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		number := 0
		comment := func() string {
			number++
			return fmt.Sprintf("# %d.", number)
		}
		for line := range strings.Lines(string(scripts(t).Format())) {
			// The script's own comments, which have no such numbers, go.
			line, _, _ = strings.Cut(strings.TrimSuffix(line, "\n"), "#")
			for range rapid.IntRange(0, 2).Draw(t, "lines above") {
				text.WriteString(rapid.SampledFrom([]string{"", " \t", comment()}).Draw(t, "above") + "\n")
			}
			text.WriteString(line)
			if rapid.Bool().Draw(t, "trailing") {
				text.WriteString(comment())
			}
			text.WriteString("\n")
		}
		src := text.String()
		script, err := scenarios.Parse("x.txt", []byte(src))
		if err != nil {
			t.Fatalf("%v\n%s", err, src)
		}
		formatted := string(script.Format())
		if got, want := comments(formatted), comments(src); !slices.Equal(got, want) {
			t.Fatalf("comments %q became %q", want, got)
		}
		if strings.Contains(formatted, "\n\n\n") {
			t.Fatalf("two blank lines in a row:\n%s", formatted)
		}
		roundTrip(t, []byte(src))
	})
}

func comments(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if _, comment, ok := strings.Cut(strings.TrimSpace(line), "#"); ok {
			found = append(found, comment)
		}
	}
	return found
}

// scripts draws a script that a parser must accept.
func scripts(t *rapid.T) *scenarios.Script {
	s := &scenarios.Script{Name: "x", Settings: settings(t)}
	s.Doc = rapid.SliceOfN(rapid.SampledFrom([]string{"A story.", "", "  more # of it", "source: document 000"}), 0, 4).Draw(t, "doc")
	if len(s.Doc) == 0 {
		s.Doc = nil
	}
	d := &drawer{T: t, clients: s.Clients, nodes: []string{faults.Quorum}}
	for i := range s.Nodes {
		d.nodes = append(d.nodes, faults.NodeName(i))
	}
	// What some steps need to come before them.
	d.inject(faults.Hold{Match: faults.Match{Way: faults.Before}})
	for _, client := range s.Clients {
		d.inject(faults.PauseClient{Client: client}, faults.CrashClient{Client: client}, faults.RestartClient{Client: client})
	}
	for _, node := range d.nodes {
		d.inject(faults.PauseNode{Node: node}, faults.CrashNode{Node: node})
		if s.Replicas > 0 {
			d.inject(faults.Split{Node: node, Clients: s.Clients})
		}
	}
	d.step(scenarios.Measure{Name: "x"}, scenarios.Measure{Name: "x", Stop: true})
	for range d.number(0, 12) {
		d.any(s.Replicas > 0)
	}
	s.Steps = d.steps
	for range d.number(1, 4) {
		s.Expects = append(s.Expects, d.expect())
	}
	return s
}

func settings(t *rapid.T) scenarios.Settings {
	s := scenarios.Defaults()
	all := []string{"A", "B", "C", "Dora4", "ANY"}
	s.Clients = rapid.Permutation(all).Draw(t, "clients")[:rapid.IntRange(1, len(all)).Draw(t, "number of clients")]
	d := &drawer{T: t, clients: s.Clients}
	s.TTL = time.Duration(d.number(1, 1e7)) * time.Millisecond
	s.Nodes = d.number(1, 9)
	s.Replicas = d.number(0, 3)
	s.For = d.selectors()
	for _, span := range []*faults.Span{&s.Grace, &s.Bound, &s.Patience, &s.ReadTimeout} {
		if d.bool() {
			*span = d.span()
		}
	}
	if d.bool() {
		s.Grace = faults.Span{}
	}
	if d.bool() {
		s.Elsewhere = []scenarios.Selector{"their-lock", "@theirs"}
	}
	s.Retries = d.number(0, 1000)
	s.IgnoreContext, s.HonourValidity = d.bool(), d.bool()
	for _, client := range s.Clients {
		if d.bool() {
			if s.Threads == nil {
				s.Threads = map[string]string{}
			}
			s.Threads[client] = rapid.SampledFrom([]string{"7", "8", "main-1"}).Draw(t, "thread")
		}
	}
	return s
}

// A drawer draws the parts of a script.
type drawer struct {
	*rapid.T
	clients, nodes []string
	nodesLeft      []string // nodes that the fault does not name yet
	steps          []scenarios.Step
}

func (d *drawer) step(actions ...scenarios.Action) {
	for _, action := range actions {
		d.steps = append(d.steps, scenarios.Step{Do: action})
	}
}

func (d *drawer) inject(all ...faults.Fault) {
	for _, fault := range all {
		d.step(scenarios.Inject{Fault: fault})
	}
}

func (d *drawer) number(least, most int) int {
	return rapid.IntRange(least, most).Draw(d.T, "number")
}
func (d *drawer) bool() bool { return rapid.Bool().Draw(d.T, "bool") }

// some draws least or more of the words, in any order.
func (d *drawer) some(words []string, least int) []string {
	n := d.number(least, len(words))
	if n == 0 {
		return nil
	}
	return rapid.Permutation(words).Draw(d.T, "words")[:n]
}

func (d *drawer) span() faults.Span {
	if d.bool() {
		return faults.Span{TTLs: rapid.Float64Range(1e-6, 1000).Draw(d.T, "TTLs")}
	}
	return faults.Span{Abs: time.Duration(rapid.Int64Range(1, int64(1000*time.Hour)).Draw(d.T, "time"))}
}

func (d *drawer) maybe() faults.Span {
	if d.bool() {
		return faults.Span{}
	}
	return d.span()
}

func (d *drawer) rate() faults.Rate {
	per := rapid.SampledFrom([]faults.Span{{Abs: time.Second}, {TTLs: 1}}).Draw(d.T, "per")
	return faults.Rate{Bytes: rapid.Int64Range(1, 1e9).Draw(d.T, "bytes"), Per: per}
}

func (d *drawer) moved() faults.Span {
	s := d.maybe()
	if d.bool() {
		return faults.Span{TTLs: -s.TTLs, Abs: -s.Abs}
	}
	return s
}

func (d *drawer) selectors() []scenarios.Selector {
	var list []scenarios.Selector
	for _, word := range d.some([]string{"redlock", "set-nx-*", "@single", "*", "redsync-5"}, 0) {
		list = append(list, scenarios.Selector(word))
	}
	return list
}

func (d *drawer) expect() scenarios.Expect {
	e := scenarios.Expect{For: d.selectors()}
	var words []string
	for _, anomaly := range checker.Anomalies() {
		words = append(words, string(anomaly))
	}
	for _, word := range d.some(words, 0) {
		e.Anomalies = append(e.Anomalies, checker.Anomaly(word))
	}
	e.Reason = rapid.SampledFrom([]string{"", "because", "# : none"}).Draw(d.T, "reason")
	return e
}

func (d *drawer) match(messages bool) faults.Match {
	m := faults.Match{Way: faults.Messages}
	if !messages {
		m.Way = rapid.SampledFrom([]faults.Way{faults.Before, faults.After}).Draw(d.T, "way")
		if m.Effect = rapid.SampledFrom(append(faults.Effects(m.Way), "")).Draw(d.T, "effect"); m.Effect == "" {
			m.Commands = d.some([]string{"SET", "GETSET", "EVAL", "JSON.SET"}, 0)
		}
	}
	return m
}

// fault draws a fault of the definition, with any values that a script can give to its fields.
func (d *drawer) fault(def faults.Definition) faults.Fault {
	d.nodesLeft = d.nodes
	f, err := def.New(func(fields []faults.Field) error {
		d.fill(def, fields)
		return nil
	})
	if err != nil {
		d.Fatal(err)
	}
	return f
}

func (d *drawer) fill(def faults.Definition, fields []faults.Field) {
	for _, field := range fields {
		if field.Optional && d.bool() {
			continue
		}
		switch v := field.Value.(type) {
		case faults.TargetField:
			*v.To = d.name(def)
		case faults.ClientsField:
			least := 0
			if v.Missing != "" {
				least = 1
			}
			*v.To = d.some(d.clients, least)
		case faults.NodesField:
			least, from := 0, d.nodes
			if def.Target == faults.BetweenNodes { // a node is on one side only
				least, from = min(1, len(d.nodesLeft)), d.nodesLeft
				if field.Keyword == "" && len(from) > 1 {
					from = from[1:]
				}
			}
			*v.To = d.some(from, least)
			d.nodesLeft = slices.DeleteFunc(slices.Clone(d.nodesLeft), func(n string) bool { return slices.Contains(*v.To, n) })
		case faults.SpanField:
			switch v.Rule {
			case faults.PositiveSpan:
				*v.To = d.span()
			case faults.NotNegativeSpan:
				*v.To = d.maybe()
			default:
				*v.To = d.moved()
			}
		case faults.RateField:
			if !v.Unlimited || d.bool() {
				*v.To = d.rate()
			}
		case faults.DriftField:
			*v.To = rapid.Float64Range(0.01, 100).Draw(d.T, "rate")
		case faults.FlagField:
			*v.To = d.bool()
		case faults.CountField:
			*v.To = d.number(1, 1000)
		case faults.MessagesField:
			m := d.match(d.bool())
			v.To.Way, v.To.Effect, v.To.Commands = m.Way, m.Effect, m.Commands
		case faults.ChoiceField:
			option := rapid.SampledFrom(v.Options).Draw(d.T, "option")
			*v.To = option.Word
			d.fill(def, option.Fields)
		default:
			d.Fatalf("a field of type %T: draw a value for it here", v)
		}
	}
}

// name draws the name of a target.
func (d *drawer) name(def faults.Definition) string {
	if def.Target == faults.OnClient {
		return rapid.SampledFrom(d.clients).Draw(d.T, "client")
	}
	return rapid.SampledFrom(d.nodes).Draw(d.T, "node")
}

// any draws a step of any kind. Faults of several nodes or clients share a
// line, as they do when they were read.
func (d *drawer) any(replicas bool) {
	clients, begin := d.some(d.clients, 1), d.bool()
	actions := []scenarios.Action{
		scenarios.Call{Clients: clients, Op: "acquire", Within: d.maybe(), Begin: begin},
		scenarios.Call{Clients: clients, Op: rapid.SampledFrom([]string{"try", "release", "extend"}).Draw(d.T, "op"), Begin: begin},
		scenarios.Work{Clients: clients, For: d.span(), Begin: begin},
		scenarios.Rounds{Clients: clients, Times: d.number(1, 1000), Work: d.maybe(), Begin: begin},
		scenarios.Write{Clients: clients, Begin: begin},
		scenarios.Await{Clients: clients, State: scenarios.AwaitReplies, Count: d.number(1, 1000), Within: d.maybe()},
		scenarios.Await{Clients: clients, State: rapid.SampledFrom([]scenarios.AwaitState{
			scenarios.AwaitDone, scenarios.AwaitHeld, scenarios.AwaitHolding}).Draw(d.T, "state"), Within: d.maybe()},
		scenarios.Await{Clients: clients, State: scenarios.AwaitHeld, Nodes: d.some(d.nodes, 0), Within: d.maybe()},
		scenarios.Wait{For: d.span()},
		scenarios.Measure{Name: "x", Stop: true},
	}
	for _, def := range faults.Definitions() {
		if crash := (faults.CrashClient{}).Definition().Name; def.Name == crash {
			continue // the client could do nothing after it
		}
		if replicas || def.Requires != faults.NeedsReplicas {
			actions = append(actions, scenarios.Inject{Fault: d.fault(def)})
		}
	}
	if i := d.number(0, len(actions)+1); i < len(actions) {
		d.step(actions[i])
		return
	}
	if d.bool() {
		name := rapid.SampledFrom([]string{"x", "measure"}).Draw(d.T, "stopwatch")
		d.step(scenarios.Measure{Name: name}, scenarios.Measure{Name: name, Stop: true})
		return
	}
	line, by := len(d.steps)+1, d.moved()
	if d.bool() {
		for _, node := range d.some(d.nodes, 1) {
			d.steps = append(d.steps, scenarios.Step{Line: line, Do: scenarios.Inject{Fault: faults.NodeClock{Node: node, By: by}}})
		}
		return
	}
	for _, client := range clients {
		d.steps = append(d.steps, scenarios.Step{Line: line, Do: scenarios.Inject{Fault: faults.ClientClock{Client: client, By: by}}})
	}
}
