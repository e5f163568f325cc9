// Package bubble makes bubbles of virtual time outside go test.
//
// Package testing/synctest asks for a *testing.T. [Main] obtains one in an
// ordinary program, and [Run] plays a function in a bubble made from it and
// returns every way in which that can end badly as an error. It imports the
// standard library only.
package vtime

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Main calls run with a *testing.T from which [Run] can make bubbles, and ends
// the process when run returns: status 0, or 1 if it made the T fail. It is
// for programs that have no go test around them, and is called at most once.
//
// Package testing prints its own report on os.Stdout, and strategies under
// test may print too. So Main lets os.Stdout and os.Stderr be the same file;
// a program that speaks a protocol on its standard output must keep the file
// before it calls Main.
func Main(run func(t *testing.T)) {
	os.Stdout = os.Stderr
	// The program's arguments are not for package testing: with its flags
	// parsed already, it does not look at them.
	testing.Init()
	_ = flag.CommandLine.Parse(nil) // fails on no argument
	match := func(string, string) (bool, error) { return true, nil }
	testing.Main(match, []testing.InternalTest{{Name: "lockfault", F: func(t *testing.T) {
		run(t)
		if !t.Failed() {
			os.Exit(0) // before package testing prints PASS, as if a strategy had said it
		}
	}}}, nil, nil)
}

// An Error is how a bubble ended badly.
type Error struct {
	// Reason says what happened, in one line.
	Reason string
	// Stack shows where: the goroutine that panicked, or those that were
	// left blocked. It is cut off at a few kilobytes.
	Stack string

	limit bool // it took too long
}

// ErrLimit says that virtual time stood still for as long as it might.
var ErrLimit = errors.New("bubble: virtual time stood still")

// Is reports whether that is how it ended.
func (e *Error) Is(target error) bool { return e.limit && target == ErrLimit }

// Error returns the reason and the stack.
func (e *Error) Error() string {
	if e.Stack == "" {
		return e.Reason
	}
	return e.Reason + "\n\n" + e.Stack
}

// stackLimit bounds [Error.Stack], so that a thousand leaked goroutines cost
// no more than one.
const stackLimit = 16 << 10

// Run calls f in a bubble of virtual time made from t, and returns when f and
// all goroutines that it started have ended. The error is an *[Error] if f
// panicked, if everything in the bubble waits for ever, or if goroutines were
// left behind when f returned; these stay blocked until the process ends. A
// panic in another goroutine than f's ends the process. Virtual time stands
// still while a goroutine waits for a sync.Mutex, so Run may never return:
// that takes somebody with a real clock to notice.
//
// Run must not be called from within a bubble. It is safe for concurrent use.
func Run(t *testing.T, f func()) error { return new(run).run(t, f) }

// RunWithin is [Run], but it doesn't wait for longer than the limit, in real time, if
// that isn't 0. The *[Error] says then what virtual time waits for, and where. What is
// in the bubble is left to itself: f may go on, so the caller must not touch what f
// uses.
func RunWithin(t *testing.T, limit time.Duration, f func()) error {
	var p run
	if limit == 0 {
		return p.run(t, f)
	}
	// A bubble that was given up must not end: package testing would come back to a t
	// that may be done for.
	var over atomic.Bool // f has ended, or was given up: whatever came first
	never := make(chan bool)
	done := make(chan error, 1)
	go func() {
		done <- p.run(t, func() {
			defer func() {
				if !over.CompareAndSwap(false, true) {
					<-never // which, made outside, stops virtual time
				}
			}()
			f()
		})
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
	}
	if !over.CompareAndSwap(false, true) {
		// What f has started may still be there, and may end.
		timer.Reset(limit)
		select {
		case err := <-done:
			return err
		case <-timer.C:
		}
	}
	var blocked []string
	if id := p.id.Load(); id != nil {
		blocked = stacks(*id)
	}
	return &Error{Reason: fmt.Sprintf("virtual time stood still for %v of real time: %s", limit, stuck(blocked)), Stack: clip([]byte(strings.Join(blocked, "\n\n"))), limit: true}
}

// A run is one function in one bubble. The zero value is ready for use, once.
type run struct{ id atomic.Pointer[string] } // how stacks name the bubble

func (p *run) run(t *testing.T, f func()) error {
	err := error(&Error{Reason: "package testing gave up the bubble, as it does when it finds a data race"})
	// A goroutine of its own, because package testing ends the one in which
	// it finds a failure, a data race for one.
	withoutExit(func() {
		defer func() {
			if v := recover(); v != nil {
				id := ""
				if known := p.id.Load(); known != nil {
					id = *known
				}
				blocked, reason := stacks(id), fmt.Sprint(v)
				if reason == leftBehind {
					reason = leak(blocked)
				}
				err = &Error{Reason: reason, Stack: clip([]byte(strings.Join(blocked, "\n\n")))}
			}
		}()
		var failed error
		synctest.Test(t, func(*testing.T) {
			id := Current()
			p.id.Store(&id)
			failed = call(f)
		})
		err = failed
	})
	return err
}

// call calls f and returns how it failed to return.
func call(f func()) error {
	err := error(&Error{Reason: "runtime.Goexit ended the bubble's first goroutine"})
	withoutExit(func() {
		defer func() {
			if v := recover(); v != nil {
				err = &Error{Reason: fmt.Sprintf("panic: %v", v), Stack: clip(debug.Stack())}
			}
		}()
		f()
		err = nil
	})
	return err
}

// withoutExit calls f, and returns also when f ends its goroutine.
func withoutExit(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// Current returns how stacks name the bubble of the calling goroutine, such
// as "synctest bubble 7"; empty if it is in none.
func Current() string {
	var header [128]byte
	line, _, _ := bytes.Cut(header[:runtime.Stack(header[:], false)], []byte("]"))
	for part := range bytes.SplitSeq(line, []byte(", ")) {
		if bytes.HasPrefix(part, []byte("synctest bubble ")) {
			return string(part)
		}
	}
	return ""
}

// stacks returns the stacks of the goroutines in the named bubble, without
// those that only wait for the others on behalf of package testing.
func stacks(bubble string) []string {
	// Others may have been left before, a thousand perhaps.
	all := make([]byte, 1<<20)
	n := runtime.Stack(all, true)
	for n == len(all) && n < 64<<20 {
		all = make([]byte, 2*n)
		n = runtime.Stack(all, true)
	}
	all = all[:n]
	var kept []string
	for _, stack := range bytes.Split(all, []byte("\n\n")) {
		header, _, _ := bytes.Cut(stack, []byte("\n"))
		if bubble == "" || !bytes.Contains(header, []byte(bubble+"]")) {
			continue
		}
		if bytes.Contains(stack, []byte("vtime.withoutExit(")) || bytes.Contains(stack, []byte("testing.testingSynctestTest(")) {
			continue
		}
		kept = append(kept, string(stack))
	}
	return kept
}

// clip cuts a stack off at its limit.
func clip(stack []byte) string {
	if len(stack) <= stackLimit {
		return string(bytes.TrimSpace(stack))
	}
	return string(stack[:stackLimit]) + "\n…"
}
