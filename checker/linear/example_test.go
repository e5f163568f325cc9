package linear_test

import (
	"fmt"
	"time"

	"github.com/lockfault/lockfault/checker/linear"
)

// B gets the lock once A has called release: that can be explained.
func ExampleCheck_valid() {
	r := linear.Check(linear.Mutex(), []linear.Event{
		{Time: 0, Client: "A", Op: linear.Acquire, Phase: linear.Invoke},
		{Time: 1 * time.Second, Client: "A", Op: linear.Acquire, Phase: linear.ReturnOK},
		{Time: 2 * time.Second, Client: "B", Op: linear.Acquire, Phase: linear.Invoke},
		{Time: 3 * time.Second, Client: "A", Op: linear.Release, Phase: linear.Invoke},
		{Time: 4 * time.Second, Client: "B", Op: linear.Acquire, Phase: linear.ReturnOK},
		{Time: 5 * time.Second, Client: "A", Op: linear.Release, Phase: linear.ReturnOK},
	}, linear.Options{})
	fmt.Println(r.Verdict)
	// Output: valid
}

// B gets it before.
func ExampleCheck_invalid() {
	r := linear.Check(linear.Mutex(), []linear.Event{
		{Time: 0, Client: "A", Op: linear.Acquire, Phase: linear.Invoke},
		{Time: 1 * time.Second, Client: "A", Op: linear.Acquire, Phase: linear.ReturnOK},
		{Time: 2 * time.Second, Client: "B", Op: linear.Acquire, Phase: linear.Invoke},
		{Time: 3 * time.Second, Client: "B", Op: linear.Acquire, Phase: linear.ReturnOK},
		{Time: 5 * time.Second, Client: "A", Op: linear.Release, Phase: linear.Invoke},
	}, linear.Options{})
	fmt.Println(r.Verdict)
	fmt.Println(r.Violations[0].Message)
	// Output:
	// invalid
	// A acquired at 1s and B acquired at 3s, and neither can have been before the other: they held together for 2s.
}

// Part of the history is missing, so nothing is said about it.
func ExampleCheck_unknown() {
	r := linear.Check(linear.Mutex(), []linear.Event{
		{Time: 1 * time.Second, Client: "A", Op: linear.Release, Phase: linear.ReturnOK, Line: 1},
	}, linear.Options{})
	fmt.Println(r.Verdict)
	fmt.Println(r.Reason)
	// Output:
	// unknown
	// line 1: event of client "A" at 1s: a return without its call
}

// What is wrong is told while events still come, and each time once.
func ExampleOptions_found() {
	c := linear.New(linear.Mutex(), linear.Options{All: true, Found: func(v linear.Violation) { fmt.Println(v.Rule, v.Clients, v.From, v.To) }})
	for _, e := range []linear.Event{
		{Time: 0, Client: "A", Op: linear.Acquire, Phase: linear.Invoke},
		{Time: 1 * time.Second, Client: "A", Op: linear.Acquire, Phase: linear.ReturnOK},
		{Time: 2 * time.Second, Client: "B", Op: linear.Acquire, Phase: linear.Invoke},
		{Time: 3 * time.Second, Client: "B", Op: linear.Acquire, Phase: linear.ReturnOK},
		{Time: 5 * time.Second, Client: "A", Op: linear.Release, Phase: linear.Invoke},
		{Time: 6 * time.Second, Client: "A", Op: linear.Release, Phase: linear.ReturnOK},
	} {
		if err := c.Add(e); err != nil {
			fmt.Println(err)
		}
		fmt.Println("event at", e.Time)
	}
	// Output:
	// event at 0s
	// event at 1s
	// event at 2s
	// event at 3s
	// event at 5s
	// overlap [A B] 3s 5s
	// event at 6s
}
