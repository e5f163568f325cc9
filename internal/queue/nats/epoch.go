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

// Each time that a campaign is asked for it is a round, unless it is on: then who asks goes on
// with the round that there is, of somebody who died or who asks for the same. So what a
// worker answers when a round is over, no later one takes for its own. It is over when one of
// those who ask has all that he wants: the others, if there are any, have it to its end, and
// who asks after that begins another.

// The keys of notes about that.
const (
	round    = "round" // of a campaign: the name of the round that is on
	roundKey = "says"  // of a round: what it is; as long as it is there, the round is on
	asks     = "asks-" // of a round, with a name: somebody asks
)

// gone is for how long nobody says that he asks whom nobody waits for any more.
const gone = 45 * time.Second

// begin finds the round that is on, or begins one.
func (g *job) begin(ctx context.Context, what string) error {
	err := persist(ctx, patience, func(ctx context.Context) error {
		e, err := g.notes.Get(ctx, g.register())
		if err == nil && isToken(string(e.Value())) {
			g.round = string(e.Value())
			return nil
		}
		if err == nil { // no round of ours: anybody who is let in can write a note
			return errors.Join(fmt.Errorf("%w: a note that names no round", errNotYet), g.notes.Purge(ctx, g.register()))
		}
		if !errors.Is(err, jetstream.ErrKeyNotFound) {
			return err
		}
		id := nuid.Next()
		if _, err = g.notes.Create(ctx, g.register(), []byte(id)); errors.Is(err, jetstream.ErrKeyExists) {
			return fmt.Errorf("%w: %w", errNotYet, err) // somebody was faster
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

// isToken reports whether a text is the name of a round: part of a subject, and of nothing else.
func isToken(text string) bool {
	return len(text) > 0 && len(text) <= 64 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// register is the key of the note that has the round.
func (g *job) register() string { return g.program.Class + "." + g.name + "." + round }

// end has who asks from now on begin another round.
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
		return nil // somebody else did, and began another
	}
	return err
}

// ask says that somebody asks for the round.
func (g *job) ask(ctx context.Context) error {
	return errors.Join(g.SetNote(ctx, roundKey, g.what), g.SetNote(ctx, asks+g.id, ""))
}

// keepAsking says so until ctx is done.
func (g *job) keepAsking(ctx context.Context) {
	ticker := time.NewTicker(pulse)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = g.ask(ctx) // or the next time
		case <-ctx.Done():
			return
		}
	}
}

// isOnlyRequester reports whether nobody else asks for the round. Times are the servers'.
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

// forget removes all that the servers have of the round.
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
