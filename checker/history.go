package checker

import (
	"slices"
	"time"
)

// A Kind says what an [Event] records.
type Kind string

// The kinds of event. The comment behind each names the truth it belongs to
// and the fields that it fills in besides Time and Kind.
const (
	// Invoke: a client calls an operation. Client, Op, Call.
	Invoke Kind = "invoke"
	// Return: the operation came back. Client, Op, Call, Result; Error if it
	// failed; Token for a fenced acquire; Until if the lock publishes how
	// long the hold is valid.
	Return Kind = "return"
	// Lost: the lock told its user that it no longer holds. Client.
	Lost Kind = "lost"
	// Write: the protected resource decided on a write. Client, Accepted;
	// Token if the strategy is fenced.
	Write Kind = "write"

	// Request: a node executed a command. Client, Node, Server, Conn, Command,
	// Sent; Silent if nobody waits for an answer.
	Request Kind = "request"
	// Reply: a client received the answer to a command. Client, Node, Conn,
	// Command (of the request), Reply, Sent.
	Reply Kind = "reply"
	// Push: a client received a message that it had subscribed to. Client,
	// Node, Conn, Reply, Sent.
	Push Kind = "push"
	// Held: the gate stopped a message. Client, Node, Conn, Command, and
	// Direction. Passed: the gate let it go on. Dropped: the message is lost.
	Held    Kind = "held"
	Passed  Kind = "passed"
	Dropped Kind = "dropped"

	// State: the lock's key on a node changed. Node, Server, Owner, Value,
	// Expires, Cause; Client if one of a client's commands caused it, and Sent of that one where others
	// may be under way, if it is known which it was.
	State Kind = "state"

	// Pause, Resume, Crash and Restart of a client's process. Client.
	Pause   Kind = "pause"
	Resume  Kind = "resume"
	Crash   Kind = "crash"
	Restart Kind = "restart"
	// Cancel: the context of the operation that a client is in ended, because
	// its caller gave up. Client.
	Cancel Kind = "cancel"
	// Fault: something was done to a node, a link or a clock. Text says what
	// in the words of the script; Node or Client if it is about one.
	Fault Kind = "fault"
	// Measure: a stopwatch of the script was stopped. Text is its name,
	// Took its reading.
	Measure Kind = "measure"
	// Step: the script reached a line. Line, Text.
	Step Kind = "step"
	// End: the run is over; what is still open at this time stays open.
	End Kind = "end"
)

// An Op is an operation of a lock that a client can call.
type Op string

// The operations of a lock.
const (
	Acquire    Op = "acquire" // blocks, retrying, until held or out of patience
	TryAcquire Op = "try"     // one attempt
	Release    Op = "release"
	Extend     Op = "extend"
)

// A Result is the outcome of an operation as its caller learned it.
type Result string

// The results of an operation.
const (
	OK      Result = "ok"
	Fail    Result = "fail"    // it had no effect, says the lock
	Unknown Result = "unknown" // it may or may not have taken effect
)

// A Cause says what made the lock's key on a node change.
type Cause string

// The causes of a [State] event. All but ByCommand are the server's own doing.
const (
	ByCommand     Cause = "command"     // a client's command, named by Client
	ByExpiry      Cause = "expiry"      // the time to live ran out on an undisturbed clock
	ByClock       Cause = "clock"       // the node's clock was moved; expiry dates moved with it
	ByFailover    Cause = "failover"    // another server speaks for the node now
	ByRestart     Cause = "restart"     // the server came back with other data
	ByFlush       Cause = "flush"       // FLUSHALL by an operator
	ByEviction    Cause = "eviction"    // the key was evicted
	BySession     Cause = "session-end" // the connection ended that it belonged to
	ByReplication Cause = "replication" // a replica, or a rejoining primary, took over its primary's data
)

