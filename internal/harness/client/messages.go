package client

import (
	"time"

	"github.com/lockfault/lockfault/checker"
)

// Setup identifies a client and configures its connections. Durations are nanoseconds in JSON, as
// everywhere in this protocol.
type Setup struct {
	// Client is the participant's name in the script. Life counts the lives of its process from 0.
	Client string `json:"client"`
	Life   int    `json:"life,omitempty"`
	// Strategy is the name of the lock's strategy.
	Strategy string `json:"strategy"`
	// Key is the name of the lock, WarmUp the name of the lock for the warm-up.
	Key    string `json:"key"`
	WarmUp string `json:"warm_up"`
	// TTL is the lease.
	TTL time.Duration `json:"ttl"`
	// Thread identifies the client's thread within its process. If Thread is empty, Seed determines
	// it.
	Thread string `json:"thread,omitempty"`
	// Seed determines the client's randomness, together with its name and life.
	Seed uint64 `json:"seed"`
	// Replicas is the number of replicas of each node.
	Replicas int `json:"replicas,omitempty"`
	// Nodes are the names of the Redis nodes, in the strategy's order.
	Nodes []string `json:"nodes"`
	// RealTime reports whether the client runs in real time.
	RealTime bool `json:"real_time,omitempty"`
	// Retries is the number of retries of a command. ReadTimeout is the time limit of one attempt,
	// or of one connection. With IgnoreContext, deadlines of contexts do not shorten that limit.
	Retries       int           `json:"retries,omitempty"`
	ReadTimeout   time.Duration `json:"read_timeout"`
	IgnoreContext bool          `json:"ignore_context,omitempty"`
}

// Task is one task of the script for a client. A client executes its tasks one after the other.
type Task struct {
	Do Do `json:"do"`
	// Op is the operation of a call. Within is the time limit of the call, or of each operation of
	// rounds.
	Op     checker.Op    `json:"op,omitempty"`
	Within time.Duration `json:"within,omitempty"`
	// For is the duration of work, also between the acquire and the release of a round.
	For time.Duration `json:"for,omitempty"`
	// Times is the number of rounds; if Times is 0, new rounds begin until Lasting has passed.
	Times   int           `json:"times,omitempty"`
	Lasting time.Duration `json:"lasting,omitempty"`
	// Update moves the write of a round after its work. Think is the mean pause after a round.
	Update bool          `json:"update,omitempty"`
	Think  time.Duration `json:"think,omitempty"`
}

// Do is the kind of a [Task].
type Do string

// Kinds of tasks.
const (
	DoWarmUp Do = "warm-up" // acquire and release another lock
	DoCall   Do = "call"    // an operation of the lock
	DoWrite  Do = "write"   // one write to the protected resource
	DoWork   Do = "work"    // be busy for a time that does not include pauses
	DoRounds Do = "rounds"  // acquire, write, work, release, and again, Times times
	DoUse    Do = "use"     // the same, with all settings of a task
)

// Report is a message from a client to the stage. The client waits for the [Answer] before it
// continues: its next action comes after the report in the history, and reports of a stopped client
// are not processed.
type Report struct {
	Kind Kind `json:"kind"`
	// Op is the operation that was invoked or has returned.
	Op checker.Op `json:"op,omitempty"`
	// Result and Error are the result of the operation.
	Result checker.Result `json:"result,omitempty"`
	Error  string         `json:"error,omitempty"`
	// Token is the fencing token of the current hold; 0 if it has none.
	Token int64 `json:"token,omitempty"`
	// Until is the end of the validity that the lock computed, on the client's wall clock; nil if
	// the lock computes none.
	Until *time.Time `json:"until,omitempty"`
	// Hold is the number of the lost hold, as the stage assigned it.
	Hold int `json:"hold,omitempty"`
	// Fenced reports whether a made lock issues fencing tokens.
	Fenced bool `json:"-"`
	// Cancels reports whether the client supports the cancellation of its operations.
	Cancels bool `json:"-"`
}

// Kind is the kind of a [Report].
type Kind string

// Kinds of reports.
const (
	Invoked   Kind = "invoke" // an operation is about to be called
	Returned  Kind = "return" // the operation returned
	Lost      Kind = "lost"   // the lock reported that hold Hold is lost
	Writes    Kind = "write"  // the client wants to write, if it believes that it holds
	WantsTime Kind = "paused" // the client asks for the total time of its pauses
	Done      Kind = "done"   // the task is done
	Failed    Kind = "failed" // the task failed: Error gives the reason, possibly with a stack
)

// Kinds of the first report, for which the protocol has lines of their own.
const (
	Made    Kind = "ready"   // the lock is made; the client waits for tasks
	Refused Kind = "refused" // the lock cannot be made: Error gives the reason
)

// Answer is the stage's answer to a report.
type Answer struct {
	// Paused is the total time for which the client's process was stopped. Paused is set only in
	// the answer to WantsTime.
	Paused time.Duration `json:"paused,omitempty"`
	// Hold is the number of the client's current hold, from 1; 0 if there is none. An acquire
	// within a hold deepens that hold.
	Hold int `json:"hold,omitempty"`
}

// Stage receives the reports of clients.
type Stage interface {
	// Report blocks until the report is answered. Report returns false if the client's life ended
	// first. Report is safe for concurrent use.
	Report(Report) (Answer, bool)
}
