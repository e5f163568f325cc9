package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	Down     // from the upstream to the client
)

func (w Way) directions() []stream.Direction {
	if w == Down {
		return []stream.Direction{stream.Downstream}
	}
	return []stream.Direction{stream.Upstream, stream.Downstream}
}

// Latency delays what is sent from now on by base, give or take jitter; two
// zeros end that. The finest step is a millisecond: toxiproxy counts in those.
//
// Here, as with Bandwidth, a change lets what is on its way arrive at once.
func (l *Link) Latency(way Way, base, jitter time.Duration) error {
	if base < 0 || jitter < 0 {
		return fmt.Errorf("proxy: latency of link %s: %s with a jitter of %s: neither may be negative", l.name, base, jitter)
	}
	return l.replace("latency", way, base > 0 || jitter > 0,
		toxics.LatencyToxic{Latency: milliseconds(base), Jitter: milliseconds(jitter)})
}

// Bandwidth lets each connection carry so many bytes a second; 0 means as many
// as it can.
func (l *Link) Bandwidth(way Way, perSecond float64) error {
	if !(perSecond >= 0) {
		return fmt.Errorf("proxy: bandwidth of link %s: %v bytes a second: it may not be negative", l.name, perSecond)
	}
	return l.replace("bandwidth", way, perSecond > 0, bandwidth{PerSecond: perSecond})
}

// Timeout loses everything in both directions, and closes each connection in
// order that long after Timeout, or after it was opened; 0 ends that, and
// closes the connections that lost something.
func (l *Link) Timeout(after time.Duration) error {
	if after < 0 {
		return fmt.Errorf("proxy: timeout of link %s: %s: it may not be negative", l.name, after)
	}
	return l.replace("timeout", Both, after > 0, timeout{After: after})
}

// replace takes away the toxic of a kind and, if there is to be one, adds it
// anew. Toxiproxy can also update a toxic, but does so while others read it.
func (l *Link) replace(kind string, way Way, anew bool, attributes any) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	typ := kind
	if ours()[kind] != nil {
		typ = prefix + kind
	}
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
			"name": name, "type": typ, "stream": direction.String(), "attributes": attributes,
		})
		if err == nil {
			_, err = l.toxics.AddToxicJson(strings.NewReader(string(spec)))
		}
		if err != nil {
			return fmt.Errorf("proxy: the %s of link %s: %w", kind, l.name, err)
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
		for _, f := range []*front{c.up, c.down} {
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

// milliseconds rounds up: a latency that was asked for is never none.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Restore ends whatever slows or stops the link, with Stop, Latency, Bandwidth
// and Timeout.
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
	for kind, toxic := range ours() {
		toxics.Register(prefix+kind, toxic)
	}
}

// ours returns the toxics that stand in for toxiproxy's. Its bandwidth counts
// in KB/s, more than a lock needs in a minute, and writes to standard error;
// its timeout begins anew with everything that comes, and leaves whoever stands
// before it in the chain blocked forever if more comes once it has closed.
func ours() map[string]toxics.Toxic {
	return map[string]toxics.Toxic{"bandwidth": new(bandwidth), "timeout": new(timeout)}
}

type bandwidth struct {
	PerSecond float64 `json:"per_second"` // bytes, more than 0
}

// GetBufferSize implements toxics.BufferedToxic: what is sent must not wait
// where it sets out.
func (*bandwidth) GetBufferSize() int { return 1024 }

// Pipe implements toxics.Toxic.
func (t *bandwidth) Pipe(stub *toxics.ToxicStub) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var free time.Time // when the line is
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			if chunk == nil {
				stub.Close()
				return
			}
			if free.Before(chunk.Timestamp) {
				free = chunk.Timestamp
			}
			free = free.Add(time.Duration(float64(len(chunk.Data)) / t.PerSecond * float64(time.Second)))
			timer.Reset(time.Until(free))
			select {
			case <-timer.C:
				chunk.Timestamp = free
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
