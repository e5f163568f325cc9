package worlds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/harness/client"
	"github.com/lockfault/lockfault/internal/harness/lockproc"
	"github.com/lockfault/lockfault/internal/stdio"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Finding is the result of one step of [Env.Rehearse].
type Finding struct {
	// Step identifies the step. Text is the result and, for a problem, the remedy.
	Step, Text string
	Grade      Grade
}

// Grade is the severity of a [Finding].
type Grade string

// Values of a Grade.
const (
	Good  Grade = "ok"    // as required
	Note  Grade = "note"  // permitted, but the author of the lock should know
	Wrong Grade = "wrong" // results with such a program are not evidence about its lock
)

// rehearsed is a script that only declares the clients of a check.
const rehearsed = "clients A B\nA acquire\nA release\nexpect none\n"

// Durations of a check: the lease, and the time limit of an acquire of a taken lock.
const (
	rehearsalTTL  = 5 * time.Second
	rehearsalWait = 300 * time.Millisecond
)

// Rehearse checks a strategy's program with the simple form of the protocol, through the same links
// and servers as in a cell. Rehearse passes each finding to tell. The time limit of an answer is
// patience. The result reports whether no finding is Wrong; the error is the reason why the check
// could not run.
func (v *Env) Rehearse(ctx context.Context, strategy strategies.Strategy, patience time.Duration, tell func(Finding)) (good bool, err error) {
	script, err := scenarios.Parse("rehearsal", []byte(rehearsed))
	if err != nil {
		return false, err
	}
	r := &programCheck{ctx: ctx, strategy: strategy, patience: patience, emit: tell, good: true}
	r.world, err = v.open(harness.Cell{Strategy: strategy, Script: script, Place: v, TTL: rehearsalTTL, Seed: 1}, func(e checker.Event) { r.events = append(r.events, e) })
	if err != nil {
		return false, err
	}
	r.world.Begin()
	r.play()
	if err := ctx.Err(); err != nil {
		return false, errors.Join(err, r.world.Close())
	}
	return r.good, errors.Join(r.world.Err(), r.world.Close())
}

// programCheck is the state of a check.
type programCheck struct {
	ctx      context.Context
	strategy strategies.Strategy
	patience time.Duration
	emit     func(Finding)
	world    *world
	events   []checker.Event
	good     bool
}

// actor is one process of the program.
type actor struct {
	name    string
	process *real.Process
	talk    *lockproc.Talk
	fenced  bool  // the program reported fencing tokens
	token   int64 // of its last acquire
}

// errStop ends the check; the problem was already reported.
var errStop = errors.New("stop")

func (r *programCheck) say(g Grade, step, format string, args ...any) {
	r.good = r.good && g != Wrong
	r.emit(Finding{Step: step, Text: fmt.Sprintf(format, args...), Grade: g})
}

// play runs the steps of the check until a step fails.
func (r *programCheck) play() {
	var cast []*actor
	for _, name := range []string{"A", "B"} {
		a, err := r.start(name)
		if err != nil {
			return
		}
		cast = append(cast, a)
	}
	r.say(Good, "init", "it starts, and answers")
	a, b := cast[0], cast[1]
	for _, step := range []func(a, b *actor) error{r.warmUp, r.takes, r.refuses, r.extends, r.releases, r.handsOn, r.losesIt} {
		if step(a, b) != nil {
			return
		}
	}
	r.inGroup(cast)
	for _, of := range cast {
		r.ends(of)
	}
	if text := a.process.StderrTail(); text != "" {
		r.say(Note, "stderr", "it writes there, which is fine: the last lines stand with a cell's error%s", stdio.OutputTail(a.name, text))
	}
}

// start starts a process and sends init.
func (r *programCheck) start(name string) (*actor, error) {
	process, err := r.world.Spawn(name)
	if err != nil {
		r.say(Wrong, "init", "it doesn't start: %v", err)
		return nil, errStop
	}
	a := &actor{name: name, process: process, talk: lockproc.NewTalk(process.In, process.Out)}
	nodes, err := nodesAt(process.Home)
	if err != nil {
		r.say(Wrong, "init", "%v", err)
		return nil, errStop
	}
	setup := client.Setup{Client: name, TTL: rehearsalTTL, ReadTimeout: rehearsalTTL / 10}
	answer, err := r.ask(a, lockproc.Request{Do: lockproc.Init, Key: r.world.key, Start: lockproc.StartOf(setup, name+"-rehearsal", "1", nodes)})
	if err != nil {
		return nil, err
	}
	if answer.Answer != lockproc.OK {
		r.say(Wrong, "init", "it answered %s: %s", answer.Answer, answerReason(answer))
		return nil, errStop
	}
	a.fenced = answer.Fenced
	return a, nil
}

