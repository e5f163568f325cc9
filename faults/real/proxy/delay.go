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

// Way selects one or both directions of a link.
type Way int

// The ways of a link.
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

// A DelayFunc returns when size bytes that were written at the given time arrive. Each direction of
// a connection has its own DelayFunc, which is called in the order of the bytes.
type DelayFunc func(written time.Time, size int) (arrives time.Time)

// Slow delays everything sent from now on until the time that a DelayFunc returns, but never before
// the bytes sent earlier. A nil paces ends the delay. Each change lets bytes in transit arrive at
// once. The link calls paces at any time, from any goroutine, to make the DelayFunc of one
// direction of one connection.
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

// Timeout discards everything in both directions. It closes each connection in order, after the
// given time since the call of Timeout or since the connection was opened. 0 ends the timeout and
// closes the connections that lost bytes.
func (l *Link) Timeout(after time.Duration) error {
	if after < 0 {
		return fmt.Errorf("proxy: timeout of link %s: %s: it may not be negative", l.name, after)
	}
	return l.replace("timeout", Both, after > 0, timeout{After: after}, nil)
}

// replace removes the toxics of a kind and, if anew is set, adds new ones and calls set for each.
// Toxiproxy can also update a toxic, but it does so while other goroutines read that toxic.
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

// divert leads the connections of a link, including the existing ones, through toxiproxy, because
// the link now has a toxic with that name in that direction.
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

// hasToxics reports whether a direction has toxics.
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

// Restore ends the effects of Stop, Slow and Timeout.
func (l *Link) Restore() {
	l.Start()
	l.clear()
}

// clear removes all toxics; bytes that wait in them continue at once.
func (l *Link) clear() {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.toxics.ResetToxics(l.logging())
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.active)
}

// logging returns a context that carries the logger: toxiproxy takes the logger from there when it
// removes a toxic.
func (l *Link) logging() context.Context {
	return l.proxies.server.Logger.WithContext(context.Background())
}

// prefix begins this package's names in toxiproxy's registry, which the whole process shares.
const prefix = "lockfault "

// registerToxics puts this package's toxics into toxiproxy's registry, the only way to add a custom
// toxic. Calling registerToxics again changes nothing.
//
// The toxics replace toxiproxy's own. Toxiproxy's latency and bandwidth draw random values
// themselves, in whole milliseconds and kilobytes per second, but a world computes when a message
// arrives. Toxiproxy's timeout restarts with every chunk, and blocks the previous toxic in the chain
// forever if more bytes come after it has closed.
func registerToxics() {
	toxics.Register(prefix+"slow", new(slow))
	toxics.Register(prefix+"timeout", new(timeout))
}

// slow is a toxic that lets chunks pass at the time that a DelayFunc returns. The zero value waits
// until its field paces is set, because toxiproxy makes toxics from text and inserts them into
// connections at once.
type slow struct {
	mu    sync.Mutex
	ready chan struct{} // closed when paces is set
	paces func() DelayFunc
}

// known returns a channel that is closed when paces has been set.
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

// slowed is the state of a slow toxic for one connection. The state survives an interruption.
type slowed struct{ pace DelayFunc }

// NewState implements toxics.StatefulToxic.
func (*slow) NewState() any { return new(slowed) }

// GetBufferSize implements toxics.BufferedToxic. The buffer keeps the sender from waiting.
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

// NewState implements toxics.StatefulToxic. The state survives an interruption.
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

// Cleanup implements toxics.CleanupToxic. It must not block: swallow ends only when the connection
// ends.
func (t *timeout) Cleanup(stub *toxics.ToxicStub) {
	stub.Close()
	go swallow(stub)
}

// swallow discards the input of a closed toxic until the connection ends.
func swallow(stub *toxics.ToxicStub) {
	for range stub.Input {
	}
}
