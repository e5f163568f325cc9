// Package vtime makes bubbles of virtual time outside go test.
//
// Package testing/synctest requires a *testing.T. [Main] obtains one in an ordinary program. [Run]
// runs a function in a bubble made from it and returns every failure of the bubble as an error. The
// package imports only the standard library.
package vtime

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Main calls run with a *testing.T from which [Run] can make bubbles, and ends the process when run
// returns. The exit status is 0, or 1 if the T has failed. Main is for programs outside go test.
// Call it at most once.
//
// Package testing prints its own report on os.Stdout, and strategies under test may print, too.
// Therefore Main sets os.Stdout to os.Stderr; a program that speaks a protocol on its standard
// output must save the file before it calls Main.
func Main(run func(t *testing.T)) {
	os.Stdout = os.Stderr
	// Package testing must not parse the program's arguments: it does not if its flags are already
	// parsed.
	testing.Init()
	_ = flag.CommandLine.Parse(nil) // cannot fail without arguments
	match := func(string, string) (bool, error) { return true, nil }
	testing.Main(match, []testing.InternalTest{{Name: "lockfault", F: func(t *testing.T) {
		run(t)
		if !t.Failed() {
			os.Exit(0) // before package testing prints PASS, which would look like a strategy's output
		}
	}}}, nil, nil)
}

// Error describes the failure of a bubble.
type Error struct {
	// Reason describes the failure in one line.
	Reason string
	// Stack holds the stacks of the goroutine that panicked, or of those that were left blocked. It
	// is cut off at 16 KiB.
	Stack string

	// Left describes in one line where one of the goroutines waits that remained when the function
	// had returned, and which function started it. Left is empty for other failures.
	Left string

	limit bool // virtual time stands still
}

// ErrLimit reports that virtual time stands still, or did so up to the limit of real time.
var ErrLimit = errors.New("vtime: virtual time stood still")

// Is reports whether target is ErrLimit and virtual time stands still.
func (e *Error) Is(target error) bool { return e.limit && target == ErrLimit }

// Error returns the reason and the stack.
func (e *Error) Error() string {
	if e.Stack == "" {
		return e.Reason
	}
	return e.Reason + "\n\n" + e.Stack
}

// stackLimit limits [Error.Stack], in bytes, so that a thousand leaked goroutines cost no more than
// one.
const stackLimit = 16 << 10

// Run calls f in a bubble of virtual time made from t, and returns when f and all goroutines that
// it started have ended. The error is that of [Bubble.Wait]. Run never returns if a goroutine
// computes forever or waits for something outside the bubble; use [RunWithin] there.
//
// Do not call Run in a bubble. Run is safe for concurrent use.
func Run(t *testing.T, f func()) error { return RunWithin(t, 0, f) }

// RunWithin is like [Run], but waits at most for the limit in real time, unless the limit is 0.
// After f has returned, its goroutines get the limit once more. When the time has passed, the
// *[Error] matches ErrLimit and names the goroutine that virtual time waits for. The bubble is
// abandoned: f may continue, so the caller must not use data that f uses.
func RunWithin(t *testing.T, limit time.Duration, f func()) error {
	_, err := Start(t, f).wait(nil, limit)
	return err
}

// A Bubble is a function that runs in virtual time, started by [Start].
type Bubble struct {
	id    atomic.Pointer[string] // the bubble's name in stacks
	over  atomic.Bool            // the function has returned or was abandoned, whichever was first
	never chan struct{}          // made outside the bubble, so that a wait for it stops virtual time
	ended chan error
}

// Start calls f in a bubble of virtual time made from t, and does not wait for it. The caller must
// call [Bubble.Wait] until the bubble has ended.
func Start(t *testing.T, f func()) *Bubble {
	b := &Bubble{never: make(chan struct{}), ended: make(chan error, 1)}
	go func() { b.ended <- b.run(t, f) }()
	return b
}

// Wait blocks until a value comes from the channel, which may be nil, or f and all goroutines that
// it started have ended. If they have, the error is an *[Error] if f panicked, if all goroutines in
// the bubble were blocked forever, or if goroutines remained when f returned; these stay blocked
// until the process ends. A panic in another goroutine than f's ends the process.
//
// Virtual time stands still while a goroutine waits for a sync.Mutex. If all others wait meanwhile,
// for longer than [patience] of real time, the bubble has ended with an *[Error] that matches
// ErrLimit and names the goroutine. The bubble is abandoned then, so the caller must not use data
// that f uses.
func (b *Bubble) Wait(until <-chan struct{}) (ended bool, err error) { return b.wait(until, 0) }