// An Event is one record of a [History]. Which fields are filled in depends on
// Kind; all others hold their zero value and are left out of the JSON form.
type Event struct {
	// Index is the event's position in its history, from 0.
	Index int `json:"i"`
	// Time is when it happened, since the start of the run, on the one
	// clock that the harness itself reads.
	Time time.Duration `json:"t"`
	Kind Kind          `json:"kind"`

	Client string `json:"client,omitempty"` // A, B, C …
	Node   string `json:"node,omitempty"`   // n1 … n5
	Server string `json:"server,omitempty"` // the server behind the node: "n1/0" is its first primary, "n1/1" a replica

	Op     Op     `json:"op,omitempty"`
	Call   int    `json:"call,omitempty"` // pairs Return with Invoke; from 1, unique in the history
	Result Result `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`

	// Token is the fencing token; 0 means that there is none.
	Token int64 `json:"token,omitempty"`
	// Until is the end of the validity that the client computed for its
	// hold, on the harness's clock; 0 means that it published none.
	Until time.Duration `json:"until,omitempty"`
	// Accepted is whether the resource took the write.
	Accepted bool `json:"accepted,omitempty"`

	Conn      int           `json:"conn,omitempty"`      // the client's n-th connection to the node, from 1; 0 if the world doesn't count them
	Direction string        `json:"direction,omitempty"` // "request", "reply" or "push", for Held, Passed, Dropped
	Command   string        `json:"command,omitempty"`   // as one would type it, owner values by their short names
	Reply     string        `json:"reply,omitempty"`     // as redis-cli would print it on one line
	Sent      time.Duration `json:"sent,omitempty"`      // when the message set out
	Silent    bool          `json:"silent,omitempty"`    // gets no answer, or none that anybody waits for, so it is of no operation

	// Owner is the client that the key belongs to; empty with an empty Value
	// means that the key is gone.
	Owner string `json:"owner,omitempty"`
	// Value is the key's value, owner values by their short names.
	Value string `json:"value,omitempty"`
	// Expires is when the key will be gone, on the harness's clock; 0 means
	// that it has no time to live (or is gone).
	Expires time.Duration `json:"expires,omitempty"`
	Cause   Cause         `json:"cause,omitempty"`

	Text string        `json:"text,omitempty"`
	Took time.Duration `json:"took,omitempty"`
	Line int           `json:"line,omitempty"`
}

// Meta is what a [History] must say about itself to be judged.
type Meta struct {
	// Format is the version of the history format; this is version 1.
	Format   int    `json:"lockfault"`
	Strategy string `json:"strategy"`
	Scenario string `json:"scenario"`
	World    string `json:"world"`
	// Service is what the servers are, if they are not Redis.
	Service string `json:"service,omitempty"`
	// Query is how those are asked whose the lock is.
	Query string `json:"query,omitempty"`
	Seed  uint64 `json:"seed"`

	Clients []string `json:"clients"`
	Nodes   []string `json:"nodes"`

	// TTL is the lease that was asked for.
	TTL time.Duration `json:"ttl"`
	// Grace is how long past the TTL a forgotten lock may block others
	// before it counts as stuck.
	Grace time.Duration `json:"grace"`
	// Bound is how long a live client may be kept waiting: by a holder
	// before that is starvation, by nobody before that is unavailability.
	Bound time.Duration `json:"bound"`
	// HonourValidity says that clients were told to stop at Until.
	HonourValidity bool `json:"honour_validity,omitempty"`
	// Fenced says that the resource refuses tokens that went back.
	Fenced bool `json:"fenced,omitempty"`
}

// A History is everything that one run recorded, in order. Events are ordered
// by Index, and Time never decreases along it; of two events at one Time the
// one with the smaller Index came first. The zero value is an empty history.
// A History is not changed by anything in this package, so it may be read
// concurrently.
type History struct {
	Meta   Meta
	Events []Event
}

// upToEnd returns the events that are judged: what is recorded after the run is over is
// what clients did when they were closed.
func (h History) upToEnd() []Event {
	if i := slices.IndexFunc(h.Events, func(e Event) bool { return e.Kind == End }); i >= 0 {
		return h.Events[:i+1]
	}
	return h.Events
}
