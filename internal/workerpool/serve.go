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

// Serve is the life of a worker process: it reads jobs from in, calls handle
// for each, one after the other, and writes the answers to out, which nobody
// else may write to. A true retire asks the parent for a new process, say
// because this one is left with goroutines that don't end.
//
// Serve returns when in ends. Should in end while handle is at work, because
// the parent has no more use for the answer or is dead, or should nobody read the
// answer, Serve ends the process. It takes over some signals: an interrupt from the terminal and its
// end are for the parent to act on and are ignored; SIGTERM ends the process;
// SIGQUIT, where there is one, makes it write the stacks of all goroutines, the
// busy ones first, to os.Stderr and end the process.
//
// Before the process ends in the midst of a job, abandon is called, if it isn't
// nil, and has a few seconds to end what the job has started outside of this
// process. It may be called when handle is not at work, too.
func Serve[J, R any](in io.Reader, out io.Writer, handle func(J) (result R, retire bool), abandon func()) error {
	signal.Ignore(parentsOwn...)
	OutlivePipe()
	var ending sync.Mutex // for ever with the one who ends the process
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
		return fmt.Errorf("pool: serve: %w", err)
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
				broken = fmt.Errorf("pool: serve: read a job: %w", err)
				return
			}
			busy <- struct{}{}
			requests <- q
		}
	}()
	for q := range requests {
		var job J
		if err := json.Unmarshal(q.Job, &job); err != nil {
			return fmt.Errorf("pool: serve: read a job: %w", err)
		}
		result, retire := handle(job)
		text, err := json.Marshal(result)
		if err != nil {
			return fmt.Errorf("pool: serve: write an answer: %w", err)
		}
		<-busy
		if writeLine(out, answer{Seq: q.Seq, Result: text, Retire: retire}) != nil {
			end(1) // the parent is dead, and its job may have been abandoned
		}
	}
	return broken
}

// farewell is how long an abandoned job's remains may take to end.
const farewell = 10 * time.Second

// within returns when f does, or when the time is up.
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

// stacks returns the stacks of all goroutines, those first that may be the
// reason why there is no answer: busy ones, and ones that wait for a mutex.
func stacks() []byte {
	all := make([]byte, 4<<20)
	all = all[:runtime.Stack(all, true)]
	list := bytes.Split(bytes.TrimSpace(all), []byte("\n\n"))
	slices.SortStableFunc(list, func(a, b []byte) int { return rank(a) - rank(b) })
	return append(bytes.Join(list, []byte("\n\n")), '\n')
}

// room is how stacks name this package.
const room = "github.com/lockfault/lockfault/internal/workerpool."

// rank returns a smaller number for what is more likely to be the reason.
func rank(stack []byte) int {
	line, _, _ := bytes.Cut(stack, []byte("\n"))
	header := string(line)
	switch {
	case strings.Contains(header, "(durable)"):
		return 1
	case strings.Contains(header, "synctest bubble"), strings.Contains(header, "sync.") && strings.Contains(header, "Lock"):
		return 0
	case bytes.Contains(stack, []byte("created by os/signal.")), bytes.Contains(stack, []byte("created by "+room)):
		return 3 // the worker's own
	case strings.Contains(header, "[runn"): // running, runnable
		return 0
	default:
		return 2
	}
}
