package checkcmd

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockfault/lockfault/checker/linear"
)

const (
	// judges is the largest number of checkers that run at the same time. judges does not depend on
	// the machine, so the result does not either.
	judges = 16
	// batch is the number of events passed to a checker at a time.
	batch = 512
	// dealt is the number of keys whose checker is stored in a table. The first keys are assigned
	// in turn, so that few keys get one checker each; a later key is assigned by its hash.
	dealt = 4096
)

// judgement is the combined result of a whole history.
type judgement struct {
	linear.Result
	keys      int
	estimated bool // keys is an estimate: more keys than distinct counts exactly
}

// judge checks a history, distributing its keys over parallel checkers if apart is true. This is
// sound because linearizability is local: each lock can be checked alone. Memory grows with the
// open operations. judge returns the error that ended the events, or that of ctx, with the
// judgement of the events before it.
func judge(ctx context.Context, events iter.Seq2[linear.Event, error], spec linear.Spec, apart bool, o linear.Options) (judgement, error) {
	b := parallelChecker{spec: spec, options: o, apart: apart, keys: map[string]*judgeAtWork{}}
	b.free.New = func() any { return new([]linear.Event) }
	var failure error
	seen := 0
	for e, err := range events {
		if err != nil {
			failure = err
			break
		}
		if seen++; seen%batch == 0 && ctx.Err() != nil {
			failure = ctx.Err()
			break
		}
		b.take(&e)
	}
	return b.close(), failure
}

// parallelChecker runs the checkers of one history.
type parallelChecker struct {
	spec    linear.Spec
	options linear.Options
	apart   bool // keys can be checked separately
	list    []*judgeAtWork
	end     time.Duration // time of the last event read
	keys    map[string]*judgeAtWork
	known   distinct
	lastKey string
	last    *judgeAtWork // of lastKey
	free    sync.Pool    // of *[]linear.Event
}

type judgeAtWork struct {
	pending *[]linear.Event
	in      chan *[]linear.Event
	out     chan linear.Result
}

func (b *parallelChecker) take(e *linear.Event) {
	b.end = e.Time
	if e.Phase == linear.Crash { // a crash of a client concerns every lock it may hold
		for _, j := range b.list {
			b.give(j, e)
		}
		return
	}
	if b.last == nil || b.lastKey != e.Key {
		b.lastKey, b.last = e.Key, b.judgeOf(e.Key)
	}
	b.give(b.last, e)
}

func (b *parallelChecker) judgeOf(key string) *judgeAtWork {
	if j := b.keys[key]; j != nil {
		return j
	}
	h := hash(key)
	if b.apart {
		b.known.add(h)
	} else {
		for one := range strings.FieldsSeq(key) { // an operation of a Multi names several keys
			b.known.add(hash(one))
		}
	}
	if len(b.keys) >= dealt && b.apart {
		return b.list[h%judges]
	}
	at := 0
	if b.apart {
		at = len(b.keys) % judges
	}
	if at == len(b.list) {
		b.list = append(b.list, b.start())
	}
	if len(b.keys) < dealt {
		b.keys[key] = b.list[at]
	}
	return b.list[at]
}

func (b *parallelChecker) start() *judgeAtWork {
	j := &judgeAtWork{in: make(chan *[]linear.Event, 4), out: make(chan linear.Result, 1)}
	j.pending = b.empty()
	checker := linear.New(b.spec, b.options)
	go func() {
		for events := range j.in {
			for i := range *events {
				if checker.Add((*events)[i]) != nil {
					break // Result reports the error, and later calls of Add fail too
				}
			}
			b.free.Put(events)
		}
		checker.Until(b.end) // advance the clock past the last event of these locks
		j.out <- checker.Result()
	}()
	return j
}

func (b *parallelChecker) empty() *[]linear.Event {
	events := b.free.Get().(*[]linear.Event)
	if cap(*events) == 0 {
		*events = make([]linear.Event, 0, batch)
	}
	*events = (*events)[:0]
	return events
}

func (b *parallelChecker) give(j *judgeAtWork, e *linear.Event) {
	*j.pending = append(*j.pending, *e)
	if len(*j.pending) == batch {
		j.in <- j.pending
		j.pending = b.empty()
	}
}

// close stops the checkers and joins their results.
func (b *parallelChecker) close() judgement {
	all := judgement{Result: linear.Result{Verdict: linear.Valid}, keys: b.known.count(), estimated: b.known.estimated()}
	for _, j := range b.list {
		j.in <- j.pending
		close(j.in)
	}
	for _, j := range b.list {
		r := <-j.out
		all.Ops += r.Ops
		all.Unknown += r.Unknown
		all.Violations = append(all.Violations, r.Violations...)
		all.Omitted += r.Omitted
		all.Unsettled = all.Unsettled || r.Unsettled
		all.Open = append(all.Open, r.Open...)
		switch {
		case r.Verdict == linear.Invalid:
			all.Verdict = linear.Invalid
		case r.Verdict != linear.Valid && all.Verdict == linear.Valid:
			all.Verdict, all.Reason = r.Verdict, r.Reason
		}
	}
	if all.Verdict == linear.Invalid {
		all.Reason = ""
	}
	slices.SortStableFunc(all.Violations, func(x, y linear.Violation) int { return provenAt(x) - provenAt(y) })
	if !b.options.All && len(all.Violations) > 1 {
		first := max(0, slices.IndexFunc(all.Violations, func(v linear.Violation) bool { return v.Certain }))
		all.Violations = all.Violations[first : first+1]
	}
	if more := len(all.Violations) - linear.MaxViolations; more > 0 {
		all.Omitted += more
		if first := slices.IndexFunc(all.Violations, func(v linear.Violation) bool { return v.Certain }); first >= linear.MaxViolations {
			all.Violations[linear.MaxViolations-1] = all.Violations[first] // keep the certain violation that decides the verdict
		}
		all.Violations = all.Violations[:linear.MaxViolations]
	}
	return all
}

// provenAt returns the line of the last event of a violation.
func provenAt(v linear.Violation) int {
	last := 0
	for _, e := range v.Events {
		last = max(last, e.Line)
	}
	return last
}
