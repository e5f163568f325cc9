package checker

import (
	"slices"
	"time"
)

// A Kind is the type of an [Event].
type Kind string

// The kinds of event. The comment of each kind lists the fields that it sets in addition to Index,
// Time and Kind. The groups are: operations and writes of clients, messages, the lock's key on the
// nodes, and faults and steps of the script.
const (
	// Invoke: a client calls an operation. Client, Op, Call.
	Invoke Kind = "invoke"
	// Return: the operation returned. Client, Op, Call, Result; Error if it failed; Token for a
	// fenced acquire; Until if the lock publishes the validity of the hold.
	Return Kind = "return"
	// Lost: the lock reported to its client that the hold is lost. Client.
	Lost Kind = "lost"
	// Write: the protected resource accepted or refused a write. Client, Accepted; Token if the
	// strategy is fenced.
	Write Kind = "write"

	// Request: a node executed a command. Client, Node, Server, Conn, Command, Sent; Silent if no
	// client waits for the reply.
	Request Kind = "request"
	// Reply: a client received the reply to a command. Client, Node, Conn, Command (of the
	// request), Reply, Sent.
	Reply Kind = "reply"
	// Push: a client received a message to which it had subscribed. Client, Node, Conn, Reply,
	// Sent.
	Push Kind = "push"
	// Held: the gate stopped a message. Passed: the gate forwarded a held message. Dropped: the
	// message is lost. Client, Node, Conn, Command, Direction.
	Held    Kind = "held"
	Passed  Kind = "passed"
	Dropped Kind = "dropped"

	// State: the lock's key on a node changed. Node, Server, Owner, Value, Expires, Cause. Client
	// if a client's command caused the change; Sent of that command if it is known which of several
	// commands under way it was.
	State Kind = "state"

	// Pause, Resume, Crash and Restart of a client's process. Client.
	Pause   Kind = "pause"
	Resume  Kind = "resume"
	Crash   Kind = "crash"
	Restart Kind = "restart"
	// Cancel: the context of the client's operation under way ended, because its caller gave up.
	// Client.
	Cancel Kind = "cancel"
	// Fault: a fault was injected into a node, a link or a clock. Text describes the fault in the
	// words of the script; Node or Client if the fault concerns one.
	Fault Kind = "fault"
	// Measure: a stopwatch of the script was stopped. Text is its name, Took its reading.
	Measure Kind = "measure"
	// Step: the script reached a line. Line, Text.
	Step Kind = "step"
	// End: the run is over; operations that are open now stay open.
	End Kind = "end"
)

// An Op is an operation of a lock that a client can call.
type Op string

// The operations of a lock.
const (
	Acquire    Op = "acquire" // blocks and retries until the lock is held or patience ends
	TryAcquire Op = "try"     // one attempt
	Release    Op = "release"
	Extend     Op = "extend"
)

// A Result is the outcome of an operation as reported to its caller.
type Result string

// The results of an operation.
const (
	OK      Result = "ok"
	Fail    Result = "fail"    // no effect, according to the lock
	Unknown Result = "unknown" // it may or may not have taken effect
)

// A Cause is the reason why the lock's key on a node changed.
type Cause string

// The causes of a [State] event. All causes except ByCommand are actions of the server itself.
const (
	ByCommand     Cause = "command"     // a client's command, named by Client
	ByExpiry      Cause = "expiry"      // the time to live ended on a clock that was not moved
	ByClock       Cause = "clock"       // the node's clock was moved; expiry times moved with it
	ByFailover    Cause = "failover"    // another server is the primary of the node now
	ByRestart     Cause = "restart"     // the server restarted with other data
	ByFlush       Cause = "flush"       // FLUSHALL by an operator
	ByEviction    Cause = "eviction"    // the key was evicted
	BySession     Cause = "session-end" // the connection that owned the key ended
	ByReplication Cause = "replication" // a replica, or a rejoining primary, took over its primary's data
)

