// Package pool spreads jobs over worker processes, so that a job that
// panics, hangs or ends its process spoils itself and no other.
//
// [Run] is the parent's side: jobs come in, one [Result] for each goes out.
// [Serve] is the worker's. Between them goes one line of JSON per job on the
// worker's standard input and one per answer on its standard output; what
// the worker prints on standard error is kept, within bounds, to explain its
// death. Of this module the package imports only internal/proc.
package workerpool

import (
	"context"
	"errors"
	"iter"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// Options say how [Run] runs. Start must be set; every other zero value has a
// default.
type Options struct {
	// Workers is how many jobs are in hand at once, each in a process of its own; less
	// than 1 means 1.
	Workers int
	// Busy reports whether by its answer, an R, or its failure a job shows that the
	// machine had too much to do. Then fewer than Workers are in hand at once, as many
	// as the machine is found to take: at first one for each processor. Nil means that
	// none shows that. Called concurrently.
	Busy func(answer any, failure *Failure) bool
	// Start returns the command of a new worker, a program that calls
	// [Serve]. Run sets its standard streams and starts it. Called
	// concurrently.
	Start func() *exec.Cmd
	// Limit returns how long, in real time, a worker may take for a job, a J; the
	// start of the process is not counted. Nil, and less than 1, mean 20 s. Called concurrently.
	Limit func(job any) time.Duration
	// Grace is how long a worker has to say where it hangs, or to leave when
	// asked, before it is killed. Less than 1 means 2 s.
	Grace time.Duration
	// Fresh reports whether a job, a J, must be the first that its worker does, and
	// the last: what it leaves in the process would spoil others. Nil means none.
	Fresh func(job any) bool
	// Idle has the workers between one Run and the next. If it is nil, they
	// end with this one.
	Idle *IdleWorkers
}

// A Result is what became of one job.
type Result[R any] struct {
	// Value is the worker's answer; zero if there is a Failure.
	Value R
	// Failure says why there is no answer; nil if there is one.
	Failure *Failure
	// Stderr is what the worker wrote on standard error during the job, if it
	// retired or failed after it: its beginning and its end, at most 64 KiB.
	Stderr string
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

// limit returns how long a worker may take for a job.
func (o *Options) limit(job any) time.Duration {
	if o.Limit != nil {
		if limit := o.Limit(job); limit > 0 {
			return limit
		}
	}
	return 20 * time.Second
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

	crew := options.Idle
	if crew == nil {
		crew = &IdleWorkers{}
		defer crew.Close(options.Grace)
	}
	most := max(1, options.Workers)
	start := most
	if options.Busy != nil {
		start = runtime.NumCPU()
	}
	pace := newPace(start, most)
	var supervisors sync.WaitGroup
	for range most {
		supervisors.Go(func() {
			if err := supervise(ctx, options, crew, pace, queue, deliver); err != nil {
				cancel(err)
			}
		})
	}
	supervisors.Wait()
	return context.Cause(ctx)
}

// supervise sees to one job after the other until there are none.
func supervise[J, R any](ctx context.Context, options Options, crew *IdleWorkers, pace *limiter, queue <-chan J, deliver func(J, Result[R]) error) error {
	for {
		turn, err := pace.begin(ctx)
		job, more := <-queue
		if err != nil || !more {
			pace.end()
			return nil
		}
		result, err := work[J, R](ctx, options, crew, job)
		pace.end()
		if err != nil {
			return err
		}
		if options.Busy != nil {
			pace.learn(turn, options.Busy(result.Value, result.Failure))
		}
		if err := deliver(job, result); err != nil {
			return err
		}
	}
}

// work has a worker of the crew do a job, or a new one.
func work[J, R any](ctx context.Context, options Options, crew *IdleWorkers, job J) (result Result[R], err error) {
	fresh := options.Fresh != nil && options.Fresh(job)
	w := crew.take()
	if fresh && w != nil && w.seq > 0 {
		w.stop(options.Grace)
		w = nil
	}
	if w == nil {
		if w, err = start(options.Start()); err != nil {
			return result, err
		}
	}
	retire, err := w.do(ctx, options, job, &result.Value)
	if err == nil && !retire && !fresh {
		crew.put(w)
		return result, nil
	}
	w.stop(options.Grace)
	result.Stderr = w.stderr.String()
	if errors.As(err, &result.Failure) {
		err = nil
	}
	return result, err
}
