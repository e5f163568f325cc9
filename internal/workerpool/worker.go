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

// startLimit is how long a process may take until it is a ready worker, on a
// machine as slow and as busy as can be.
const startLimit = time.Minute

// late is for how long an answer may be on its way when the time is up.
const late = 500 * time.Millisecond

// A worker is one worker process, seen from its parent. One goroutine uses it.
type worker struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stderr  headTail
	lines   chan []byte   // what it writes on standard output
	left    chan struct{} // closed when nobody listens any more
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
		return nil, fmt.Errorf("pool: start a worker: %w", err)
	}
	go func() {
		// What a job has started and not ended goes with the worker.
		if proc.AwaitEnd(cmd.Process.Pid) {
			proc.EndGroup(cmd.Process.Pid)
		}
		w.status = cmd.Wait()
		close(w.exited)
	}()
	return w, nil
}

// do lets the worker do one job and stores its answer in value. The error is
// a *[Failure], or ctx's; either way the worker is of no more use.
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
		return false, fmt.Errorf("pool: encode a job: %w", err)
	}
	// A worker that does not read must not stop its parent; the goroutine
	// ends when the worker does, and its error shows as a missing answer.
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

// begin waits until the worker is ready. What packages print when they are
// initialised comes before.
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

// receive waits for the worker's next line.
func (w *worker) receive(ctx context.Context, limit, grace time.Duration) ([]byte, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case line := <-w.lines:
		return line, nil
	case <-w.exited:
		return nil, w.died()
	case <-ctx.Done():
		w.stop(grace)
		return nil, context.Cause(ctx)
	case <-timer.C:
		select { // a machine that stood still hears of the time before it hears of an answer
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
}

// leave stops listening, so that the process does not wait with its output.
func (w *worker) leave() { w.leaving.Do(func() { close(w.left) }) }

// stop ends the worker, gently if it can be, and returns when it has ended.
func (w *worker) stop(grace time.Duration) {
	w.leave()
	w.stdin.Close()
	wake(w.cmd.Process)
	if !w.wait(grace) {
		w.kill()
	}
}

// kill ends the process and returns when it has ended.
func (w *worker) kill() {
	w.cmd.Process.Kill()
	w.leave()
	<-w.exited
}

// wait reports whether the process has ended by itself within d.
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

// died returns the failure of a process that has ended unasked.
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

// clip keeps a line short enough for a message.
func clip(line []byte) string {
	const limit = 200
	if len(line) <= limit {
		return string(line)
	}
	return string(line[:limit]) + "…"
}
