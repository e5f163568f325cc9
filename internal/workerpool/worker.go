package workerpool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/lockfault/lockfault/internal/proc"
)

// startLimit is the time that a process has to become a ready worker, on a very slow and busy
// machine.
const startLimit = time.Minute

// late is the extra time for an answer that is in transit when the time limit is reached.
const late = 500 * time.Millisecond

// A worker is the parent's side of one worker process. Not safe for concurrent use.
type worker struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stderr  headTail
	lines   chan []byte   // lines of the worker's standard output
	left    chan struct{} // closed when the output is not read any more
	leaving sync.Once
	exited  chan struct{} // closed when the process and its output have ended
	status  error         // of the process; valid after exited
	ready   bool
	seq     int
}

var errLeft = errors.New("nobody listens")

// start starts a worker process. It does not wait until the worker is ready.
func start(cmd *exec.Cmd) (*worker, error) {
	w := &worker{
		cmd:    cmd,
		lines:  make(chan []byte),
		left:   make(chan struct{}),
		exited: make(chan struct{}),
	}
	cmd.Stderr = &w.stderr
	cmd.Stdout = &lineWriter{take: func(line []byte) error {
		select {
		case w.lines <- line:
			return nil
		case <-w.left:
			return errLeft
		}
	}, endless: func() { cmd.Process.Kill() }}
	// Children of the worker may outlive it and keep its output open.
	cmd.WaitDelay = time.Second
	wakeOrphan(cmd)
	lead(cmd)
	var err error
	if w.stdin, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("workerpool: start a worker: %w", err)
	}
	go func() {
		// Processes that a job started and did not end are ended with the worker.
		if proc.AwaitEnd(cmd.Process.Pid) {
			proc.EndGroup(cmd.Process.Pid)
		}
		w.status = cmd.Wait()
		close(w.exited)
	}()
	return w, nil
}

// do does one job in the worker and stores its answer in value. The error is a *[Failure], ctx's,
// or that of encoding the job; after any error the worker must be stopped.
func (w *worker) do(ctx context.Context, options Options, job, value any) (retire bool, err error) {
	if !w.ready {
		if err := w.begin(ctx, options.Grace); err != nil {
			return false, err
		}
	}
	w.stderr.Reset()
	w.seq++
	text, err := json.Marshal(job)
	if err != nil {
		return false, fmt.Errorf("workerpool: encode a job: %w", err)
	}
	// A worker that does not read must not block its parent. The goroutine ends when the worker
	// does; its error shows as a missing answer.
	go func(seq int) { _ = writeLine(w.stdin, request{Seq: seq, Job: text}) }(w.seq)

	line, err := w.receive(ctx, options.limit(job), options.Grace)
	if err != nil {
		return false, err
	}
	var a answer
	if json.Unmarshal(line, &a) != nil || a.Seq != w.seq || a.Ready {
		return false, w.fail("the worker process wrote on its standard output what is no answer: %q", clip(line))
	}
	if err := json.Unmarshal(a.Result, value); err != nil {
		return false, w.fail("the worker process gave an answer that can't be read: %v", err)
	}
	return a.Retire, nil
}

// begin waits until the worker is ready. Lines that packages print during their initialization come
// first and are kept as standard error.
func (w *worker) begin(ctx context.Context, grace time.Duration) error {
	for !w.ready {
		line, err := w.receive(ctx, startLimit, grace)
		if err != nil {
			return err
		}
		var a answer
		if w.ready = json.Unmarshal(line, &a) == nil && a.Ready; !w.ready {
			_, _ = w.stderr.Write(append(line, '\n'))
		}
	}
	return nil
}

// receive returns the worker's next line. The limit is for time in which the process was not waiting for a
// processor: see [patience].
func (w *worker) receive(ctx context.Context, limit, grace time.Duration) ([]byte, error) {
	left := patience(limit)
	tick := min(limit, time.Second)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var delay proc.SchedDelay
	for left.lasts() {
		select {
		case line := <-w.lines:
			return line, nil
		case <-w.exited:
			return nil, w.died()
		case <-ctx.Done():
			w.stop(grace)
			return nil, context.Cause(ctx)
		case <-ticker.C:
			waited, _ := delay.Measure(w.cmd.Process.Pid)
			left.spend(tick, waited)
		}
	}
	select { // the answer may be in transit
	case line := <-w.lines:
		return line, nil
	case <-time.After(min(limit, late)):
	}
	w.leave()
	interrogate(w.cmd.Process)
	if !w.wait(grace) {
		w.kill()
	}
	failure := w.fail("no answer within %v: the worker process was ended", limit)
	failure.Limit = limit
	return nil, failure
}

// A patience is what is left of the time that a job may take. Whether a job is in time must not depend on
// what else the machine does, so time in which a thread of the worker or of its children waited for a processor
// does not count.
type patience time.Duration

// slowdown is how many times as long as its limit a job may take on a busy machine.
const slowdown = 10

// spend takes away a tick, during which these threads waited for as long as given, taken together.
func (p *patience) spend(tick, waited time.Duration) {
	*p -= patience(max(tick/slowdown, tick-waited))
}

func (p patience) lasts() bool { return p > 0 }

// leave stops reading the worker's output, so that the process does not block on it.
func (w *worker) leave() { w.leaving.Do(func() { close(w.left) }) }

// stop ends the worker, by closing its input and after grace by killing it, and returns when the
// worker has ended.
func (w *worker) stop(grace time.Duration) {
	w.leave()
	w.stdin.Close()
	wake(w.cmd.Process)
	if !w.wait(grace) {
		w.kill()
	}
}

// kill kills the process and returns when it has ended.
func (w *worker) kill() {
	w.cmd.Process.Kill()
	w.leave()
	<-w.exited
}

// wait reports whether the process ends within d.
func (w *worker) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.exited:
		return true
	case <-timer.C:
		return false
	}
}

// died returns the failure for a process that ended without being asked.
func (w *worker) died() *Failure {
	status := "exit status 0"
	if w.status != nil {
		status = w.status.Error()
	}
	for _, line := range bytes.Split([]byte(w.stderr.String()), []byte("\n")) {
		if bytes.HasPrefix(line, []byte("panic: ")) || bytes.HasPrefix(line, []byte("fatal error: ")) {
			return w.fail("%s: the worker process ended (%s)", clip(line), status)
		}
	}
	return w.fail("the worker process ended (%s)", status)
}

func (w *worker) fail(format string, args ...any) *Failure {
	return &Failure{Reason: fmt.Sprintf(format, args...), Output: w.stderr.String()}
}

// clip shortens a line for a message.
func clip(line []byte) string {
	const limit = 200
	if len(line) <= limit {
		return string(line)
	}
	return string(line[:limit]) + "…"
}
