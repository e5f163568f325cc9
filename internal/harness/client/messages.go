package client

import (
	"time"

	"github.com/lockfault/lockfault/checker"
)

// A Setup says who a client is, and how its connections behave. Lengths of
// time are nanoseconds in JSON, as everywhere in this protocol.
type Setup struct {
	// Client is the participant's name in the script, and Life counts the
	// lives of its process, from 0.
	Client string `json:"client"`
	Life   int    `json:"life,omitempty"`
	// Strategy is the name of the lock's algorithm.
	Strategy string `json:"strategy"`
	// Key is the name of the lock; WarmUp of the other one, with which the
	// client warms up.
	Key    string `json:"key"`
	WarmUp string `json:"warm_up"`
	// TTL is the lease.
	TTL time.Duration `json:"ttl"`
	// Thread names the client's thread within its process; empty means one
	// drawn from Seed.
	Thread string `json:"thread,omitempty"`
	// Seed decides the client's randomness, together with its name and life.
	Seed uint64 `json:"seed"`
	// Replicas is how many replicas each node has.
	Replicas int `json:"replicas,omitempty"`
	// Nodes are the names of the Redis nodes, in the strategy's order.
	Nodes []string `json:"nodes"`
	// Retries is how often a command is tried again, ReadTimeout how long
	// one attempt, or a connection, may take, and IgnoreContext says that the deadlines of
	// contexts don't shorten that.
	Retries       int           `json:"retries,omitempty"`
	ReadTimeout   time.Duration `json:"read_timeout"`
	IgnoreContext bool          `json:"ignore_context,omitempty"`
}

// A Task is something that the script tells a client to do, one after the
// other.
type Task struct {
	Do Do `json:"do"`
	// Op is the operation of a call, and Within how long it may take; of
	// rounds, how long each operation may.
	Op     checker.Op    `json:"op,omitempty"`
	Within time.Duration `json:"within,omitempty"`
	// For is how long work takes, also between the acquire and the release
	// of a round.
	For time.Duration `json:"for,omitempty"`
	// Times is the number of rounds; if it is 0, a round begins as long as Lasting has not passed.
	Times   int           `json:"times,omitempty"`
	Lasting time.Duration `json:"lasting,omitempty"`
	// Update says that a round writes behind its work, and Think is how long a client does something
	// else after a round, on average.
	Update bool          `json:"update,omitempty"`
	Think  time.Duration `json:"think,omitempty"`
}

// Do names what a [Task] does.
type Do string

// What clients can do.
const (
	DoWarmUp Do = "warm-up" // acquire and release another lock
	DoCall   Do = "call"    // an operation of the lock
	DoWrite  Do = "write"   // one write to the protected resource
	DoWork   Do = "work"    // be busy, in time that stands still during a pause
	DoRounds Do = "rounds"  // acquire, write, work, release, and again, Times times
	DoUse    Do = "use"     // the same in all ways that a task has
)

// A Report is what a client tells the stage. The client waits for the
// [Answer] before it goes on: what it does next comes after the report in the
// history, and a stopped client is not heard.
type Report struct {
	Kind Kind `json:"kind"`
	// Op is the operation that was invoked or has returned.
	Op checker.Op `json:"op,omitempty"`
	// Result and Error say how it returned.
	Result checker.Result `json:"result,omitempty"`
	Error  string         `json:"error,omitempty"`
	// Token is the fencing token of the present hold; 0 if it has none.
	Token int64 `json:"token,omitempty"`
	// Until is the end of the validity that the lock computed, on the
	// client's wall clock; nil if it computes none.
	Until *time.Time `json:"until,omitempty"`
	// Hold is which hold was lost, by the number that the stage gave it.
	Hold int `json:"hold,omitempty"`
	// Fenced says of a lock that was made that it hands out fencing tokens.
	Fenced bool `json:"-"`
	// Cancels says so of a client that can be told that its caller gives up.
	Cancels bool `json:"-"`
}

// Kind says what a [Report] is about.
type Kind string

// The kinds of reports.
const (
	Invoked   Kind = "invoke" // an operation is about to be called
	Returned  Kind = "return" // it came back
	Lost      Kind = "lost"   // the lock said that hold Hold is lost
	Writes    Kind = "write"  // the client wants to write, if it believes that it holds
	WantsTime Kind = "paused" // it wants to know how long it was paused so far
	Done      Kind = "done"   // the task is done
	Failed    Kind = "failed" // the task can't be done: Error says why, maybe with a stack
)

// The kinds of the one report before all others, for which the protocol has lines
// of their own.
const (
	Made    Kind = "ready"   // the lock is made; the client waits for tasks
	Refused Kind = "refused" // it can't be made: Error says why
)

// An Answer tells a client that it was heard.
type Answer struct {
	// Paused is how long the client's process was stopped so far, in all;
	// only given to a client that asked.
	Paused time.Duration `json:"paused,omitempty"`
	// Hold numbers the client's present hold, from 1; 0 if it has none. An
	// acquire inside a hold deepens that one.
	Hold int `json:"hold,omitempty"`
}

// A Stage is whom clients report to.
type Stage interface {
	// Report blocks until the report was heard. It returns false if the
	// client's life ended first. Safe for concurrent use.
	Report(Report) (Answer, bool)
}
