// Package scenarios is the script language: what a scenario says, how it is
// read and written, and the library of scenarios that comes with the program.
//
// Text comes in, a [Script] goes out; the harness plays it. The package
// imports faults and checker for the words of the language, and no other room
// of this module.
package scenarios

import (
	"reflect"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// A Script is one scenario. The zero value is not valid; scripts come from
// [Parse].
type Script struct {
	// Name is the file's name without ".txt".
	Name string
	// Doc is the head comment, without the "# ".
	Doc []string
	Settings
	Steps   []Step
	Expects []Expect

	layout  layout
	library bool // it comes with the program
}

// Settings are what a script declares before its first step. See docs/script.md
// for the words.
type Settings struct {
	TTL      time.Duration // the lease; default 30 s
	Clients  []string      // participants; at least one
	Nodes    int           // nodes n1 … that the script may name; a strategy with fewer is not played; default 1
	Replicas int           // replicas of each node; default 0
	For      []Selector    // which strategies it applies to; empty means all
	// Elsewhere are names and tags of strategies that other programs have: who
	// plays the script without them is told nothing by lines about them.
	Elsewhere []Selector
	// Params are values that others may want to be different, in the order in which they were
	// declared. What they are is in the rest of the script already: [Script.With] changes that.
	Params []Param

	Grace    faults.Span // default 0.5ttl
	Bound    faults.Span // default 5ttl
	Patience faults.Span // how long an acquire waits if its step doesn't say; default 3ttl

	Retries        int               // how often a client library repeats a command that got no answer; default 0
	ReadTimeout    faults.Span       // how long a client library waits for an answer; default 0.1ttl
	IgnoreContext  bool              // client libraries ignore context deadlines on the wire, as go-redis does by default; default false
	HonourValidity bool              // clients stop at the validity that their lock publishes; default false
	Threads        map[string]string // thread id of a client; default: a different one for each
}

// A Step is one line of the script that does something.
type Step struct {
	Line int // in the file, from 1
	Do   Action
}

// An Action is what a [Step] does: [Call], [Work], [Rounds], [Write], [Await],
// [Wait], [Measure] or [Inject]. String returns it as scripts write it.
type Action interface {
	String() string
	isAction()
}

type (
	// Call makes clients call an operation of their lock.
	Call struct {
		Clients []string
		Op      string      // "acquire", "try", "release" or "extend"
		Within  faults.Span // patience of acquire; zero means the script's
		Begin   bool        // don't wait for it to come back
	}
	// Work keeps clients busy for a time of their own: it stands still while
	// they are paused.
	Work struct {
		Clients []string
		For     faults.Span
		Begin   bool
	}
	// Rounds makes clients acquire, write, work and release, Times times or until For has passed.
	Rounds struct {
		Clients []string
		Times   int         // 0 if For says how long
		For     faults.Span // zero if Times says how often
		Work    faults.Span
		Update  bool        // write behind the work, what was made of what was there before
		Think   faults.Span // mean of the time between two rounds, which is random
		Begin   bool
	}
	// Write makes clients write to the protected resource.
	Write struct {
		Clients []string
		Begin   bool
	}
	// Await waits until something is so, at most Within (zero means the
	// harness's limit); then the script goes on.
	Await struct {
		Clients []string
		State   AwaitState
		Count   int      // for AwaitReplies
		Nodes   []string // for AwaitHeld: on each of these; empty means any
		Within  faults.Span
	}
	// Wait lets time pass.
	Wait struct{ For faults.Span }
	// Measure starts or stops the stopwatch of that name.
	Measure struct {
		Name string
		Stop bool
	}
	// Inject applies a fault.
	Inject struct{ Fault faults.Fault }
)

// AwaitState is what an [Await] waits for, of every client that it names.
type AwaitState string

// What can be awaited. Each is given up early when it can no longer happen:
// the client is idle, or crashed.
const (
	AwaitDone    AwaitState = "done"    // it has no operation under way
	AwaitHeld    AwaitState = "held"    // the gate holds a message of its
	AwaitReplies AwaitState = "replies" // it received Count replies since its last operation began
	AwaitHolding AwaitState = "holding" // it believes that it holds the lock
)

// An Expect says which anomalies a run must show: exactly these.
type Expect struct {
	Line int
	// For selects the strategies; empty means all. Of several lines that
	// select a strategy the last one counts.
	For       []Selector
	Anomalies []checker.Anomaly // empty means none
	Reason    string            // the comment behind it
}

// A Selector selects strategies: by name ("redlock"), by pattern
// ("set-nx-px-*"), or by tag ("@single").
type Selector string

func (Call) isAction()    {}
func (Work) isAction()    {}
func (Rounds) isAction()  {}
func (Write) isAction()   {}
func (Await) isAction()   {}
func (Wait) isAction()    {}
func (Measure) isAction() {}
func (Inject) isAction()  {}

// Rigid reports whether the script tells time in seconds anywhere but in its
// lease: with a longer lease it would be another script.
func (s *Script) Rigid() bool {
	settings := s.Settings
	settings.TTL = 0
	return tellsSeconds(reflect.ValueOf(settings)) || tellsSeconds(reflect.ValueOf(s.Steps))
}

// tellsSeconds looks for spans of absolute time in whatever there is.
func tellsSeconds(v reflect.Value) bool {
	if span, ok := v.Interface().(faults.Span); ok {
		return span.Abs >= time.Millisecond // less is a matter of order
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
