// Package pool spreads jobs over worker processes, so that a job that
// panics, hangs or ends its process spoils itself and no other.
//
// [Run] is the parent's side: jobs come in, one [Result] for each goes out.
// [Serve] is the worker's. Between them goes one line of JSON per job on the
// worker's standard input and one per answer on its standard output; what
// the worker prints on standard error is kept, within bounds, to explain its
// death. Of this module the package imports only internal/child.
package pool

import (
	"context"
	"errors"
	"iter"
	"os/exec"
	"sync"
	"time"
)

// Options say how [Run] runs. Start must be set; every other zero value has a
// default.
type Options struct {
	// Workers is how many processes run at once; less than 1 means 1.
	Workers int
	// Start returns the command of a new worker, a program that calls
	// [Serve]. Run sets its standard streams and starts it. Called
	// concurrently.
	Start func() *exec.Cmd
	// Limit is how long, in real time, a worker may take for one job; the
	// start of the process is not counted. Less than 1 means 20 s.
	Limit time.Duration
	// Grace is how long a worker has to say where it hangs, or to leave when
	// asked, before it is killed. Less than 1 means 2 s.
	Grace time.Duration
	// Fresh reports whether a job, a J, must be the first that its worker does, and
	// the last: what it leaves in the process would spoil others. Nil means none.
	Fresh func(job any) bool
	// Crew has the workers between one Run and the next. If it is nil, they
	// end with this one.
	Crew *Crew
}

// A Result is what became of one job.
type Result[R any] struct {
	// Value is the worker's answer; zero if there is a Failure.
	Value R
	// Failure says why there is no answer; nil if there is one.
	Failure *Failure
	// Printed is what the worker wrote on standard error during the job, if it
	// retired or failed after it: its beginning and its end, at most 64 KiB.
	Printed string
}

// A Failure is how a worker failed to answer.
type Failure struct {
	// Reason says what happened, in one line.
	Reason string
	// Output is what the worker wrote on standard error during the job: its
	// beginning and its end, at most 64 KiB.
	Output string
	// Limit is how long there was no answer, if that is why; else 0.
	Limit time.Duration
}

// Error returns the reason and the output.
func (f *Failure) Error() string {
	if f.Output == "" {
		return f.Reason
	}
	return f.Reason + "\n\n" + f.Output
}

// Run hands out jobs, one at a time to each worker, and calls done with the
// result of each as it comes, one call at a time. A worker that dies or
// exceeds the limit fails the job in hand; another takes its place. Workers
// that answer with retire set are replaced as well.
//
// Run blocks until every job is done and every worker it started has ended, or
// is in the crew, or until ctx is done: then no more jobs are handed out, those in hand are
// given up without a call of done, and ctx's error is returned. A process
// that can't be started is an error too, as is done returning one, and ends
// the run likewise.
func Run[J, R any](ctx context.Context, options Options, jobs iter.Seq[J], done func(J, Result[R]) error) error {
	if options.Limit < 1 {
		options.Limit = 20 * time.Second
	}
	options.Grace = graceOr(options.Grace)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	queue := make(chan J)
	go func() {
		defer close(queue)
		for job := range jobs {
			select {
			case queue <- job:
			case <-ctx.Done():
				return
			}
		}
	}()
	var mu sync.Mutex // one call of done at a time
	deliver := func(job J, result Result[R]) error {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := done(job, result)
		if err != nil {
			cancel(err)
		}
		return err
	}

	crew := options.Crew
	if crew == nil {
		crew = &Crew{}
		defer crew.Close(options.Grace)
	}
	var supervisors sync.WaitGroup
	for range max(1, options.Workers) {
		supervisors.Go(func() {
			if err := supervise(ctx, options, crew, queue, deliver); err != nil {
				cancel(err)
			}
		})
	}
	supervisors.Wait()
	return context.Cause(ctx)
}

// supervise keeps one worker at work until there are no jobs.
func supervise[J, R any](ctx context.Context, options Options, crew *Crew, queue <-chan J, deliver func(J, Result[R]) error) error {
	w := crew.take()
	defer func() { crew.put(w) }()
	for job := range queue {
		if ctx.Err() != nil {
			return nil
		}
		fresh := options.Fresh != nil && options.Fresh(job)
		if fresh && w != nil && w.seq > 0 {
			w.stop(options.Grace)
			w = nil
		}
		if w == nil {
			var err error
			if w, err = start(options.Start()); err != nil {
				return err
			}
		}
		var value R
		retire, err := w.do(ctx, options, job, &value)
		result := Result[R]{Value: value}
		if err != nil || retire || fresh {
			w.stop(options.Grace)
			result.Printed = w.stderr.String()
			w = nil
		}
		if err != nil && !errors.As(err, &result.Failure) {
			return err
		}
		if err := deliver(job, result); err != nil {
			return err
		}
	}
	return nil
}
