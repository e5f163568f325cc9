package proxy

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Tap sees each message on a link's connections. Opened comes first and
// Closed last, once, when both directions have ended. In between, each message
// of a direction is first Sent and then, when the toxics have let all of its
// bytes through, Arrived; both come in the order of its bytes.
//
// Each of these calls is made with the tap's lock held, by whichever goroutine
// carries the bytes: what came in one go is told under one lock, and goes on when it is
// released. A tap that wants nothing to move doesn't let itself be locked; one whose Lock does nothing
// is told of the two directions, and of different connections, at the same time.
type Tap interface {
	sync.Locker
	Opened(c *Conn)
	// Sent shows a message that sets out. It can't be stopped here.
	Sent(m *Message)
	// Between is called when requests that arrive at once have set out, and
	// none of them has arrived. It may unlock the tap and lock it again, for
	// somebody who wants something to happen before.
	Between()
	// Arrived hands over a message, which waits, and everything behind it in
	// its direction, until somebody calls Forward, Drop, Skip or Reset on it: here or
	// later, from any goroutine.
	Arrived(m *Message)
	Closed(c *Conn)
}

// A Message is one request, reply, or push on its way. Its fields are the
// receiver's to keep.
type Message struct {
	Conn *Conn
	// Request says that it goes to the server.
	Request bool
	// Words are the request's, at least one unless it is Quiet; nil in the other direction.
	Words []string
	// Parts are those of a [Request] or [Reply].
	Parts []Part
	// Number is a request's among those of its connection, from 1. Answers is of an answer the number of the request that it
	// answers; 0 if it answers none, or if the protocol doesn't tell.
	Number, Answers int
	// Overtakes is that of a [Reply].
	Overtakes bool
	// Silent, Opens, Reads and Within are those of a [Request], Quiet and GivesUp those of both.
	Silent, Opens, Reads, Quiet bool
	Within                      []KeyRange
	GivesUp                     []int
	// Bytes is the message as it came.
	Bytes []byte
	// More says that the sender had written more behind it by then.
	More bool
	// SetOut is when it was read from its sender.
	SetOut time.Time
	// Arrived is when it arrived, once it has; the tap's lock may have had to be waited for since.
	Arrived time.Time
	// Lost says, once it has arrived, that an earlier message of this
	// direction was dropped, and so this one is lost too. Nothing waits for it.
	Lost bool

	door    *egress
	end     int64 // where it ends in its direction, counted in bytes
	shown   bool  // it has arrived, and the tap was told
	verdict atomic.Int32
}

const (
	undecided = iota
	awaited   // and its door isn't looking any more
	forwarded
	dropped
	skipped
	broken
)

// Forward lets the message pass. Only the first call of Forward, Drop, Skip
// or Reset counts; on a connection that has ended none does anything.
func (m *Message) Forward() { m.decide(forwarded) }

// Drop loses the message and, because a stream can't leave out its middle,
// everything that follows in its direction. Neither end is told; when the
// sender closes the connection, the receiver learns of that.
func (m *Message) Drop() { m.decide(dropped) }

// Skip loses the message alone; what follows in its direction goes on. That is
// how a server treats what it publishes to a subscriber that is too slow.
func (m *Message) Skip() { m.decide(skipped) }

// Reset loses the message and resets its connection, once what was forwarded
// before is with the receiver.
func (m *Message) Reset() { m.decide(broken) }

func (m *Message) decide(verdict int32) {
	if !m.verdict.CompareAndSwap(undecided, verdict) && m.verdict.CompareAndSwap(awaited, verdict) {
		m.door.note()
	}
}
