package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// Way says which directions of a link something is about.
type Way int

// The ways that are of use.
const (
	Both Way = iota
	Up       // from the client to the upstream
	Down     // from the upstream to the client
)

func (w Way) directions() []stream.Direction {
	switch w {
	case Up:
		return []stream.Direction{stream.Upstream}
	case Down:
		return []stream.Direction{stream.Downstream}
	}
	return []stream.Direction{stream.Upstream, stream.Downstream}
}

// A DelayFunc says when what a process wrote then arrives, so many bytes of it. Each
// direction of a connection has one of its own, which is asked in the order of
// its bytes.
type DelayFunc func(written time.Time, size int) (arrives time.Time)

// Slow has what is sent from now on arrive when a DelayFunc says that, or when what was
// sent before it has arrived if that is later; nil ends that. A change lets what is
// on its way arrive at once. What makes the paces may be called at any time, by any
// goroutine.
func (l *Link) Slow(way Way, paces func(Way) DelayFunc) error {
	set := func(t toxics.Toxic, direction stream.Direction) {
		one := Up
		if direction == stream.Downstream {
			one = Down
		}
		t.(*slow).are(func() DelayFunc { return paces(one) })
	}
	return l.replace("slow", way, paces != nil, struct{}{}, set)
}

// Timeout loses everything in both directions, and closes each connection in
// order that long after Timeout, or after it was opened; 0 ends that, and
// closes the connections that lost something.
func (l *Link) Timeout(after time.Duration) error {
	if after < 0 {
		return fmt.Errorf("proxy: timeout of link %s: %s: it may not be negative", l.name, after)
	}
	return l.replace("timeout", Both, after > 0, timeout{After: after}, nil)
}

// replace takes away the toxic of a kind and, if there is to be one, adds it
// anew and has it set. Toxiproxy can also update a toxic, but does so while others
// read it.
func (l *Link) replace(kind string, way Way, anew bool, attributes any, set func(toxics.Toxic, stream.Direction)) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	for _, direction := range way.directions() {
		name := kind + " " + direction.String()
		err := l.toxics.RemoveToxic(l.logging(), name)
		if err != nil && !errors.Is(err, toxiproxy.ErrToxicNotFound) {
			return fmt.Errorf("proxy: the %s of link %s: %w", kind, l.name, err)
		}
		if !anew {
			l.mu.Lock()
			delete(l.active, name)
			l.mu.Unlock()
			continue
		}
		spec, err := json.Marshal(map[string]any{
			"name": name, "type": prefix + kind, "stream": direction.String(), "attributes": attributes,
		})
		var added *toxics.ToxicWrapper
		if err == nil {
			added, err = l.toxics.AddToxicJson(strings.NewReader(string(spec)))
		}
		if err != nil {
			return fmt.Errorf("proxy: the %s of link %s: %w", kind, l.name, err)
		}
		if set != nil {
			set(added.Toxic, direction)
		}
		l.divert(name, direction)
	}
	return nil
}

// divert leads the connections of a link through toxiproxy, also those that
// there are, now that it has a toxic of that name in that direction.
func (l *Link) divert(name string, way stream.Direction) {
	l.mu.Lock()
	l.active[name] = way
	conns := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, c := range conns {
		for _, f := range []*ingress{c.up, c.down} {
			if f.way == way {
				f.divert()
			}
		}
	}
}

// hasToxics reports whether there are any in a direction.
func (l *Link) hasToxics(way stream.Direction) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, direction := range l.active {
		if direction == way {
			return true
		}
	}
	return false
}

// Restore ends whatever slows or stops the link, with Stop, Slow and Timeout.
func (l *Link) Restore() {
	l.Start()
	l.clear()
}

// clear removes all toxics; what waits in them goes on at once.
func (l *Link) clear() {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.toxics.ResetToxics(l.logging())
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.active)
}

// logging returns a context that carries the logger, which is where toxiproxy
// looks for it when it removes a toxic.
func (l *Link) logging() context.Context {
	return l.proxies.server.Logger.WithContext(context.Background())
}

// prefix is in front of this package's names in toxiproxy's registry, which is
// one for the whole process.
const prefix = "lockfault "

// registerToxics puts this package's toxics into toxiproxy's registry: there
// is no other way to a toxic of one's own. Doing so again changes nothing.
func registerToxics() {
	for kind, toxic := range builtinToxics() {
		toxics.Register(prefix+kind, toxic)
	}
}

// builtinToxics returns the toxics that stand in for toxiproxy's. Its latency and bandwidth
// draw by themselves, in whole milliseconds and kilobytes a second; a world knows
// for itself when a message arrives. Its timeout begins anew with everything that comes, and leaves
// whoever stands before it in the chain blocked forever if more comes once it has
// closed.
func builtinToxics() map[string]toxics.Toxic {
	return map[string]toxics.Toxic{"slow": new(slow), "timeout": new(timeout)}
}

// slow lets arrive what passes when a DelayFunc says. The zero value waits to be told
// what makes the paces: toxiproxy makes toxics from text, and puts them into the
// way of connections at once.
type slow struct {
	mu    sync.Mutex
	ready chan struct{} // closed when paces is set
	paces func() DelayFunc
}

// known returns what is closed when it is told what makes the paces.
func (t *slow) known() chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ready == nil {
		t.ready = make(chan struct{})
	}
	return t.ready
}

func (t *slow) are(paces func() DelayFunc) {
	known := t.known()
	t.paces = paces
	close(known)
}

// slowed is the state of a slow for one connection: it outlives an interruption.
type slowed struct{ pace DelayFunc }

// NewState implements toxics.StatefulToxic.
func (*slow) NewState() any { return new(slowed) }

// GetBufferSize implements toxics.BufferedToxic: what is sent must not wait
// where it sets out.
func (*slow) GetBufferSize() int { return 1024 }

// Pipe implements toxics.Toxic.
func (t *slow) Pipe(stub *toxics.ToxicStub) {
	select {
	case <-t.known():
	case <-stub.Interrupt:
		return
	}
	state := stub.State.(*slowed)
	if state.pace == nil {
		state.pace = t.paces()
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			if chunk == nil {
				stub.Close()
				return
			}
			due := state.pace(chunk.Timestamp, len(chunk.Data))
			timer.Reset(time.Until(due))
			select {
			case <-timer.C:
				chunk.Timestamp = due
				stub.Output <- chunk
			case <-stub.Interrupt:
				stub.Output <- chunk
				return
			}
		}
	}
}

type timeout struct {
	After time.Duration `json:"after"`
}

// NewState implements toxics.StatefulToxic: the state outlives an interruption.
func (*timeout) NewState() any { return time.Now() }

// Pipe implements toxics.Toxic.
func (t *timeout) Pipe(stub *toxics.ToxicStub) {
	began, _ := stub.State.(time.Time)
	timer := time.NewTimer(time.Until(began.Add(t.After)))
	defer timer.Stop()
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			if chunk == nil {
				stub.Close()
				return
			}
		case <-timer.C:
			stub.Close()
			swallow(stub)
			return
		}
	}
}

// Cleanup implements toxics.CleanupToxic. It must not block: what it swallows
// ends only when the connection does.
func (t *timeout) Cleanup(stub *toxics.ToxicStub) {
	stub.Close()
	go swallow(stub)
}

// swallow takes what comes to a toxic that has closed, until the connection
// ends.
func swallow(stub *toxics.ToxicStub) {
	for range stub.Input {
	}
}
