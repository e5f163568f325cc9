package vtime_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/vtime"
)

// The test binary doubles as a program without go test around it.
func TestMain(m *testing.M) {
	if what := os.Getenv("BUBBLE_TEST_PROGRAM"); what != "" {
		program(what)
	}
	os.Exit(m.Run())
}

func program(what string) {
	out := os.Stdout
	vtime.Main(func(t *testing.T) {
		fmt.Println("a strategy's print")
		err := vtime.Run(t, func() {
			start := time.Now()
			time.Sleep(24 * time.Hour)
			fmt.Fprintln(out, "slept", time.Since(start))
		})
		if err != nil {
			fmt.Fprintln(out, err)
		}
		if what == "fail" {
			t.Fail()
		}
	})
}

func TestMainLeavesStandardOutputAlone(t *testing.T) {
	for what, status := range map[string]int{"pass": 0, "fail": 1} {
		// Arguments that package testing would trip over, were it to look.
		cmd := exec.Command(os.Args[0], "worker", "--no-such-flag")
		cmd.Env = append(os.Environ(), "BUBBLE_TEST_PROGRAM="+what)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, _ := cmd.Output()
		if got := cmd.ProcessState.ExitCode(); got != status {
			t.Errorf("%s: exit status %d, want %d; stderr:\n%s", what, got, status, &stderr)
		}
		if got, want := string(out), "slept 24h0m0s\n"; got != want {
			t.Errorf("%s: stdout %q, want %q", what, got, want)
		}
		if !strings.Contains(stderr.String(), "a strategy's print") {
			t.Errorf("%s: what was printed is lost; stderr:\n%s", what, &stderr)
		}
		if what == "pass" && stderr.String() != "a strategy's print\n" {
			t.Errorf("stderr is\n%s\nwant what the strategy printed", &stderr)
		}
	}
}

func TestRunEndsInAnError(t *testing.T) {
	tests := []struct {
		name, reason, stack string
		f                   func()
	}{
		{"panic", "panic: out of cheese", "explode", func() { explode() }},
		{"deadlock", "deadlock: all goroutines in bubble are blocked", "waitForEver", func() { waitForEver() }},
		{"deadlock of another", "deadlock: all goroutines in bubble are blocked", "waitForEver", func() {
			done := make(chan bool)
			go func() { waitForEver(); close(done) }()
			<-done
		}},
		{"leak", "left 1 goroutine behind when all was closed, in vtime_test.waitForEver at vtime/vtime_test.go:", "waitForEver", func() { go waitForEver() }},
		{"leaks", "left 2 goroutines behind when all was closed, one of them in vtime_test.waitForEver at vtime/vtime_test.go:", "waitForEver", func() { go waitForMutex(); time.Sleep(time.Second); go waitForEver() }},
		{"who started it", ", started by vtime_test.start at vtime/vtime_test.go:", "waitForEver", func() { start() }},
		{"goexit", "runtime.Goexit", "", func() { runtime.Goexit() }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := vtime.Run(t, test.f)
			var e *vtime.Error
			if !errors.As(err, &e) {
				t.Fatalf("got error %v, want a *vtime.Error", err)
			}
			if !strings.Contains(e.Reason, test.reason) {
				t.Errorf("reason %q, want it to contain %q", e.Reason, test.reason)
			}
			if !strings.Contains(e.Stack, test.stack) {
				t.Errorf("stack does not show %q:\n%s", test.stack, e.Stack)
			}
			// The next bubble must not notice.
			if err := vtime.Run(t, func() { time.Sleep(time.Hour) }); err != nil {
				t.Errorf("a later bubble: %v", err)
			}
		})
	}
}

func explode() { panic("out of cheese") }

func start() { go waitForEver() }

// waitForMutex waits in the standard library, which is not to blame.
func waitForMutex() {
	var done sync.WaitGroup
	done.Add(1)
	done.Wait()
}

func waitForEver() { select {} }

func TestStackIsBounded(t *testing.T) {
	err := vtime.Run(t, func() {
		for range 1000 {
			go waitForEver()
		}
	})
	if err == nil || len(err.Error()) > 20<<10 {
		t.Fatalf("an error of %d bytes, want some and at most 20 KiB", len(err.Error()))
	}
}

// Each bubble makes a child of the one T; if the T kept them, a worker's
// memory would grow with the cells that it has finished.
func TestMemoryDoesNotGrow(t *testing.T) {
	play := func(n int) {
		for range n {
			err := vtime.Run(t, func() {
				go time.Sleep(time.Second)
				time.Sleep(time.Minute)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	const bubbles = 10_000
	play(1000)
	before := heap()
	play(bubbles)
	after := heap()
	// A T weighs more than a hundred bytes; what the runtime keeps for
	// reuse depends on how many ran at once, not on how many there were.
	if after > before && (after-before)/bubbles >= 32 {
		t.Errorf("%d bubbles left %d bytes behind", bubbles, after-before)
	}
}

// What virtual time waits for is said after the limit, and what helps.
func TestLimit(t *testing.T) {
	mine, theirs := make(chan bool), make(chan bool)
	t.Cleanup(func() { close(theirs) })
	var mu sync.Mutex
	mu.Lock()
	t.Cleanup(mu.Unlock)
	for name, c := range map[string]struct {
		f    func()
		says string
	}{
		"mutex":   {func() { mu.Lock() }, "waits for a sync.Mutex in vtime_test.TestLimit"},
		"channel": {func() { <-theirs }, "waits for a channel that was made outside in vtime_test.TestLimit"},
		"select": {func() {
			select {
			case <-theirs:
			case <-mine:
			}
		}, "waits for a channel that was made outside in vtime_test.TestLimit"},
	} {
		t.Run(name, func(t *testing.T) {
			err := vtime.RunWithin(t, 50*time.Millisecond, c.f)
			if !errors.Is(err, vtime.ErrLimit) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v", err)
			}
		})
	}
	if err := vtime.RunWithin(t, time.Minute, func() { time.Sleep(time.Hour) }); err != nil {
		t.Error(err)
	}
}

// A mutex that its owner keeps while it sleeps stops virtual time for good. It is named without a limit.
func TestStall(t *testing.T) {
	var mu sync.Mutex
	err := vtime.Run(t, func() {
		go sleepWith(&mu)
		time.Sleep(time.Second)
		mu.Lock()
	})
	if !errors.Is(err, vtime.ErrLimit) {
		t.Fatalf("got %v, want ErrLimit", err)
	}
	for _, part := range []string{"virtual time stands still: ", "a goroutine waits for a sync.Mutex in vtime_test.TestStall.func1 at ", ", while another waits in vtime_test.sleepWith at "} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
}

func sleepWith(mu *sync.Mutex) {
	mu.Lock()
	time.Sleep(time.Hour)
	mu.Unlock()
}

// What goes on is no stall, however long it takes: a mutex that is released, and a goroutine that computes.
func TestNoStall(t *testing.T) {
	t.Run("released outside", func(t *testing.T) {
		var mu sync.Mutex
		mu.Lock()
		time.AfterFunc(10*time.Millisecond, mu.Unlock)
		if err := vtime.Run(t, mu.Lock); err != nil {
			t.Error(err)
		}
	})
	t.Run("computing", func(t *testing.T) {
		var done atomic.Bool
		time.AfterFunc(2500*time.Millisecond, func() { done.Store(true) }) // longer than two looks
		if err := vtime.Run(t, func() {
			var mu sync.Mutex
			mu.Lock()
			go func() {
				for !done.Load() {
				}
				mu.Unlock()
			}()
			mu.Lock()
		}); err != nil {
			t.Error(err)
		}
	})
}
