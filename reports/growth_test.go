package reports

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/growthtest"
	"github.com/lockfault/lockfault/reports/perfetto"
)

// rounds returns a history of about n events, which repeats the events of the function.
func rounds(n int, round func(i int) []checker.Event) checker.History {
	h := checker.History{Meta: checker.Meta{Format: 1, Clients: []string{"A", "B"}, Nodes: []string{"n1", "n2", "n3"}, TTL: 10 * time.Second, HonourValidity: true}}
	for i := 0; len(h.Events) < n; i++ {
		for _, e := range round(i) {
			e.Index, e.Time = len(h.Events), time.Duration(len(h.Events))*time.Millisecond
			h.Events = append(h.Events, e)
		}
	}
	h.Events = append(h.Events, checker.Event{Index: len(h.Events), Time: time.Duration(n) * time.Second, Kind: checker.End})
	return h
}

func fault(text string) checker.Event {
	return checker.Event{Kind: checker.Fault, Node: "n1", Text: text}
}

// TestSlowGrowth checks that stories and pictures of a history take O(n log n) time.
func TestSlowGrowth(t *testing.T) {
	const size = 2000
	request := func(client string, sent time.Duration) checker.Event {
		return checker.Event{Kind: checker.Request, Client: client, Node: "n1", Server: "n1/0", Command: "SET l " + client + "1 NX", Sent: sent}
	}
	reply := func(client string, sent time.Duration) checker.Event {
		return checker.Event{Kind: checker.Reply, Client: client, Node: "n1", Command: "SET l " + client + "1 NX", Reply: "(nil)", Sent: sent}
	}
	histories := map[string]func(n int) checker.History{
		"crashes": func(n int) checker.History {
			return rounds(n, func(int) []checker.Event {
				return []checker.Event{{Kind: checker.Crash, Client: "A"}, {Kind: checker.Restart, Client: "A"}}
			})
		},
		"retries": func(n int) checker.History {
			return rounds(n, func(i int) []checker.Event {
				return []checker.Event{request("B", time.Duration(2*i)*time.Millisecond), reply("B", time.Duration(2*i)*time.Millisecond)}
			})
		},
		"operations": func(n int) checker.History {
			return rounds(n, func(i int) []checker.Event {
				client := string(rune('A' + i%2))
				return []checker.Event{
					{Kind: checker.Invoke, Client: client, Op: checker.Acquire, Call: 2*i + 1},
					request(client, time.Duration(6*i)*time.Millisecond),
					{Kind: checker.State, Client: client, Node: "n1", Server: "n1/0", Owner: client, Value: client + "1", Cause: checker.ByCommand, Sent: time.Duration(6*i) * time.Millisecond},
					{Kind: checker.Return, Client: client, Op: checker.Acquire, Call: 2*i + 1, Result: checker.OK},
					{Kind: checker.Invoke, Client: client, Op: checker.Release, Call: 2*i + 2},
					{Kind: checker.Return, Client: client, Op: checker.Release, Call: 2*i + 2, Result: checker.OK},
				}
			})
		},
		"failovers": func(n int) checker.History {
			return rounds(n, func(i int) []checker.Event {
				return []checker.Event{fault("n1 failover"), {Kind: checker.State, Node: "n1", Server: fmt.Sprint("n1/", i), Cause: checker.ByFailover}, fault("n1 pause"), fault("n1 resume")}
			})
		},
		"partitions that are not healed": func(n int) checker.History {
			return rounds(n, func(int) []checker.Event {
				return []checker.Event{fault("partition A from n1"), fault("heal B from n2")}
			})
		},
		"requests before their replies": func(n int) checker.History {
			return rounds(n, func(i int) []checker.Event {
				if i < n/2 {
					return []checker.Event{request("A", time.Duration(i)*time.Millisecond)}
				}
				return []checker.Event{reply("A", time.Duration(i-n/2)*time.Millisecond)}
			})
		},
		"exchanges that cross": func(n int) checker.History {
			return rounds(n, func(i int) []checker.Event {
				a, b := request("A", time.Duration(2*i)*time.Millisecond), reply("A", time.Duration(2*i-2)*time.Millisecond)
				a.Conn, b.Conn = i+1, i
				return []checker.Event{a, b}
			})
		},
		"unanswered requests": func(n int) checker.History {
			return rounds(n, func(i int) []checker.Event {
				lost := request("A", 0)
				lost.Conn = i + 1
				return []checker.Event{lost, {Kind: checker.State, Client: "A", Node: "n1", Server: "n1/1", Owner: "A", Value: fmt.Sprint("A", i), Cause: checker.ByCommand}}
			})
		},
		"kept messages": func(n int) checker.History {
			return rounds(n, func(i int) []checker.Event {
				return []checker.Event{{Kind: checker.Held, Client: "A", Node: "n1", Direction: "request", Command: fmt.Sprint("GET ", i)}}
			})
		},
		"many clients": func(n int) checker.History {
			return rounds(n, func(i int) []checker.Event {
				client := fmt.Sprint("c", i)
				return []checker.Event{{Kind: checker.Invoke, Client: client, Op: checker.Acquire, Call: i + 1}, {Kind: checker.Crash, Client: client}}
			})
		},
	}
	for name, write := range histories {
		t.Run(name, func(t *testing.T) {
			for _, draw := range []func(Cell, checker.History) error{
				func(c Cell, h checker.History) error { Picture(c, h, MostMoments); return nil },
				func(c Cell, h checker.History) error { return perfetto.Write(io.Discard, Picture(c, h, len(h.Events))) },
				func(c Cell, h checker.History) error { return drawings()[0].write(io.Discard, c, h) },
				func(c Cell, h checker.History) error { return Story(io.Discard, c, h, View{}) },
				func(c Cell, h checker.History) error { Narrate(c, h, View{All: true}); return nil },
				func(_ Cell, h checker.History) error { commands(h); Together(checker.Holds(h)); return nil },
			} {
				growthtest.Linear(t, size, func(n int) func() {
					h := write(n)
					return func() {
						if err := draw(Cell{Verdict: Violated, Witnesses: []checker.Witness{{Anomaly: checker.Overlap, Events: []int{n / 2}}}}, h); err != nil {
							t.Error(err)
						}
					}
				})
			}
		})
	}
}
