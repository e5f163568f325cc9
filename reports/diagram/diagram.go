// Package diagram represents the story of one cell as data: lanes, spans of time, moments and an
// axis. The package reports makes a [Picture], and the packages that draw (as SVG, Mermaid or a
// trace) take it as their only input. This package may not depend on histories or on any output
// format.
package diagram

import "time"

// A Picture holds everything that a drawing of a cell shows. The order of its lists depends only on
// the history.
type Picture struct {
	Title string // the cell, in a few words
	// Lease is the lease; 0 if unknown.
	Lease time.Duration
	// End is the end of the run. The axis extends beyond it if a lease or a validity ends later.
	End      time.Duration
	Lanes    []Lane
	Spans    []Span     // by From, then in the order of detection
	Overlaps []Overlap  // by From
	Points   []Point    // in the order of the history
	Proofs   []Proof    // anomalies, in the order of the verdict
	Sentence []Sentence // the story in short; empty if it is too long for that
	Axis     Axis
	// Left counts the moments and spans that are left out.
	Left Left
}

// A LaneKind is the kind of participant that a lane shows.
type LaneKind int

// The kinds of lanes, in the order in which they are drawn.
const (
	Client   LaneKind = iota
	Server            // a server of a node
	Resource          // the resource that the lock protects
)

// A Lane shows one participant.
type Lane struct {
	Kind LaneKind
	Name string
	// Number counts the clients from 0, so that each client has the same colour everywhere.
	Number int
}

// A SpanKind is the kind of a span.
type SpanKind int

// The kinds of spans.
const (
	Hold   SpanKind = iota // the client believed that it held the lock
	Call                   // an operation, from its invocation to its return
	Key                    // the key on the server had the same owner
	Stop                   // the process was paused or dead
	Cut                    // messages were lost: a partition
	Gated                  // the gate held a message
	Odd                    // another lasting fault: a split, a slow replica, a fast clock
	Repeat                 // a client repeated the same requests
)

// A Span is a period in one lane.
type Span struct {
	Kind SpanKind
	Lane int
	// From and To are the start and the end. They may lie beyond the axis.
	From, To time.Duration
	// Began and Ended are the numbers of the events, or -1.
	Began, Ended int
	// Open reports whether the span lasted until the end of the run.
	Open bool
	// Owner is the lane of the client that owns the key; -1 if unknown.
	Owner int
	// Until is the expiry of the key or the end of the validity; 0 if neither applies.
	Until time.Duration
	Label string // one or two words
	Text  string // a sentence
}

// Length returns the duration of the whole span, including parts beyond the axis.
func (s Span) Length() time.Duration { return s.To - s.From }

// An Overlap is a period in which two clients believed that they held the lock.
type Overlap struct {
	A, B     int // lanes
	From, To time.Duration
	Open     bool // it lasted until the end of the run
}

// Label returns the length of the overlap as text.
func (o Overlap) Label() string {
	switch length := o.To - o.From; {
	case o.Open && length <= 0:
		return "overlap, open at the end"
	case o.Open:
		return "overlap " + Words(length) + ", open at the end"
	case length <= 0:
		return "overlap for an instant"
	default:
		return "overlap " + Words(length)
	}
}

// A MomentKind is the kind of a moment.
type MomentKind int

// The kinds of moments.
const (
	Invoke  MomentKind = iota // a client invoked an operation
	Return                    // an operation returned
	Request                   // a server executed a command
	Reply                     // a client received a reply
	Push                      // a client received a pushed message
	Stopped                   // the gate held a message
	Passed                    // the gate passed a held message
	Dropped                   // a message was lost
	State                     // the key changed, not by the previous event
	Write                     // the resource accepted or refused a write
	Lost                      // a client's lock reported its loss
	Process                   // a process paused, resumed, crashed or restarted; a caller gave up
	Fault                     // a fault of a node, a link or a clock
	Rounds                    // a client repeated the same requests
)

// Between reports whether moments of the kind are messages from one lane to another.
func (k MomentKind) Between() bool {
	switch k {
	case Request, Reply, Push, Stopped, Passed, Dropped, Write, Rounds:
		return true
	}
	return false
}

// A Point is a moment: an event, or several that are shown together.
type Point struct {
	Kind MomentKind
	// Event is the number of the event in the history, or of the first of several. With holds the
	// numbers of the other events: the change that a command made, or the rest of the rounds.
	Event int
	With  []int
	At    time.Duration
	// Sent is when the message was sent; 0 if unknown.
	Sent time.Duration
	// From and To are lanes. To is -1 for a moment in a single lane. Both are -1 if no shown lane
	// is concerned.
	From, To int
	Label    string // a few words
	Effect   string // the new state of the key, in a few words
	Text     string // a sentence
	// Good and Bad report success and failure, for moments that have either: an operation that
	// succeeded, a write that was refused.
	Good, Bad bool
	Proof     []int // numbers of its events that prove something
}

// Proves reports whether the moment contains an event that proves something.
func (m Point) Proves() bool { return len(m.Proof) > 0 }

// A Proof is an anomaly with the events that prove it.
type Proof struct {
	Anomaly, Text string
	Events        []int
}

// A Sentence is a part of the story in short.
type Sentence struct {
	Event int
	Text  string
}

// Left counts what is left out: moments before the first shown one, between the shown ones and
// after the last, and spans.
type Left struct{ Before, Among, Behind, Spans int }

// All returns the number of moments that are left out.
func (l Left) All() int { return l.Before + l.Among + l.Behind }
