// Package picture has the story of one cell as data: lanes, spans of time, moments and
// an axis. Whatever draws a story (as SVG, as Mermaid, on a terminal) draws this and knows
// nothing else. The package knows neither histories nor how anything is drawn.
package diagram

import "time"

// A Picture is what is to be seen of one cell. Its lists are in an order that depends on
// nothing but the history.
type Picture struct {
	Title string // what was played, in a few words
	// Lease is how long the lease was; 0 if nobody knows.
	Lease time.Duration
	// End is when the run was over. What was granted may last longer, and the axis then
	// goes on.
	End      time.Duration
	Lanes    []Lane
	Spans    []Span     // by From, then as they were found
	Overlaps []Overlap  // by From
	Points   []Point    // in the order of the history
	Proofs   []Proof    // what was found, in the order of the verdict
	Sentence []Sentence // the story in short; none if it is too long for that
	Axis     Axis
	// Left counts the moments that are left out, before the first that is there, among
	// them, and behind the last.
	Left Left
}

// A LaneKind says who a lane is about.
type LaneKind int

// The kinds of lanes, in the order in which they lie.
const (
	Client   LaneKind = iota
	Server            // a node, or one of several servers behind it
	Resource          // what the lock protects
)

// A Lane is one participant.
type Lane struct {
	Kind LaneKind
	Name string
	// Number counts the clients from 0, so that each has its own colour wherever it is seen.
	Number int
}

// A SpanKind says what lasted.
type SpanKind int

// The kinds of spans.
const (
	Hold   SpanKind = iota // the client believed that it held the lock
	Call                   // an operation, from its call to its return
	Key                    // the key on the server was somebody's
	Stop                   // the process stood still or was dead
	Cut                    // messages were lost: a partition
	Gated                  // the gate kept a message
	Odd                    // any other fault that lasts: a split, a slow replica, a clock that runs fast
	Repeat                 // a client asked the same again and again
)

// A Span is something that lasted, in one lane.
type Span struct {
	Kind SpanKind
	Lane int
	// From and To are when it began and ended, in the picture or beyond its axis.
	From, To time.Duration
	// Began and Ended are the numbers of the events, or -1.
	Began, Ended int
	// Open says that nothing ended it before the run was over.
	Open bool
	// Owner is the lane of the client to whom the key belongs; -1 if nobody knows.
	Owner int
	// Until is when the key expires or the validity ends, if that is not To; 0 if never.
	Until time.Duration
	Label string // in a word or two
	Text  string // in a sentence
}

// Length says how long it was, whatever is seen of it.
func (s Span) Length() time.Duration { return s.To - s.From }

// An Overlap is a time in which two clients believed at once.
type Overlap struct {
	A, B     int // lanes
	From, To time.Duration
	Open     bool // it lasted until the end of the run
}

// Label says how long it was.
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

// A MomentKind says what happened.
type MomentKind int

// The kinds of moments.
const (
	Invoke  MomentKind = iota // a client called
	Return                    // and was told
	Request                   // a server executed a command
	Reply                     // a client received an answer
	Push                      // or a message
	Stopped                   // the gate kept a message
	Passed                    // and let it go on
	Dropped                   // a message was lost
	State                     // the key changed, not by a command
	Write                     // the resource decided
	Lost                      // a client was told that it had lost the lock
	Process                   // a client's process stopped, went on, died or began anew; a caller gave up
	Fault                     // the script did something to a node, a link or a clock
	Rounds                    // a client asked the same again and again
)

// Between reports whether moments of the kind are messages: from one lane to another.
func (k MomentKind) Between() bool {
	switch k {
	case Request, Reply, Push, Stopped, Passed, Dropped, Write, Rounds:
		return true
	}
	return false
}

// A Point is something that happened.
type Point struct {
	Kind MomentKind
	// Event is its number in the history; of rounds that of the first. With are those of the
	// other events that it tells: what a command made of the key, the rest of the rounds.
	Event int
	With  []int
	At    time.Duration
	// Sent is when the message set out, if anybody knows.
	Sent time.Duration
	// From and To are lanes; To is -1 where one lane is all. Both are -1 for what was done
	// to no lane that is shown.
	From, To int
	Label    string // in a few words
	Effect   string // what it made of the key, in a few words
	Text     string // in a sentence
	// Good and Bad say how it came out, where that is the question: an operation that
	// succeeded, a write that was accepted.
	Good, Bad bool
	Proof     []int // those of its events that prove something
}

// Proves reports whether it is about something that proves anything.
func (m Point) Proves() bool { return len(m.Proof) > 0 }

// A Proof is an anomaly and the events that prove it.
type Proof struct {
	Anomaly, Text string
	Events        []int
}

// A Sentence is a part of the story in short.
type Sentence struct {
	Event int
	Text  string
}

// Left counts what is left out: moments before the first, among the others and after the last, and
// spans.
type Left struct{ Before, Among, Behind, Spans int }

// All returns how many moments are left out.
func (l Left) All() int { return l.Before + l.Among + l.Behind }
