package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// A campaign runs in rounds. The first requester begins a round; a later requester of the same
// campaign joins the current round, which may be that of a requester that died or that asks for the
// same. A late answer of a worker to an ended round is therefore never taken for an answer of a
// later round. A round ends when one of its requesters has all its answers: the others keep the
// round until they are done, and any later requester begins a new round.

// The keys of notes about rounds.
const (
	round    = "round" // of a campaign: the name of the current round
	roundKey = "says"  // of a round: its description; the round is current as long as the note exists
	asks     = "asks-" // of a round, followed by an id: the round has this requester
)

// gone is the time without a sign of life after which a requester is considered dead.
const gone = 45 * time.Second

// begin finds the current round of the campaign, or begins one.
func (g *job) begin(ctx context.Context, what string) error {
	err := persist(ctx, patience, func(ctx context.Context) error {
		e, err := g.notes.Get(ctx, g.register())
		if err == nil && isToken(string(e.Value())) {
			g.round = string(e.Value())
			return nil
		}
		if err == nil { // any client with credentials can write a note, so the text may name no round
			return errors.Join(fmt.Errorf("%w: a note that names no round", errNotYet), g.notes.Purge(ctx, g.register()))
		}
		if !errors.Is(err, jetstream.ErrKeyNotFound) {
			return err
		}
		id := nuid.Next()
		if _, err = g.notes.Create(ctx, g.register(), []byte(id)); errors.Is(err, jetstream.ErrKeyExists) {
			return fmt.Errorf("%w: %w", errNotYet, err) // another requester was faster
		}
		g.round = id
		return err
	})
	if err != nil {
		return err
	}
	g.what = g.program.Version + ": " + what
	return g.ask(ctx)
}

// isToken reports whether a text is a valid name of a round: letters and digits, so that it is a
// single token of a subject.
func isToken(text string) bool {
	return len(text) > 0 && len(text) <= 64 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// register returns the key of the note that names the current round.
func (g *job) register() string { return g.program.Class + "." + g.name + "." + round }

// end ends the round: later requesters begin a new one.
func (g *job) end(ctx context.Context) error {
	e, err := g.notes.Get(ctx, g.register())
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound) || err == nil && string(e.Value()) != g.round:
		return nil
	case err != nil:
		return err
	}
	err = g.notes.Delete(ctx, g.register(), jetstream.LastRevision(e.Revision()))
	if coded(err, jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant) {
		return nil // another requester ended the round, and a new one has begun
	}
	return err
}

// ask records that this requester uses the round.
func (g *job) ask(ctx context.Context) error {
	return errors.Join(g.SetNote(ctx, roundKey, g.what), g.SetNote(ctx, asks+g.id, ""))
}

// keepAsking repeats ask until ctx is done. An error is repaired by the next call.
func (g *job) keepAsking(ctx context.Context) {
	eachPulse(ctx, func() { _ = g.ask(ctx) })
}

// isOnlyRequester reports whether no other live requester uses the round. It compares times of the
// servers only.
func (g *job) isOnlyRequester(ctx context.Context) (bool, error) {
	now, err := g.notes.PutString(ctx, g.key(asks+g.id), "")
	if err != nil {
		return false, err
	}
	watcher, err := g.notes.Watch(ctx, g.key(">"), jetstream.IgnoreDeletes())
	if err != nil {
		return false, err
	}
	defer watcher.Stop()
	var ours time.Time
	var others []time.Time
	for {
		select {
		case e, more := <-watcher.Updates():
			switch {
			case !more:
				return false, errNotYet
			case e == nil && ours.IsZero():
				return false, errNotYet
			case e == nil:
				for _, at := range others {
					if ours.Sub(at) < gone {
						return false, nil
					}
				}
				return true, nil
			case e.Key() == g.key(asks+g.id) && e.Revision() >= now:
				ours = e.Created()
			case e.Key() != g.key(asks+g.id) && strings.HasPrefix(e.Key(), g.key(asks)):
				others = append(others, e.Created())
			}
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// forget removes everything that the servers store of the round.
func (g *job) forget(ctx context.Context) error {
	var all []error
	all = append(all, g.work.Purge(ctx, jetstream.WithPurgeSubject(strings.Join([]string{workSubject, g.program.Class, "*", g.round, "*"}, "."))),
		g.results.Purge(ctx, jetstream.WithPurgeSubject(g.result("*"))))
	keys, err := g.notes.ListKeysFiltered(ctx, g.key(">"))
	if err == nil {
		for key := range keys.Keys() {
			all = append(all, g.notes.Purge(ctx, key))
		}
	}
	return errors.Join(append(all, err, g.removeObjects(ctx))...)
}
