package checker

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/growthtest"
)

// A behaviour writes a history of at least n events.
type behaviour struct {
	name  string
	write func(n int) History
}

// A tape is a history that is being written.
type tape struct {
	h     History
	calls int
}

func newTape(clients ...string) *tape {
	return &tape{h: History{Meta: Meta{Format: 1, Clients: clients, Nodes: []string{"n1"}, TTL: 10 * time.Second, Grace: time.Second, Bound: 20 * time.Second, Fenced: true}}}
}

func (t *tape) add(after time.Duration, e Event) {
	e.Index = len(t.h.Events)
	if n := len(t.h.Events); n > 0 {
		e.Time = t.h.Events[n-1].Time
	}
	e.Time += after
	t.h.Events = append(t.h.Events, e)
}

func (t *tape) at() time.Duration { return t.h.Events[len(t.h.Events)-1].Time }

func (t *tape) invoke(client string, op Op) int {
	t.calls++
	t.add(time.Millisecond, Event{Kind: Invoke, Client: client, Op: op, Call: t.calls})
	return t.calls
}

func (t *tape) returns(client string, op Op, call int, result Result, token int64) {
	t.add(time.Millisecond, Event{Kind: Return, Client: client, Op: op, Call: call, Result: result, Token: token})
}

// command writes a request, what it makes of the key if it does anything, and its reply.
func (t *tape) command(client, command, reply string, owner *string) {
	t.add(time.Millisecond, Event{Kind: Request, Client: client, Node: "n1", Server: "n1/0", Conn: 1, Command: command})
	t.h.Events[len(t.h.Events)-1].Sent = t.at()
	if owner != nil {
		e := Event{Kind: State, Client: client, Node: "n1", Server: "n1/0", Owner: *owner, Cause: ByCommand}
		if *owner != "" {
			e.Value, e.Expires = *owner+"1", t.at()+10*time.Second
		}
		t.add(0, e)
	}
	t.add(time.Millisecond, Event{Kind: Reply, Client: client, Node: "n1", Conn: 1, Command: command, Reply: reply, Sent: t.at()})
}

func (t *tape) acquires(client string, token int64) {
	call := t.invoke(client, Acquire)
	t.command(client, "SET l "+client+"1 NX", "OK", &client)
	t.returns(client, Acquire, call, OK, token)
}

func (t *tape) releases(client string) {
	none := ""
	call := t.invoke(client, Release)
	t.command(client, "DEL l", "(integer) 1", &none)
	t.returns(client, Release, call, OK, 0)
}

func (t *tape) history() History {
	t.add(time.Millisecond, Event{Kind: End})
	return t.h
}