// wait is [Bubble.Wait] with the limit of [RunWithin].
func (b *Bubble) wait(until <-chan struct{}, limit time.Duration) (ended bool, err error) {
	look := time.NewTimer(patience / 2)
	defer look.Stop()
	var end <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		end = timer.C
	}
	for stands := ""; ; {
		select {
		case <-until:
			return false, nil
		case err := <-b.ended:
			return true, err
		case <-look.C:
			now := b.stall()
			if now != "" && now == stands {
				b.over.Store(true)
				return true, b.stopped(standsStill)
			}
			stands = now
			look.Reset(patience / 2)
		case <-end:
			if !b.over.CompareAndSwap(false, true) {
				// Goroutines that f has started may still run and end.
				end = time.After(limit)
				continue
			}
			if b.stall() != "" {
				return true, b.stopped(standsStill) // whether or not two looks were made
			}
			return true, b.stopped(fmt.Sprintf("virtual time stood still for %v of real time", limit))
		}
	}
}

const standsStill = "virtual time stands still"

// patience is the real time for which all goroutines of a bubble must wait, one of them for a
// mutex, to be called a stall: a goroutine outside the bubble could still release the mutex.
const patience = time.Second

// stall returns the goroutines of the bubble if virtual time stands still since one of them waits
// for a mutex and the others wait, too; empty otherwise. It is the same as long as none of them runs.
func (b *Bubble) stall() string {
	id := b.id.Load()
	if id == nil {
		return ""
	}
	list := stacks(*id)
	locked := false
	for _, stack := range list {
		state := stateOf(stack)
		waits := strings.HasPrefix(state, "sync.Mutex.Lock") || strings.HasPrefix(state, "sync.RWMutex")
		if !waits && !strings.Contains(state, "(durable)") {
			return ""
		}
		locked = locked || waits
	}
	if !locked {
		return ""
	}
	slices.Sort(list)
	return strings.Join(list, "\n\n")
}

// stopped returns the error of an abandoned bubble: what happened, and the goroutine to blame.
func (b *Bubble) stopped(what string) error {
	var blocked []string
	if id := b.id.Load(); id != nil {
		blocked = stacks(*id)
	}
	return &Error{Reason: what + ": " + stuck(blocked), Stack: clip([]byte(strings.Join(blocked, "\n\n"))), limit: true}
}

// run calls f in a bubble and returns the bubble's error.
func (b *Bubble) run(t *testing.T, f func()) error {
	err := error(&Error{Reason: "package testing gave up the bubble, as it does when it finds a data race"})
	// A separate goroutine, because package testing ends the goroutine in which it finds a failure,
	// such as a data race.
	withoutExit(func() {
		defer func() {
			if v := recover(); v != nil {
				id := ""
				if known := b.id.Load(); known != nil {
					id = *known
				}
				blocked, reason, left := stacks(id), fmt.Sprint(v), ""
				if reason == leftBehind {
					reason, left = leak(blocked)
				}
				err = &Error{Reason: reason, Left: left, Stack: clip([]byte(strings.Join(blocked, "\n\n")))}
			}
		}()
		var failed error
		synctest.Test(t, func(*testing.T) {
			id := Current()
			b.id.Store(&id)
			failed = call(f)
			if !b.over.CompareAndSwap(false, true) {
				// An abandoned bubble must not end: package testing would use a t that may already be done.
				<-b.never
			}
		})
		err = failed
	})
	return err
}

// call calls f and returns an error if f does not return normally.
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

// withoutExit calls f in a goroutine, and returns even if f ends that goroutine.
func withoutExit(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// Current returns the name in stacks of the calling goroutine's bubble, such as "synctest bubble
// 7", or an empty string outside a bubble.
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

// stacks returns the stacks of the goroutines in the named bubble, without package testing's
// goroutines that only wait for the others.
func stacks(bubble string) []string {
	// Earlier bubbles may have left many goroutines, a thousand perhaps.
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

// clip cuts a stack off at stackLimit.
func clip(stack []byte) string {
	if len(stack) <= stackLimit {
		return string(bytes.TrimSpace(stack))
	}
	return string(stack[:stackLimit]) + "\n…"
}
