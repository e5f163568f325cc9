package workerpool

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Serve runs a worker process: it reads jobs from in, calls handle for each in turn, and writes the
// answers to out. Nothing else may write to out. If handle returns retire, the parent replaces the
// process, for example because it is left with goroutines that do not end.
//
// Serve returns when in ends. If in ends while handle is at work, because the parent does not need
// the answer any more or is dead, or if writing an answer fails, Serve ends the process. Serve
// takes over some signals: an interrupt from the terminal and a hangup are ignored, because the
// parent acts on them; SIGTERM ends the process; SIGQUIT, where it exists, writes the stacks of all
// goroutines to os.Stderr, busy ones first, and ends the process.
//
// Before Serve ends the process during a job, it calls abandon, if not nil, which has a few seconds
// to clean up what the job started outside of this process. Serve may also call abandon when handle
// is not at work.
func Serve[J, R any](in io.Reader, out io.Writer, handle func(J) (result R, retire bool), abandon func()) error {
	signal.Ignore(parentsOwn...)
	OutlivePipe()
	var ending sync.Mutex // never unlocked by the goroutine that ends the process
	end := func(status int) {
		ending.Lock()
		if abandon != nil {
			within(farewell, abandon)
		}
		endGroup()
		os.Exit(status)
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		<-terminated
		end(1)
	}()
	watchQuit(func() {
		os.Stderr.Write(stacks())
		end(2)
	})
	if err := writeLine(out, answer{Ready: true}); err != nil {
		return fmt.Errorf("workerpool: serve: %w", err)
	}

	requests := make(chan request)
	busy := make(chan struct{}, 1) // full while handle is at work
	var broken error               // valid once requests is closed
	go func() {
		defer close(requests)
		r := bufio.NewReader(in)
		for {
			line, err := r.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				select {
				case busy <- struct{}{}:
					return
				default:
					end(0)
				}
			}
			var q request
			if err == nil {
				err = json.Unmarshal(line, &q)
			}
			if err != nil {
				broken = fmt.Errorf("workerpool: serve: read a job: %w", err)
				return
			}
			busy <- struct{}{}
			requests <- q
		}
	}()
	for q := range requests {
		var job J
		if err := json.Unmarshal(q.Job, &job); err != nil {
			return fmt.Errorf("workerpool: serve: read a job: %w", err)
		}
		result, retire := handle(job)
		text, err := json.Marshal(result)
		if err != nil {
			return fmt.Errorf("workerpool: serve: write an answer: %w", err)
		}
		<-busy
		if writeLine(out, answer{Seq: q.Seq, Result: text, Retire: retire}) != nil {
			end(1) // the parent is dead, and its job may have been abandoned
		}
	}
	return broken
}

// farewell is the time limit for abandon.
const farewell = 10 * time.Second

// within returns when f does, or after d.
func within(d time.Duration, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}

// stacks returns the stacks of all goroutines. Those that may be the reason for a missing answer
// come first: busy ones, and ones that wait for a mutex.
func stacks() []byte {
	all := make([]byte, 4<<20)
	all = all[:runtime.Stack(all, true)]
	list := bytes.Split(bytes.TrimSpace(all), []byte("\n\n"))
	slices.SortStableFunc(list, func(a, b []byte) int { return rank(a) - rank(b) })
	return append(bytes.Join(list, []byte("\n\n")), '\n')
}

// room is the prefix of this package's functions in stacks.
const room = "github.com/lockfault/lockfault/internal/workerpool."

// rank returns a smaller number for a goroutine that is more likely to be the reason.
func rank(stack []byte) int {
	line, _, _ := bytes.Cut(stack, []byte("\n"))
	header := string(line)
	switch {
	case strings.Contains(header, "(durable)"):
		return 1
	case strings.Contains(header, "synctest bubble"), strings.Contains(header, "sync.") && strings.Contains(header, "Lock"):
		return 0
	case bytes.Contains(stack, []byte("created by os/signal.")), bytes.Contains(stack, []byte("created by "+room)):
		return 3 // goroutines of the worker itself
	case strings.Contains(header, "[runn"): // running, runnable
		return 0
	default:
		return 2
	}
}