// ask sends a request to a process while the world continues, and reports a missing answer.
func (r *programCheck) ask(a *actor, request lockproc.Request) (answer lockproc.Answer, err error) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	answered := make(chan struct{})
	go func() {
		defer r.world.Notify()
		defer close(answered)
		answer, err = a.talk.Ask(ctx, request)
	}()
	go func() {
		select {
		case <-a.talk.Broken():
		case <-a.process.Ended():
		case <-ctx.Done():
		}
		r.world.Notify()
	}()
	limit := r.patience + time.Duration(request.Within)*time.Millisecond
	r.world.Run(limit, func() bool {
		return isClosed(answered) || isClosed(a.talk.Broken()) || isClosed(a.process.Ended()) || ctx.Err() != nil
	})
	// A duplicate answer would follow at once.
	r.world.Run(20*time.Millisecond, func() bool { return isClosed(a.talk.Broken()) })
	done := isClosed(answered)
	cancel()
	<-answered
	step := string(request.Do)
	printed := stdio.OutputTail("it", a.process.StderrTail())
	switch {
	case r.ctx.Err() != nil:
		return answer, errStop
	case isClosed(a.talk.Broken()):
		r.say(Wrong, step, "the program %v%s", a.talk.Wrong(), printed)
	case !done && isClosed(a.process.Ended()):
		r.say(Wrong, step, "the program ended by itself, without an answer (%v)%s", ended(a.process), printed)
	case !done && request.Within == rehearsalWait.Milliseconds():
		r.say(Wrong, step, "no answer came within %v for a lock that is taken: wait for it no longer than within_ms says, which was %d, and answer failed%s", limit, request.Within, printed)
	case !done:
		r.say(Wrong, step, "no answer came within %v: answer each line at once when it is done, and flush standard output%s", limit, printed)
	default:
		return answer, nil
	}
	return answer, errStop
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// ended describes how a process ended.
func ended(p *real.Process) string {
	if err := p.Status(); err != nil {
		return err.Error()
	}
	return "exit status 0"
}

// answerReason returns an answer's reason.
func answerReason(a lockproc.Answer) string {
	if a.Error == "" {
		return "it gives no reason"
	}
	return a.Error
}

// expects sends a request and reports an answer that differs from want.
func (r *programCheck) expects(a *actor, do lockproc.Do, key string, within time.Duration, want, otherwise string) error {
	answer, err := r.ask(a, lockproc.Request{Do: do, Key: key, Within: within.Milliseconds()})
	if err != nil {
		return err
	}
	if answer.Answer != want {
		r.say(Wrong, string(do), "%s's answer is %s, and should be %s: %s (%s)", a.name, answer.Answer, want, otherwise, answerReason(answer))
		return errStop
	}
	if do == lockproc.Acquire || do == lockproc.Try {
		a.token = answer.Token
	}
	return nil
}

// warmUp runs the warm-up of clients, which precedes a script.
func (r *programCheck) warmUp(a, b *actor) error {
	for _, of := range []*actor{a, b} {
		for _, step := range []struct {
			do  lockproc.Do
			why string
		}{
			{lockproc.Acquire, "this is another key than the lock's, and nobody has it; each request names the key"},
			{lockproc.Release, "it has acquired this key a moment ago; whoever says ok must have it, and failed says that nothing was given up"},
		} {
			begun := time.Now()
			if err := r.expects(of, step.do, r.world.key+":warm-up", rehearsalTTL, lockproc.OK, step.why); err != nil {
				return err
			}
			if took := time.Since(begun); took > rehearsalTTL/2 {
				r.say(Wrong, string(step.do), "%s's answer took %v, with nobody in its way: the lease is %v, and is over by such an answer, or nearly", of.name, took.Round(time.Millisecond), rehearsalTTL)
				return errStop
			}
		}
	}
	r.say(Good, "login", "its connections log in")
	return nil
}

// last returns the last state of the lock's key on each node, by the node's name.
func (r *programCheck) last() map[string]checker.Event {
	found := map[string]checker.Event{}
	for _, e := range r.events {
		if e.Kind == checker.State {
			found[e.Node] = e
		}
	}
	return found
}

