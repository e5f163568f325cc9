package sim

import (
	"math"
	"time"
)

// link is the way between a client and a node.
type link struct{ client, node string }

// anyone is the client of links that stand for all clients that are yet to come.
const anyone = ""

type latency struct{ base, jitter time.Duration }

// links knows how long messages take, how many pass, and which links are cut.
type links struct {
	seed         uint64
	base, jitter time.Duration // of a link that latency doesn't name
	latency      map[link]latency
	bandwidth    map[link]float64       // in bytes per second; 0 is unlimited
	cut          map[link]time.Duration // how long a connection stays open; 0 means for ever, and that there are no new ones
}

// join lets a new client have what was said about all.
func (l *links) join(client, node string) {
	if set, ok := l.latency[link{anyone, node}]; ok {
		l.latency[link{client, node}] = set
	}
	if rate, ok := l.bandwidth[link{anyone, node}]; ok {
		l.bandwidth[link{client, node}] = rate
	}
	if after, ok := l.cut[link{anyone, node}]; ok {
		l.cut[link{client, node}] = after
	}
}

func (l *links) isCut(on link) bool {
	_, cut := l.cut[on]
	return cut
}

// line is one direction of a connection with a limited bandwidth. The zero value
// is free.
type line struct{ busy time.Time }

// carry lets something of that size onto the line as soon as it is free, and
// returns when it has left it.
func (l *line) carry(from time.Time, size int, rate float64) time.Time {
	if rate == 0 {
		return from
	}
	if l.busy.After(from) {
		from = l.busy
	}
	takes := math.Round(float64(size) / rate * float64(time.Second))
	l.busy = from.Add(time.Duration(min(takes, float64(century))))
	return l.busy
}

// travel returns how long a message takes that sets out now. It draws from a
// hash of what the message is and when it was sent, not from a stream: two
// goroutines that send at one instant must not be able to swap their draws.
func (l *links) travel(on link, what, command string, sent time.Duration) time.Duration {
	time, ok := l.latency[on]
	if !ok {
		time = latency{l.base, l.jitter}
	}
	return max(0, time.base+l.draw(time.jitter, on, what, command, sent))
}

// draw returns a duration in [-jitter, +jitter].
func (l *links) draw(jitter time.Duration, on link, what, command string, sent time.Duration) time.Duration {
	if jitter <= 0 {
		return 0
	}
	// FNV-1a, by hand because hash/fnv allocates and this runs for every message.
	x := uint64(14695981039346656037)
	add := func(c byte) { x = (x ^ uint64(c)) * 1099511628211 }
	number := func(v uint64) {
		for i := range 8 {
			add(byte(v >> (8 * i)))
		}
	}
	text := func(s string) {
		for i := range len(s) {
			add(s[i])
		}
	}
	number(l.seed)
	text(on.client)
	add(0)
	text(on.node)
	add(0)
	text(what)
	text(command)
	number(uint64(sent))
	// FNV leaves the high bits of short inputs weak: mix once more, as
	// SplitMix64 ends (Steele, Lea, Flood 2014).
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return time.Duration(x%uint64(2*jitter+1)) - jitter
}
