// Package workerpool runs jobs in worker processes, so that a job that panics, hangs or ends its
// process affects no other job.
//
// [Run] is the parent's side: jobs come in, and one [Result] for each goes out. [Serve] is the
// worker's side. A job is one line of JSON on the worker's standard input, and an answer one line
// on its standard output; what the worker prints on standard error is kept, within bounds, to
// explain the worker's death. Jobs and answers must be encodable as JSON. The package imports only
// internal/proc from this module.
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

// Options configure [Run]. Start must be set; all other fields have a default.
type Options struct {
	// Workers is the largest number of jobs in progress at a time, each in its own process; less
	// than 1 means 1.
	Workers int
	// Busy reports whether a job's answer, an R, or its failure shows that the machine was
	// overloaded. If Busy is set, the number of jobs in progress adapts to what the machine can
	// take: it begins at one per processor and never exceeds Workers. Nil means that no job shows
	// an overload. Called concurrently.
	Busy func(answer any, failure *Failure) bool
	// Start returns the command of a new worker: a program that calls [Serve]. Run sets the
	// command's standard streams and starts it. Called concurrently.
	Start func() *exec.Cmd
	// Limit returns the longest real time for a job, a J, without the start of the process. Nil,
	// and a limit less than 1, mean 20 s. Called concurrently.
	Limit func(job any) time.Duration
	// Grace is the time that a worker has to report where it hangs, or to exit when asked, before
	// it is killed. Less than 1 means 2 s.
	Grace time.Duration
	// Fresh reports whether a job, a J, must be the first and last job of its worker, because its
	// remains in the process would affect other jobs. Nil means that no job needs this. Called
	// concurrently.
	Fresh func(job any) bool
	// Idle keeps the workers between two calls of Run. If Idle is nil, the workers end when Run
	// returns.
	Idle *IdleWorkers
}

// A Result is the result of one job.
type Result[R any] struct {
	// Value is the worker's answer; the zero value if there is a Failure.
	Value R
	// Failure is the reason why there is no answer; nil if there is one.
	Failure *Failure
	// Stderr is what the worker wrote on standard error during the job, if the worker was not kept.
	// Only the beginning and the end are kept, some 56 KiB.
	Stderr string
}

// A Failure is the reason why a worker gave no answer.
type Failure struct {
	// Reason describes the failure in one line.
	Reason string
	// Output is what the worker wrote on standard error during the job: the beginning and the end,
	// some 56 KiB.
	Output string
	// Limit is the time limit that the job exceeded; 0 if the failure has another reason.
	Limit time.Duration
}

// Error returns the reason and the output.
func (f *Failure) Error() string {
	if f.Output == "" {
		return f.Reason
	}
	return f.Reason + "\n\n" + f.Output
}

// limit returns the time limit of a job.
func (o *Options) limit(job any) time.Duration {
	if o.Limit != nil {
		if limit := o.Limit(job); limit > 0 {
			return limit
		}
	}
	return 20 * time.Second
}

// Run gives jobs to workers, one at a time to each, and calls done with each result, one call at a
// time. A worker that dies or exceeds the limit fails its current job and is replaced. A worker
// whose answer has retire set is replaced as well.
//
// Run blocks until every job is done and every worker that it started has ended or is in
// options.Idle. If ctx is done earlier, Run hands out no more jobs, abandons the current ones
// without a call of done, and returns ctx's error. Run ends in the same way, with the respective
// error, if a process cannot be started or done returns an error.
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
	var mu sync.Mutex // serializes the calls of done
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

// supervise does one job after another until there are no more.
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

// work does a job in an idle worker or in a new one.
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