func behaviours() []behaviour {
	until := func(n int, round func(t *tape, i int), clients ...string) History {
		t := newTape(clients...)
		for i := 0; len(t.h.Events) < n; i++ {
			round(t, i)
		}
		return t.history()
	}
	return []behaviour{
		{"contention", func(n int) History {
			return until(n, func(t *tape, i int) {
				client := string(rune('A' + i%3))
				t.acquires(client, int64(i+1))
				t.add(0, Event{Kind: Write, Client: client, Accepted: true, Token: int64(i + 1)})
				t.releases(client)
			}, "A", "B", "C")
		}},
		{"retries", func(n int) History {
			t := newTape("A", "B")
			t.acquires("A", 1)
			call := t.invoke("B", Acquire)
			for len(t.h.Events) < n {
				t.command("B", "SET l B1 NX", "(nil)", nil)
			}
			t.returns("B", Acquire, call, Fail, 0)
			return t.history()
		}},
		{"retries by failing", func(n int) History {
			t := newTape("A", "B")
			t.acquires("A", 1)
			for len(t.h.Events) < n {
				call := t.invoke("B", Acquire)
				t.command("B", "SET l B1 NX", "(nil)", nil)
				t.returns("B", Acquire, call, Fail, 0)
			}
			return t.history()
		}},
		{"crashes", func(n int) History {
			return until(n, func(t *tape, _ int) {
				t.add(time.Second, Event{Kind: Crash, Client: "A"})
				t.add(time.Second, Event{Kind: Restart, Client: "A"})
			}, "A")
		}},
		{"holders crash", func(n int) History {
			return until(n, func(t *tape, i int) {
				t.acquires("A", int64(i+1))
				t.add(time.Second, Event{Kind: Crash, Client: "A"})
				t.add(time.Second, Event{Kind: Restart, Client: "A"})
			}, "A")
		}},
		{"pauses", func(n int) History {
			t := newTape("A", "B")
			t.acquires("A", 1)
			call := t.invoke("B", Acquire)
			for len(t.h.Events) < n {
				t.add(time.Second, Event{Kind: Pause, Client: "B"})
				t.add(time.Second, Event{Kind: Resume, Client: "B"})
			}
			t.returns("B", Acquire, call, Fail, 0)
			return t.history()
		}},
		{"waits that pause", func(n int) History { // each as long as the bound, at work for less
			return until(n, func(t *tape, _ int) {
				t.acquires("A", 0)
				call := t.invoke("B", Acquire)
				t.add(12*time.Second, Event{Kind: Pause, Client: "B"})
				t.add(time.Second, Event{Kind: Resume, Client: "B"})
				t.add(12*time.Second, Event{Kind: Step})
				t.returns("B", Acquire, call, Fail, 0)
				t.releases("A")
			}, "A", "B")
		}},
		{"many clients", func(n int) History {
			return until(n, func(t *tape, i int) {
				client := fmt.Sprint("c", i)
				t.acquires(client, int64(i+1))
				t.releases(client)
			})
		}},
		{"many servers", func(n int) History {
			return until(n, func(t *tape, i int) {
				t.add(time.Millisecond, Event{Kind: Fault, Node: "n1", Text: "n1 failover"})
				t.add(0, Event{Kind: State, Node: "n1", Server: fmt.Sprint("n1/", i), Cause: ByFailover})
				call := t.invoke("A", TryAcquire)
				t.returns("A", TryAcquire, call, Fail, 0)
			}, "A")
		}},
		{"many nodes", func(n int) History {
			return until(n, func(t *tape, i int) {
				node := fmt.Sprint("n", i)
				t.add(0, Event{Kind: Request, Client: "A", Node: node, Server: node + "/0", Command: "SET", Sent: time.Second})
				t.add(0, Event{Kind: State, Client: "A", Node: node, Server: node + "/0", Owner: "A", Value: "A1", Cause: ByCommand})
			}, "A")
		}},
		{"reentrant writer", func(n int) History { // every hold of B lies before A's latest acquire
			return until(n, func(t *tape, _ int) {
				t.returns("B", Acquire, t.invoke("B", Acquire), OK, 0)
				t.returns("B", Release, t.invoke("B", Release), OK, 0)
				t.returns("A", Acquire, t.invoke("A", Acquire), OK, 0)
				t.add(0, Event{Kind: Write, Client: "A", Accepted: true})
			}, "A", "B")
		}},
		{"one command changes many keys", func(n int) History {
			t := newTape("A")
			t.acquires("A", 1)
			t.add(0, Event{Kind: Request, Client: "A", Node: "n1", Server: "n1/0", Command: "MULTI", Sent: t.at()})
			for i := 0; len(t.h.Events) < n; i++ {
				t.add(0, Event{Kind: State, Client: "A", Node: "n1", Server: "n1/0", Owner: "A", Value: "A1", Expires: t.at() + time.Minute + time.Duration(i), Cause: ByCommand})
			}
			return t.history()
		}},
		{"keys come back", func(n int) History {
			return until(n, func(t *tape, i int) {
				t.acquires("A", int64(i+1))
				t.add(time.Millisecond, Event{Kind: State, Node: "n1", Server: "n1/0", Cause: ByFlush})
				client := "A"
				t.command("A", "SET l A1", "OK", &client)
				t.releases("A")
			}, "A")
		}},
		{"numbers of calls descend", func(n int) History {
			t := newTape("A")
			for i := n; len(t.h.Events) < n; i-- {
				t.calls = i - 1
				t.acquires("A", 0)
				t.calls = n + i
				t.releases("A")
			}
			return t.history()
		}},
		{"left behind", func(n int) History { // each acquire waits for a key that nobody holds
			t := newTape("A", "B", "C")
			owner := "C"
			t.add(0, Event{Kind: State, Client: "C", Node: "n1", Server: "n1/0", Owner: owner, Value: "C1", Cause: ByCommand})
			for i := 0; len(t.h.Events) < n; i++ {
				client := string(rune('A' + i%2))
				call := t.invoke(client, Acquire)
				t.add(12*time.Second, Event{Kind: Cancel, Client: client})
				t.returns(client, Acquire, call, Unknown, 0)
			}
			return t.history()
		}},
	}
}

// TestSlowGrowth checks that histories of each behaviour are judged in O(n log n).
func TestSlowGrowth(t *testing.T) {
	for _, b := range behaviours() {
		t.Run(b.name, func(t *testing.T) {
			const size = 5_000
			judged := map[int]*index{}
			growthtest.Linear(t, size, func(n int) func() {
				h := b.write(n)
				return func() { judged[n] = derive(h) }
			})
			for _, d := range Descriptions() {
				growthtest.Linear(t, size, func(n int) func() {
					return func() { d.find(judged[n], func(*Witness) bool { return false }) }
				})
			}
		})
	}
}
