// Package scenarios implements the script language: the syntax tree of a scenario, its parser and
// formatter, and the library of scenarios.
//
// The input is a text, the output a [Script] that package harness runs. The package imports faults
// and checker for the words of the language.
package scenarios

import (
	"reflect"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// Script is one scenario. The zero value is not valid; use [Parse].
type Script struct {
	// Name is the file's name without ".txt".
	Name string
	// Doc is the head comment, without the "# ".
	Doc []string
	Settings
	Steps   []Step
	Expects []Expect

	layout  layout
	library bool // the script belongs to the library
}

// Settings holds the declarations that precede a script's first step. docs/script.md describes the
// words.
type Settings struct {
	TTL      time.Duration // the lease; default 30 s
	Clients  []string      // participants; at least one
	Nodes    int           // nodes n1 … that the script may name; a strategy with fewer nodes is not applicable; default 1
	Replicas int           // replicas of each node; default 0
	For      []Selector    // strategies to which the script applies; empty means all
	// Elsewhere lists names and tags of strategies in other programs. Lines with these selectors
	// are not an error in a program without these strategies.
	Elsewhere []Selector
	// Params are the script's parameters, in the order of their declarations. The rest of the
	// script already contains their values; [Script.With] changes the values.
	Params []Param

	Grace    faults.Span // default 0.5ttl
	Bound    faults.Span // default 5ttl
	Patience faults.Span // default time limit of an acquire; default 3ttl

	Retries        int               // retries of a command without a reply by a client library; default 0
	ReadTimeout    faults.Span       // reply timeout of a client library; default 0.1ttl
	IgnoreContext  bool              // client libraries ignore context deadlines on the wire, as go-redis does by default; default false
	HonourValidity bool              // clients stop at the end of the validity that their lock computes; default false
	Threads        map[string]string // thread id of a client; default: a different id for each client
}

// Step is one action of the script.
type Step struct {
	Line int // in the file, from 1
	Do   Action
}

// Action is the action of a [Step]: [Call], [Work], [Rounds], [Write], [Await], [Wait], [Measure]
// or [Inject]. String returns the action in the script language.
type Action interface {
	String() string
	isAction()
}

type (
	// Call makes clients call an operation of their lock.
	Call struct {
		Clients []string
		Op      string      // "acquire", "try", "release" or "extend"
		Within  faults.Span // time limit of acquire; zero means the script's patience
		Begin   bool        // do not wait until the operation returns
	}
	// Work keeps clients busy for a time that does not include their pauses.
	Work struct {
		Clients []string
		For     faults.Span
		Begin   bool
	}
	// Rounds makes clients acquire, write, work and release, Times times or until For has passed.
	Rounds struct {
		Clients []string
		Times   int         // 0 if For is set
		For     faults.Span // zero if Times is set
		Work    faults.Span
		Update  bool        // write after the work, as a read-modify-write does, in place of before it
		Think   faults.Span // mean of the random time between two rounds
		Begin   bool
	}
	// Write makes clients write to the protected resource.
	Write struct {
		Clients []string
		Begin   bool
	}
	// Await waits until a condition is met, at most Within; zero means the harness's limit. The
	// script then continues in any case.
	Await struct {
		Clients []string
		State   AwaitState
		Count   int      // for AwaitReplies
		Nodes   []string // for AwaitHeld: on each of these nodes; empty means on any node
		Within  faults.Span
	}
	// Wait lets time pass.
	Wait struct{ For faults.Span }
	// Measure starts or stops the stopwatch with the given name.
	Measure struct {
		Name string
		Stop bool
	}
	// Inject applies a fault.
	Inject struct{ Fault faults.Fault }
)

// AwaitState is the condition of an [Await], for every client that it names.
type AwaitState string

// Conditions of an await. The wait for a client ends early if the condition can no longer be met,
// because the client is idle or crashed.
const (
	AwaitDone    AwaitState = "done"    // the client has no operation in progress
	AwaitHeld    AwaitState = "held"    // the gate holds a message of the client
	AwaitReplies AwaitState = "replies" // the client received Count replies since its last operation began
	AwaitHolding AwaitState = "holding" // the client believes that it holds the lock
)

// Expect lists the anomalies that a run must show: exactly these.
type Expect struct {
	Line int
	// For selects the strategies; empty means all. If several lines select a strategy, the last
	// line counts.
	For       []Selector
	Anomalies []checker.Anomaly // empty means none
	Reason    string            // the comment after the line
}

// Selector selects strategies by name ("redlock"), by pattern ("set-nx-px-*"), or by tag
// ("@single").
type Selector string

func (Call) isAction()    {}
func (Work) isAction()    {}
func (Rounds) isAction()  {}
func (Write) isAction()   {}
func (Await) isAction()   {}
func (Wait) isAction()    {}
func (Measure) isAction() {}
func (Inject) isAction()  {}

// Rigid reports whether the script contains absolute times of at least 1 ms, apart from its lease.
// With a longer lease, such a script would have a different meaning.
func (s *Script) Rigid() bool {
	settings := s.Settings
	settings.TTL = 0
	return tellsSeconds(reflect.ValueOf(settings)) || tellsSeconds(reflect.ValueOf(s.Steps))
}

// tellsSeconds reports whether a value contains an absolute time.
func tellsSeconds(v reflect.Value) bool {
	if span, ok := v.Interface().(faults.Span); ok {
		return span.Abs >= time.Millisecond // shorter spans only determine an order
	}
	if rate, ok := v.Interface().(faults.Rate); ok {
		return rate.Per.Abs != 0
	}
	switch v.Kind() {
	case reflect.Interface:
		return !v.IsNil() && tellsSeconds(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && tellsSeconds(v.Field(i)) {
				return true
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if tellsSeconds(v.Index(i)) {
				return true
			}
		}
	}
	return false
}