// takes checks that an acquire sets the key.
func (r *programCheck) takes(a, _ *actor) error {
	if err := r.expects(a, lockproc.Acquire, r.world.key, rehearsalTTL, lockproc.OK, "nobody has the lock"); err != nil {
		return err
	}
	var on []string
	lease := time.Duration(0)
	endless := false
	for node, e := range r.last() {
		if e.Value != "" && e.Client == a.name {
			on = append(on, node)
			endless = endless || e.Expires == 0
			lease = max(lease, e.Expires-e.Time)
		}
	}
	slices.Sort(on)
	switch {
	case len(on) == 0:
		r.say(Wrong, "acquire", "it says ok, and no node has the key %q: the lock's key must have the name that the request gives", r.world.key)
		return errStop
	case endless:
		r.say(Note, "acquire", "the key %q is A's on %s, and has no time to live: a holder that crashes keeps it", r.world.key, strings.Join(on, ", "))
	case lease > 2*rehearsalTTL || lease < rehearsalTTL/2:
		r.say(Note, "acquire", "the key %q is A's on %s, for %v, where ttl_ms says %v", r.world.key, strings.Join(on, ", "), lease.Round(time.Millisecond), rehearsalTTL)
	default:
		r.say(Good, "acquire", "the key %q is A's on %s, for %v", r.world.key, strings.Join(on, ", "), lease.Round(time.Millisecond))
	}
	if a.fenced && a.token <= 0 {
		r.say(Wrong, "token", `init was answered with "fenced":true, and the acquire has no token that is a whole number above 0`)
		return errStop
	}
	if !a.fenced && a.token != 0 {
		r.say(Note, "token", `the acquire has one, and nobody looks at it: init has to be answered with "fenced":true`)
	}
	return nil
}

// refuses checks that another client cannot acquire a taken lock.
func (r *programCheck) refuses(_, b *actor) error {
	const why = "A has the lock"
	if err := r.expects(b, lockproc.Try, r.world.key, rehearsalWait, lockproc.Failed, why); err != nil {
		return err
	}
	begun := time.Now()
	if err := r.expects(b, lockproc.Acquire, r.world.key, rehearsalWait, lockproc.Failed, fmt.Sprintf("%s, and within_ms says to wait no longer than %d", why, rehearsalWait.Milliseconds())); err != nil {
		return err
	}
	if took := time.Since(begun); took > 2*rehearsalWait+time.Second {
		r.say(Wrong, "acquire", "of a lock that is taken it comes back after %v, where within_ms says %v", took.Round(time.Millisecond), rehearsalWait)
		return nil
	}
	r.say(Good, "taken", "a second client is refused, by try at once and by acquire when within_ms is over")
	return nil
}

// extends checks whether the lease can be extended.
func (r *programCheck) extends(a, _ *actor) error {
	answer, err := r.ask(a, lockproc.Request{Do: lockproc.Extend, Key: r.world.key, Within: rehearsalTTL.Milliseconds()})
	if err != nil {
		return err
	}
	tagged := slices.Contains(r.strategy.Tags, strategies.TagExtending)
	switch {
	case answer.Answer == lockproc.OK && !tagged:
		r.say(Note, "extend", "it can: play it with --subject-tags %s, so that scripts ask for it", strategies.TagExtending)
	case answer.Answer == lockproc.OK:
		r.say(Good, "extend", "it can")
	case tagged:
		r.say(Wrong, "extend", "it has the tag %s, and answers %s to who holds the lock: %s", strategies.TagExtending, answer.Answer, answerReason(answer))
	case answer.Answer == lockproc.Failed:
		r.say(Note, "extend", "it answers failed: as it should if it can't")
	default:
		r.say(Wrong, "extend", "it answers error: %s; if it can't extend, the answer is failed", answerReason(answer))
	}
	return nil
}

// releases checks that a release deletes the key.
func (r *programCheck) releases(a, _ *actor) error {
	if err := r.expects(a, lockproc.Release, r.world.key, rehearsalTTL, lockproc.OK, "A holds the lock"); err != nil {
		return err
	}
	for node, e := range r.last() {
		if e.Value != "" {
			r.say(Wrong, "release", "it says ok, and the key %q is still on %s", r.world.key, node)
			return errStop
		}
	}
	r.say(Good, "release", "the key is gone")
	return nil
}

