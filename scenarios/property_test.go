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
	m := faults.Match{Clients: d.some(d.clients, 0), Nodes: d.some(d.nodes, 0), OrNone: d.bool()}
	m.Way = faults.Messages
	if !messages {
		m.Way = rapid.SampledFrom([]faults.Way{faults.Before, faults.After}).Draw(d.T, "way")
		if m.Effect = rapid.SampledFrom(append(faults.Effects(m.Way), "")).Draw(d.T, "effect"); m.Effect == "" {
			m.Commands = d.some([]string{"SET", "GETSET", "EVAL", "JSON.SET"}, 0)
		}
	}
	return m
}

// any draws a step of any kind. Faults of several nodes or clients share a
// line, as they do when they were read.
func (d *drawer) any(replicas bool) {
	clients, begin := d.some(d.clients, 1), d.bool()
	node := rapid.SampledFrom(d.nodes).Draw(d.T, "node")
	times := d.number(0, 1000)
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
	for _, fault := range []faults.Fault{
		faults.Latency{Clients: d.some(d.clients, 0), Nodes: d.some(d.nodes, 0), Base: d.maybe(), Jitter: d.maybe()},
		faults.Bandwidth{Clients: d.some(d.clients, 0), Nodes: d.some(d.nodes, 0), Rate: rapid.SampledFrom([]faults.Rate{{}, d.rate()}).Draw(d.T, "limit")},
		faults.Partition{Clients: clients, Nodes: d.some(d.nodes, 0)},
		faults.Timeout{Clients: clients, Nodes: d.some(d.nodes, 0), After: d.span()},
		faults.Heal{Clients: d.some(d.clients, 0), Nodes: d.some(d.nodes, 0)},
		faults.PartitionNodes{Nodes: d.nodes[:1], From: d.some(d.nodes[1:], 0)}, faults.HealNodes{Nodes: d.some(d.nodes[1:], 1), From: rapid.SampledFrom([][]string{nil, d.nodes[:1]}).Draw(d.T, "from")},
		faults.CancelClient{Client: clients[0]},
		faults.RestartNode{Node: node, Empty: d.bool()}, faults.ResumeNode{Node: node},
		faults.NodeClock{Node: node, By: d.moved()},
		faults.NodeDrift{Node: node, Rate: rapid.Float64Range(0.01, 100).Draw(d.T, "rate")},
		faults.Flush{Node: node}, faults.Evict{Node: node}, faults.ScriptFlush{Node: node},
		faults.Hold{Match: d.match(begin), Times: times}, faults.Drop{Match: d.match(begin), Times: times},
		faults.Reset{Match: d.match(begin), Times: times}, faults.Delay{Match: d.match(begin), By: d.span(), Times: times},
		faults.Pass{Clients: clients, Once: d.bool(), Nodes: d.some(d.nodes, 0)}, faults.Clear{Clients: d.some(d.clients, 0)},
	} {
		actions = append(actions, scenarios.Inject{Fault: fault})
	}
	if replicas {
		for _, fault := range []faults.Fault{
			faults.Failover{Node: node}, faults.Join{Node: node}, faults.Split{Node: node, Clients: clients},
			faults.Replication{Node: node, Mode: faults.ReplicationStop},
			faults.Replication{Node: node, Mode: faults.ReplicationDelay, Delay: d.span(), Jitter: d.maybe()},
			faults.Replication{Node: node, Mode: faults.ReplicationBandwidth, Rate: d.rate()},
			faults.Replication{Node: node, Mode: faults.ReplicationTimeout, After: d.span()},
			faults.Replication{Node: node, Mode: faults.ReplicationReset},
		} {
			actions = append(actions, scenarios.Inject{Fault: fault})
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