// An Event is one record of a [History]. Kind determines which fields are set; all other fields
// hold their zero value and are omitted from the JSON form.
type Event struct {
	// Index is the event's position in its history, from 0.
	Index int `json:"i"`
	// Time is when the event happened: the time since the start of the run on the harness's own
	// clock.
	Time time.Duration `json:"t"`
	Kind Kind          `json:"kind"`

	Client string `json:"client,omitempty"` // A, B, C …
	Node   string `json:"node,omitempty"`   // n1 … n5
	Server string `json:"server,omitempty"` // server process: "n1/0" is the first primary of n1

	Op     Op     `json:"op,omitempty"`
	Call   int    `json:"call,omitempty"` // pairs Return with Invoke; from 1, unique in the history
	Result Result `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`

	// Token is the fencing token; 0 means none.
	Token int64 `json:"token,omitempty"`
	// Until is the end of the validity that the client computed for its hold, on the harness's
	// clock; 0 means that the client published none.
	Until time.Duration `json:"until,omitempty"`
	// Accepted reports whether the resource accepted the write.
	Accepted bool `json:"accepted,omitempty"`

	Conn      int           `json:"conn,omitempty"`      // the client's n-th connection to the node, from 1; 0: not counted
	Direction string        `json:"direction,omitempty"` // "request", "reply" or "push", for Held, Passed, Dropped
	Command   string        `json:"command,omitempty"`   // as typed, with short names of owner values
	Reply     string        `json:"reply,omitempty"`     // as redis-cli would print it on one line
	Sent      time.Duration `json:"sent,omitempty"`      // when the message was sent
	Silent    bool          `json:"silent,omitempty"`    // no client waits for a reply: of no operation

	// Owner is the client that owns the key. Owner and Value are both empty if the key does not
	// exist.
	Owner string `json:"owner,omitempty"`
	// Value is the key's value, owner values by their short names.
	Value string `json:"value,omitempty"`
	// Expires is when the key expires, on the harness's clock; 0 means that the key has no time to
	// live or does not exist.
	Expires time.Duration `json:"expires,omitempty"`
	Cause   Cause         `json:"cause,omitempty"`

	Text string        `json:"text,omitempty"`
	Took time.Duration `json:"took,omitempty"`
	Line int           `json:"line,omitempty"`
}

// Meta holds the parameters of the run that Check needs to judge a [History].
type Meta struct {
	// Format is the version of the history format; this is version 1.
	Format   int    `json:"lockfault"`
	Strategy string `json:"strategy"`
	Scenario string `json:"scenario"`
	World    string `json:"world"`
	// Service is the kind of server; empty means Redis.
	Service string `json:"service,omitempty"`
	// Query is the query that asks servers of Service for the owner of the lock.
	Query string `json:"query,omitempty"`
	Seed  uint64 `json:"seed"`

	Clients []string `json:"clients"`
	Nodes   []string `json:"nodes"`

	// TTL is the requested lease.
	TTL time.Duration `json:"ttl"`
	// Grace is how long past the TTL an abandoned lock may block other clients before it counts as
	// stuck.
	Grace time.Duration `json:"grace"`
	// Bound is the maximum time that a live client may wait. A longer wait for a holder is
	// starvation; a longer wait without a holder is unavailability.
	Bound time.Duration `json:"bound"`
	// HonourValidity reports whether clients stop using the lock at Until.
	HonourValidity bool `json:"honour_validity,omitempty"`
	// Fenced reports whether the resource refuses tokens smaller than one that it has accepted.
	Fenced bool `json:"fenced,omitempty"`
}

// A History is the record of one run, in order. Events are ordered by Index, and Time never
// decreases; of two events with the same Time, the event with the smaller Index came first. The
// zero value is an empty history. This package never changes a History, so a History may be read
// concurrently.
type History struct {
	Meta   Meta
	Events []Event
}

// upToEnd returns the events that are judged: those up to the first End. Later events record what
// clients did while they were closed.
func (h History) upToEnd() []Event {
	if i := slices.IndexFunc(h.Events, func(e Event) bool { return e.Kind == End }); i >= 0 {
		return h.Events[:i+1]
	}
	return h.Events
}
