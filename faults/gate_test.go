package faults_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// request returns a request for a text "client node COMMAND ARGUMENT…".
func request(text string) faults.Message { return message(text, faults.Before) }
func reply(text string) faults.Message   { return message(text, faults.After) }
func push(text string) faults.Message    { return message(text+" ", faults.Messages) }

func message(text string, way faults.Way) faults.Message {
	client, rest, _ := strings.Cut(text, " ")
	node, command, _ := strings.Cut(rest, " ")
	m := faults.Message{Client: client, Node: node, Way: way, Words: strings.Fields(command), Keys: []string{"lock"}}
	if len(m.Words) > 0 {
		m.Command = m.Words[0]
	}
	return m
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		name string
		in   faults.Match
		yes  []faults.Message
		no   []faults.Message
	}{
		{"everything before", faults.Match{Way: faults.Before},
			[]faults.Message{request("A n1 SET"), request("B n2 EVALSHA")},
			[]faults.Message{reply("A n1 SET"), push("A n1")}},
		{"any is not the handshake", faults.Match{Way: faults.Before},
			[]faults.Message{request("A n1 PING")},
			[]faults.Message{request("A n1 HELLO"), request("A n1 AUTH"), request("A n1 CLIENT"), request("A n1 SELECT"), request("A n1 READONLY")}},
		{"the handshake by name", faults.Match{Way: faults.After, Commands: []string{"HELLO"}},
			[]faults.Message{reply("A n1 HELLO")},
			[]faults.Message{request("A n1 HELLO"), reply("A n1 SET")}},
		{"clients", faults.Match{Way: faults.Before, Clients: []string{"A", "C"}},
			[]faults.Message{request("A n1 SET"), request("C n1 SET")},
			[]faults.Message{request("B n1 SET")}},
		{"nodes", faults.Match{Way: faults.Before, Nodes: []string{"n2"}},
			[]faults.Message{request("A n2 SET")},
			[]faults.Message{request("A n1 SET")}},
		{"the quorum of five", faults.Match{Way: faults.Before, Nodes: []string{faults.Quorum}},
			[]faults.Message{request("A n3 SET")},
			[]faults.Message{request("A n1 SET"), request("A n5 SET"), request("A quorum SET")}},
		{"commands", faults.Match{Way: faults.Before, Commands: []string{"SET", "DEL"}},
			[]faults.Message{request("A n1 SET"), request("A n1 DEL")},
			[]faults.Message{request("A n1 SETNX"), request("A n1 GET")}},
		{"EVAL stands for all scripts", faults.Match{Way: faults.Before, Commands: []string{"EVAL"}},
			[]faults.Message{request("A n1 EVAL"), request("A n1 EVALSHA"), request("A n1 EVAL_RO"), request("A n1 FCALL"), request("A n1 FCALL_RO")},
			[]faults.Message{request("A n1 SCRIPT")}},
		{"EVALSHA stands for itself", faults.Match{Way: faults.Before, Commands: []string{"EVALSHA"}},
			[]faults.Message{request("A n1 EVALSHA")},
			[]faults.Message{request("A n1 EVAL")}},
		{"what writes", faults.Match{Way: faults.Before, Effect: faults.Writing},
			[]faults.Message{request("A n1 SET lock a"), request("A n1 EVAL text 1 lock a"), request("A n1 FCALL take 1 lock a"), request("A n1 DEL other lock"), request("A n1 NO.SUCH lock")},
			[]faults.Message{request("A n1 GET lock"), request("A n1 SET other lock-not"), request("A n1 PUBLISH lock a"), request("A n1 SSUBSCRIBE lock"), request("A n1 EXEC"), reply("A n1 SET lock a")}},
		{"what reads", faults.Match{Way: faults.After, Effect: faults.Reading},
			[]faults.Message{reply("A n1 GET lock"), reply("A n1 HGETALL lock"), reply("A n1 DIGEST lock"), reply("A n1 EVAL_RO text 1 lock")},
			[]faults.Message{reply("A n1 GET other"), reply("A n1 SET lock a"), reply("A n1 SUBSCRIBE lock"), reply("A n1 PUBLISH lock a"), reply("A n1 PING"), reply("A n1 WATCH lock")}},
		{"what took", faults.Match{Way: faults.After, Effect: faults.Taking},
			[]faults.Message{{Client: "A", Node: "n1", Way: faults.After, Command: "EXEC", Did: faults.Taking}},
			[]faults.Message{reply("A n1 SET lock a"), {Client: "A", Node: "n1", Way: faults.After, Command: "SET", Did: faults.Freeing}}},
		{"what freed", faults.Match{Way: faults.After, Effect: faults.Freeing},
			[]faults.Message{{Client: "A", Node: "n1", Way: faults.After, Command: "EVAL", Did: faults.Freeing}},
			[]faults.Message{reply("A n1 DEL lock")}},
		{"messages of subscriptions", faults.Match{Way: faults.Messages, Clients: []string{"A"}},
			[]faults.Message{push("A n1")},
			[]faults.Message{push("B n1"), reply("A n1 SUBSCRIBE")}},
		{"messages have no command", faults.Match{Way: faults.Messages, Commands: []string{"PUBLISH"}},
			[]faults.Message{push("A n1")}, nil},
		{"any of a service", faults.Match{Way: faults.Before},
			[]faults.Message{{Way: faults.Before, Service: true, Command: "SELECT"}},
			[]faults.Message{{Way: faults.Before, Service: true, Command: "STARTUP", Opens: true}, {Service: true, Command: "SELECT"}}},
		{"a statement of several", faults.Match{Way: faults.After, Commands: []string{"COMMIT", "INSERT"}},
			[]faults.Message{{Way: faults.After, Service: true, Command: "BEGIN", Also: []string{"SELECT", "INSERT"}}, {Way: faults.After, Service: true, Command: "COMMIT"}},
			[]faults.Message{{Way: faults.After, Service: true, Command: "BEGIN", Also: []string{"SELECT"}}}},
		{"a service's writes", faults.Match{Way: faults.Before, Effect: faults.Writing}, nil,
			[]faults.Message{{Way: faults.Before, Service: true, Command: "SET", Words: []string{"SET", "lock"}, Keys: []string{"lock"}}}},
		{"a service's reads", faults.Match{Way: faults.Before, Effect: faults.Reading}, nil,
			[]faults.Message{{Way: faults.Before, Service: true, Command: "SELECT", Words: []string{"SELECT", "lock"}, Keys: []string{"lock"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, m := range c.yes {
				if !c.in.Matches(m, 5) {
					t.Errorf("%+v does not match %+v", c.in, m)
				}
			}
			for _, m := range c.no {
				if c.in.Matches(m, 5) {
					t.Errorf("%+v matches %+v", c.in, m)
				}
			}
		})
	}
}

const ttl = 10 * time.Second

// play applies orders and messages to a gate and returns the decisions, as "pass hold delay:1s".
func play(t *testing.T, g *faults.Gate, steps ...any) string {
	t.Helper()
	var said []string
	for _, step := range steps {
		switch step := step.(type) {
		case faults.Message:
			does, by := g.Decide(step)
			text := string(does)
			if by != 0 {
				text += ":" + by.String()
			}
			said = append(said, text)
		case faults.Pass:
			g.EndHolds(step.Clients, step.Nodes)
		case faults.Clear:
			g.Clear(step.Clients)
		case faults.Order:
			g.Add(step, ttl)
		default:
			t.Fatalf("%v is nothing that a gate has to do with", step)
		}
	}
	return strings.Join(said, " ")
}

func TestGate(t *testing.T) {
	before := func(clients ...string) faults.Match { return faults.Match{Way: faults.Before, Clients: clients} }
	a, b := request("A n1 SET"), request("B n1 SET")
	for _, c := range []struct {
		name  string
		steps []any
		want  string
	}{
		{"nothing ordered", []any{a}, "pass"},
		{"each order", []any{
			faults.Hold{Match: before()}, a,
			faults.Drop{Match: before()}, a,
			faults.Reset{Match: before()}, a,
			faults.Delay{Match: before(), By: faults.Span{TTLs: 0.5}}, a,
			faults.Delay{Match: before(), By: faults.Span{Abs: time.Second}}, a,
		}, "hold drop reset delay:5s delay:1s"},
		{"the youngest that matches wins", []any{
			faults.Drop{Match: before()}, faults.Hold{Match: before("A")}, a, b,
		}, "hold drop"},
		{"an order that is used up makes way", []any{
			faults.Drop{Match: before()}, faults.Hold{Match: before(), Times: 2}, a, b, a,
		}, "hold hold drop"},
		{"times counts matches only", []any{
			faults.Hold{Match: before("A"), Times: 1}, b, b, a, a,
		}, "pass pass hold pass"},
		{"pass ends holds, for the named", []any{
			faults.Hold{Match: before()}, faults.Drop{Match: before("A")}, faults.Pass{Clients: []string{"A", "B"}}, a, b, request("C n1 SET"),
		}, "drop pass hold"},
		{"pass without names ends all holds", []any{
			faults.Hold{Match: before()}, faults.Pass{}, a, b,
		}, "pass pass"},
		{"pass ends holds on the named nodes", []any{
			faults.Hold{Match: before()}, faults.Pass{Clients: []string{"A"}, Nodes: []string{"n1"}}, a, request("A n2 SET"), b,
		}, "pass hold hold"},
		{"on one node after the other", []any{
			faults.Hold{Match: before()}, faults.Pass{Clients: []string{"A"}, Nodes: []string{"n2"}}, a, faults.Pass{Clients: []string{"A"}, Nodes: []string{"n1"}}, a, request("A n2 SET"), b,
		}, "hold pass pass hold"},
		{"for everybody on a node, the quorum's", []any{
			faults.Hold{Match: before()}, faults.Pass{Nodes: []string{faults.Quorum}}, a, b, request("B n2 SET"),
		}, "pass pass hold"},
		{"clear ends all but holds, for the named", []any{
			faults.Hold{Match: before("A")}, faults.Drop{Match: before()}, faults.Clear{Clients: []string{"A"}}, a, b,
		}, "hold drop"},
		{"clear without names", []any{
			faults.Hold{Match: before("A")}, faults.Drop{Match: before()}, faults.Delay{Match: before(), By: faults.Span{TTLs: 1}}, faults.Clear{}, a, b,
		}, "hold pass"},
		{"an order after a pass counts again", []any{
			faults.Hold{Match: before()}, faults.Pass{Clients: []string{"A"}}, a, faults.Hold{Match: before("A")}, a,
		}, "pass hold"},
		{"freed of one hold, stopped by another", []any{
			faults.Hold{Match: before(), Times: 1}, faults.Pass{Clients: []string{"A"}}, a, b, b,
		}, "pass hold pass"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := play(t, faults.NewGate(1), c.steps...); got != c.want {
				t.Errorf("the gate decided %q; want %q", got, c.want)
			}
		})
	}
}

