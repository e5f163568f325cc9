package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

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

// ours returns the toxics that stand in for toxiproxy's, with the same
// attributes. Toxiproxy's bandwidth writes to standard error. Those that close
// a connection by themselves leave whoever stands before them in the chain
// blocked forever if more comes; ours go on to swallow it.
func ours() map[string]toxics.Toxic {
	return map[string]toxics.Toxic{
		"bandwidth":  new(bandwidth),
		"limit_data": new(limitData),
		"reset_peer": new(resetPeer),
		"timeout":    new(timeout),
	}
}

type bandwidth struct{ toxics.BandwidthToxic }

// slice is how much time's worth of bytes bandwidth lets pass at once.
const slice = 100 * time.Millisecond

// Pipe implements toxics.Toxic. The rate is in bytes per millisecond; at none
// nothing passes until the toxic is removed.
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
			for len(chunk.Data) > 0 {
				n := len(chunk.Data)
				var ready <-chan time.Time
				if t.Rate > 0 {
					n = int(min(int64(n), t.Rate*slice.Milliseconds()))
					if now := time.Now(); free.Before(now) {
						free = now
					}
					free = free.Add(time.Duration(n) * time.Millisecond / time.Duration(t.Rate))
					timer.Reset(time.Until(free))
					ready = timer.C
				}
				select {
				case <-ready:
					stub.Output <- &stream.StreamChunk{Data: chunk.Data[:n], Timestamp: chunk.Timestamp}
					chunk.Data = chunk.Data[n:]
				case <-stub.Interrupt:
					stub.Output <- chunk
					return
				}
			}
		}
	}
}

type limitData struct{ toxics.LimitDataToxic }

func (t *limitData) Pipe(stub *toxics.ToxicStub) {
	t.LimitDataToxic.Pipe(stub)
	swallow(stub)
}

// resetPeer differs from toxiproxy's in two more points. Toxiproxy sets
// SO_LINGER where it sees its own, and panics where that isn't a bare TCP
// connection; and its own can't be interrupted while it waits.
type resetPeer struct{ toxics.ResetToxic }

func (t *resetPeer) Pipe(stub *toxics.ToxicStub) {
	select {
	case <-stub.Interrupt:
		return
	case first := <-stub.Input:
		timer := time.NewTimer(time.Duration(t.Timeout) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-stub.Interrupt: // it will wait anew
			if first != nil {
				stub.Output <- first
			}
			return
		}
	}
	stub.Close()
	swallow(stub)
}

type timeout struct{ toxics.TimeoutToxic }

func (t *timeout) Pipe(stub *toxics.ToxicStub) {
	t.TimeoutToxic.Pipe(stub)
	swallow(stub)
}

// Cleanup implements toxics.CleanupToxic. It must not block: what it swallows
// ends only when the connection does.
func (t *timeout) Cleanup(stub *toxics.ToxicStub) {
	t.TimeoutToxic.Cleanup(stub)
	go swallow(stub)
}

// swallow takes what comes to a toxic that has closed, until the connection
// ends.
func swallow(stub *toxics.ToxicStub) {
	if !stub.Closed() {
		return
	}
	for range stub.Input {
	}
}

// Latency delays what is forwarded from now on by base, give or take jitter,
// in each direction; two zeros take it away. What it has delayed so far then
// goes on at once. The finest step is a millisecond: toxiproxy counts in those.
func (l *Link) Latency(base, jitter time.Duration) error {
	if base < 0 || jitter < 0 {
		return fmt.Errorf("proxy: latency of link %s: %s with a jitter of %s: neither may be negative", l.name, base, jitter)
	}
	if err := l.delay("upstream", base, jitter); err != nil {
		return err
	}
	return l.delay("downstream", base, jitter)
}

// Lag is Latency for what comes from the upstream only.
func (l *Link) Lag(by time.Duration) error {
	if by < 0 {
		return fmt.Errorf("proxy: lag of link %s: %s: it may not be negative", l.name, by)
	}
	return l.delay("downstream", by, 0)
}

func (l *Link) delay(direction string, base, jitter time.Duration) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	name := prefix + "latency " + direction
	// Toxiproxy can also update a toxic, but does so while others read it.
	if err := l.remove(name); err != nil && !errors.Is(err, toxiproxy.ErrToxicNotFound) {
		return fmt.Errorf("proxy: latency of link %s: %w", l.name, err)
	}
	if base == 0 && jitter == 0 {
		return nil
	}
	spec, err := json.Marshal(map[string]any{
		"name": name, "type": "latency", "stream": direction,
		"attributes": toxics.LatencyToxic{Latency: milliseconds(base), Jitter: milliseconds(jitter)},
	})
	if err == nil {
		err = l.add(spec)
	}
	if err != nil {
		return fmt.Errorf("proxy: latency of link %s: %w", l.name, err)
	}
	return nil
}

// milliseconds rounds up: a latency that was asked for is never none.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Toxic adds any toxic of toxiproxy's in the JSON of its HTTP interface, such
// as
//
//	{"type": "bandwidth", "stream": "upstream", "attributes": {"rate": 8}}
//
// to the connections that there are and to new ones. Times are in
// milliseconds, rates in KB/s. The stream is "downstream", towards the client,
// unless it says otherwise; the name is the type and stream ("bandwidth_upstream").
func (l *Link) Toxic(spec string) error {
	var fields map[string]any
	if err := json.Unmarshal([]byte(spec), &fields); err != nil {
		return fmt.Errorf("proxy: toxic on link %s: the JSON %q: %w", l.name, spec, err)
	}
	kind, _ := fields["type"].(string)
	direction, _ := fields["stream"].(string)
	if direction == "" {
		direction = "downstream"
	}
	if name, _ := fields["name"].(string); name == "" {
		fields["name"] = kind + "_" + direction
	}
	if ours()[kind] != nil {
		fields["type"] = prefix + kind
	}
	changed, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("proxy: toxic on link %s: %w", l.name, err)
	}
	l.changing.Lock()
	defer l.changing.Unlock()
	if kind == "reset_peer" {
		l.abrupt.Store(true)
	}
	if err := l.add(changed); err != nil {
		l.judge()
		return fmt.Errorf("proxy: toxic %s on link %s: %w", strings.TrimSpace(spec), l.name, err)
	}
	return nil
}

// RemoveToxic removes what Toxic has added, by name. Removing a timeout closes
// the connections that it was on.
func (l *Link) RemoveToxic(name string) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	defer l.judge()
	if err := l.remove(name); err != nil {
		return fmt.Errorf("proxy: remove toxic %q from link %s: %w", name, l.name, err)
	}
	return nil
}

// judge finds out whether there is still a toxic that resets. Callers hold
// l.changing.
func (l *Link) judge() {
	abrupt := false
	for _, wrapper := range l.toxics.GetToxicArray() {
		if wrapper, ok := wrapper.(*toxics.ToxicWrapper); ok {
			_, resets := wrapper.Toxic.(*resetPeer)
			abrupt = abrupt || resets
		}
	}
	l.abrupt.Store(abrupt)
}

func (l *Link) add(spec []byte) error {
	_, err := l.toxics.AddToxicJson(strings.NewReader(string(spec)))
	return err
}

func (l *Link) remove(name string) error {
	return l.toxics.RemoveToxic(l.logging(), name)
}

// clear removes all toxics; what waits in them goes on at once.
func (l *Link) clear() {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.toxics.ResetToxics(l.logging())
}

// logging returns a context that carries the logger, which is where toxiproxy
// looks for it when it removes a toxic.
func (l *Link) logging() context.Context {
	return l.proxies.server.Logger.WithContext(context.Background())
}
