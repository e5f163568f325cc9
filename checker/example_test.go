package checker_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
)

// A history can be put together by hand; usually the harness records it.
func ExampleCheck() {
	h := checker.History{
		Meta: checker.Meta{Format: checker.Format, TTL: 30 * time.Second, Grace: 15 * time.Second, Bound: 150 * time.Second},
		Events: []checker.Event{
			{Index: 0, Time: 0, Kind: checker.Invoke, Client: "A", Op: checker.Acquire, Call: 1},
			{Index: 1, Time: 1 * time.Millisecond, Kind: checker.Return, Client: "A", Op: checker.Acquire, Call: 1, Result: checker.OK},
			{Index: 2, Time: 33 * time.Second, Kind: checker.Invoke, Client: "B", Op: checker.Acquire, Call: 2},
			{Index: 3, Time: 33002 * time.Millisecond, Kind: checker.Return, Client: "B", Op: checker.Acquire, Call: 2, Result: checker.OK},
			{Index: 4, Time: 40 * time.Second, Kind: checker.End},
		},
	}
	verdict := checker.Check(h)
	for _, w := range verdict.Witnesses {
		fmt.Println(w.Anomaly, w.Events)
		fmt.Println(w.Message)
	}
	fmt.Println("linearizable:", checker.Linearize(h) == nil)
	// Output:
	// overlap [1 3]
	// B acquired at 33.002s while A, who had acquired at 0.001s, still held it.
	// linearizable: false
}

// A lock that held has no witnesses.
func ExampleCheck_held() {
	h, err := checker.Decode(strings.NewReader(`{"lockfault":1,"strategy":"s","scenario":"s","world":"sim","seed":1,"clients":["A","B"],"nodes":["n1"],"ttl":30000000000,"grace":15000000000,"bound":150000000000}
{"i":0,"t":0,"kind":"invoke","client":"A","op":"acquire","call":1}
{"i":1,"t":1000000,"kind":"return","client":"A","op":"acquire","call":1,"result":"ok"}
{"i":2,"t":2000000,"kind":"invoke","client":"A","op":"release","call":2}
{"i":3,"t":3000000,"kind":"return","client":"A","op":"release","call":2,"result":"ok"}
{"i":4,"t":4000000,"kind":"invoke","client":"B","op":"acquire","call":3}
{"i":5,"t":5000000,"kind":"return","client":"B","op":"acquire","call":3,"result":"ok"}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	verdict := checker.Check(h)
	fmt.Println(verdict.Anomalies(), checker.Linearize(h) == nil)
	for _, hold := range checker.Holds(h) {
		fmt.Println(hold.Client, hold.Start, hold.End, hold.By)
	}
	// Output:
	// [] true
	// A 1ms 2ms release
	// B 5ms 5ms open
}