// TestMet checks that a message counts only for the order that decided on it.
func TestMet(t *testing.T) {
	before := func(clients ...string) faults.Match { return faults.Match{Way: faults.Before, Clients: clients} }
	a, b := request("A n1 SET"), request("B n1 SET")
	for _, c := range []struct {
		name  string
		steps []any
		want  []int
	}{
		{"no order", []any{a}, []int{}},
		{"nothing came", []any{faults.Drop{Match: before()}}, []int{0}},
		{"what came before it", []any{a, faults.Hold{Match: before()}}, []int{0}},
		{"something else came", []any{faults.Delay{Match: faults.Match{Way: faults.After}}, a, request("A n1 HELLO")}, []int{0}},
		{"some of those named", []any{faults.Hold{Match: before("A", "B")}, a, a}, []int{2}},
		{"no more than it may", []any{faults.Reset{Match: before(), Times: 1}, a, a}, []int{1}},
		{"each its own, in the order in which they came", []any{
			faults.Hold{Match: before("C")}, faults.Drop{Match: before("A")}, faults.Delay{Match: before("B")}, a, b, b,
		}, []int{0, 1, 2}},
		{"another decided", []any{faults.Hold{Match: before()}, faults.Drop{Match: before()}, a}, []int{0, 1}},
		{"ended before anything came", []any{
			faults.Hold{Match: before()}, faults.Drop{Match: before()}, faults.Pass{}, faults.Clear{}, a,
		}, []int{0, 0}},
		{"ended for the only one who came", []any{faults.Hold{Match: before()}, faults.Pass{Clients: []string{"A"}}, a}, []int{0}},
		{"ended afterwards", []any{faults.Hold{Match: before()}, a, faults.Pass{}, a}, []int{1}},
		{"the same twice", []any{faults.Drop{Match: before(), Times: 1}, a, faults.Drop{Match: before(), Times: 1}}, []int{1, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := faults.NewGate(1)
			play(t, g, c.steps...)
			if got := g.MatchCounts(); !slices.Equal(got, c.want) {
				t.Errorf("they met %v; want %v", got, c.want)
			}
		})
	}
}