// handsOn checks that the other client can acquire a released lock, and whether a client can
// release a lock that it does not hold.
func (r *programCheck) handsOn(a, b *actor) error {
	if err := r.expects(b, lockproc.Try, r.world.key, rehearsalTTL, lockproc.OK, "A has released the lock"); err != nil {
		return err
	}
	r.say(Good, "free", "the second client gets it when it was released")
	switch {
	case !a.fenced || !b.fenced:
	case b.token <= a.token:
		r.say(Wrong, "token", "A's was %d, and B's after it is %d: one that comes later must be greater", a.token, b.token)
	default:
		r.say(Good, "token", "they grow: A's was %d, B's after it is %d", a.token, b.token)
	}
	answer, err := r.ask(a, lockproc.Request{Do: lockproc.Release, Key: r.world.key, Within: rehearsalTTL.Milliseconds()})
	if err != nil {
		return err
	}
	switch {
	case answer.Answer == lockproc.OK:
		r.say(Note, "release", "A releases what B holds, and is told ok: if the lock can tell, the answer is failed")
	case answer.Answer == lockproc.Error:
		r.say(Note, "release", "A releases what B holds, and the answer is error (%s): if the lock can tell, it is failed", answerReason(answer))
	default:
		r.say(Good, "not held", "who doesn't hold it can't release it")
	}
	answer, err = r.ask(b, lockproc.Request{Do: lockproc.Release, Key: r.world.key, Within: rehearsalTTL.Milliseconds()})
	if err == nil && answer.Answer == lockproc.Error {
		r.say(Wrong, "release", "B's answer is error, and it was done before: %s", answerReason(answer))
	}
	return err
}

// losesIt checks how a holder that has lost the lock affects the next holder. The key is deleted,
// as if its lease had ended.
func (r *programCheck) losesIt(a, b *actor) error {
	if err := r.expects(a, lockproc.Acquire, r.world.key, rehearsalTTL, lockproc.OK, "nobody has the lock"); err != nil {
		return err
	}
	for node := range r.last() {
		if err := r.world.Apply(faults.Flush{Node: node}); err != nil {
			r.say(Wrong, "lost", "%v", err)
			return errStop
		}
	}
	if err := r.expects(b, lockproc.Try, r.world.key, rehearsalTTL, lockproc.OK, "A's key is gone from all nodes"); err != nil {
		return err
	}
	answer, err := r.ask(a, lockproc.Request{Do: lockproc.Release, Key: r.world.key, Within: rehearsalTTL.Milliseconds()})
	if err != nil {
		return err
	}
	kept := false
	for _, e := range r.last() {
		kept = kept || e.Client == b.name && e.Value != ""
	}
	switch {
	case !kept:
		r.say(Note, "lost", "A has lost the lock, B has it, and A's release takes it from B: the scenario late-release shows what comes of that")
	case answer.Answer == lockproc.OK:
		r.say(Note, "lost", "A has lost the lock, and its release is answered ok: if the lock can tell, the answer is failed")
	default:
		r.say(Good, "lost", "who has lost the lock doesn't release it for the next")
	}
	_, err = r.ask(b, lockproc.Request{Do: lockproc.Release, Key: r.world.key, Within: rehearsalTTL.Milliseconds()})
	return err
}

// inGroup checks that signals to the process group reach all processes.
func (r *programCheck) inGroup(cast []*actor) {
	for _, of := range cast {
		of.process.MeasureLateness()
		if err := of.process.Stray(); err != nil {
			r.say(Wrong, "processes", "%v", err)
			return
		}
	}
	r.say(Good, "processes", "pauses and crashes reach all of them")
}

// ends checks that a process ends on request.
func (r *programCheck) ends(a *actor) {
	a.talk.Shutdown()
	go func() {
		<-a.process.Ended()
		r.world.Notify()
	}()
	r.world.Run(min(r.patience, 5*time.Second), func() bool { return isClosed(a.process.Ended()) })
	switch {
	case !isClosed(a.process.Ended()):
		r.say(Wrong, "shutdown", "%s does not end when it is asked to: end at shutdown, and at the end of standard input", a.name)
	case a.process.Status() != nil:
		r.say(Note, "shutdown", "%s ends, with %v", a.name, a.process.Status())
	case a.name == "B":
		r.say(Good, "shutdown", "it ends")
	}
}
