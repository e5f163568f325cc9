package sim

import (
	"hash/fnv"
	"time"
)

// link is the way between a client and a node.
type link struct{ client, node string }

type latency struct{ base, jitter time.Duration }

// links knows how long messages take and which links are cut.
type links struct {
	seed         uint64
	base, jitter time.Duration // of a link that latency doesn't name
	latency      map[link]latency
	cut          map[link]bool
}

// travel returns how long a message takes that sets out now. It draws from a
// hash of what the message is and when it was sent, not from a stream: two
// goroutines that send at one instant must not be able to swap their draws.
func (l *links) travel(on link, what string, sent time.Duration) time.Duration {
	time, ok := l.latency[on]
	if !ok {
		time = latency{l.base, l.jitter}
	}
	return time.base + l.draw(time.jitter, on.client, on.node, what, sent)
}

// draw returns a duration in [-jitter, +jitter].
func (l *links) draw(jitter time.Duration, client, node, what string, sent time.Duration) time.Duration {
	if jitter <= 0 {
		return 0
	}
	var number [8]byte
	put := func(v uint64) []byte {
		for i := range number {
			number[i] = byte(v >> (8 * i))
		}
		return number[:]
	}
	h := fnv.New64a()
	h.Write(put(l.seed))
	h.Write([]byte(client + "\x00" + node + "\x00" + what))
	h.Write(put(uint64(sent)))
	// FNV leaves the high bits of short inputs weak: mix once more, as
	// SplitMix64 ends (Steele, Lea, Flood 2014).
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return time.Duration(x%uint64(2*jitter+1)) - jitter
}