func TestOrders(t *testing.T) {
	match := faults.Match{Way: faults.Before, OrNone: true}
	for _, f := range []faults.Fault{faults.Hold{Match: match}, faults.Delay{Match: match}, faults.Drop{Match: match}, faults.Reset{Match: match}} {
		if o, ok := f.(faults.Order); !ok || !o.About().OrNone {
			t.Errorf("%q is no order about its messages", f)
		}
	}
	for _, f := range []faults.Fault{faults.Pass{}, faults.Clear{}, faults.PauseClient{Client: "A"}, faults.Flush{Node: "n1"}} {
		if _, ok := f.(faults.Order); ok {
			t.Errorf("%q is an order", f)
		}
	}
}

func TestGateZeroValuePasses(t *testing.T) {
	var g faults.Gate
	if does, by := g.Decide(request("A n1 SET")); does != faults.Passes || by != 0 {
		t.Errorf("Decide = %s, %v", does, by)
	}
}

func TestResolveNodes(t *testing.T) {
	for _, c := range []struct {
		in    []string
		nodes int
		want  []string
	}{
		{nil, 5, nil},
		{[]string{"n2"}, 5, []string{"n2"}},
		{[]string{"quorum"}, 1, []string{"n1"}},
		{[]string{"quorum"}, 3, []string{"n2"}},
		{[]string{"n1", "quorum"}, 5, []string{"n1", "n3"}},
	} {
		before := slices.Clone(c.in)
		if got := faults.ResolveNodes(c.in, c.nodes); !slices.Equal(got, c.want) || !slices.Equal(c.in, before) {
			t.Errorf("ResolveNodes(%v, %d) = %v; want %v", before, c.nodes, got, c.want)
		}
	}
}
