package proxy

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Tap sees each message on a link's connections. For each connection, Opened is the first call.
// Closed is the last call, once, after both directions have ended. In between, each message of a
// direction is first Sent and then, when the toxics have let all of its bytes pass, Arrived; both
// calls follow the order of the bytes.
//
// The goroutine that carries the bytes makes each call with the tap's lock held. Messages that came
// in one read are shown under one hold of the lock, and go on after its release. A tap stops all
// traffic by keeping its lock. A tap whose Lock does nothing is called for both directions, and for
// different connections, at the same time.
type Tap interface {
	sync.Locker
	Opened(c *Conn)
	// Sent shows a message that its sender has written. Sent can't stop the message.
	Sent(m *Message)
	// Between is called after a batch of requests was Sent and before any of them has Arrived.
	// Between may unlock the tap and lock it again, to let another goroutine act before the
	// requests arrive.
	Between()
	// Arrived hands over a message. The message, and everything after it in its direction, waits
	// until Forward, Drop, Skip or Reset is called on it: during Arrived or later, from any
	// goroutine.
	Arrived(m *Message)
	Closed(c *Conn)
}

// A Message is one request, reply, or push in transit. The receiver owns its fields.
type Message struct {
	Conn *Conn
	// Request reports that the message goes to the server.
	Request bool
	// Words are the request's words, at least one unless it is Quiet; nil for a reply.
	Words []string
	// Parts are the Parts of a [Request] or [Reply].
	Parts []Part
	// Number is a request's number on its connection, from 1. Answers is the number of the request
	// that a reply answers; 0 if it answers none, or if the number is unknown.
	Number, Answers int
	// Overtakes is the Overtakes of a [Reply].
	Overtakes bool
	// Silent, Opens, Reads and Within are those of a [Request], Quiet and GivesUp those of a
	// [Request] or a [Reply].
	Silent, Opens, Reads, Quiet bool
	Within                      []KeyRange
	GivesUp                     []int
	// Bytes is the message as it goes on: as it came, except that a login is the upstream's.
	Bytes []byte
	// More reports that more bytes of the sender were read together with the message.
	More bool
	// SetOut is when the message was read from its sender.
	SetOut time.Time
	// Arrived is when the message arrived, before the wait for the tap's lock; zero until then.
	Arrived time.Time
	// Lost reports, after arrival, that an earlier message of this direction was dropped, so this
	// message is lost too. A Lost message needs no decision.
	Lost bool

	door    *egress
	end     int64 // end of the message in its direction, in bytes
	shown   bool  // the message has arrived, and the tap has seen it
	verdict atomic.Int32
}

const (
	undecided = iota
	awaited   // the egress waits for a decision
	forwarded
	dropped
	skipped
	broken
)

// Forward lets the message pass. Only the first call of Forward, Drop, Skip or Reset counts; on a
// connection that has ended none has an effect.
func (m *Message) Forward() { m.decide(forwarded) }

// Drop loses the message and everything after it in its direction, because a stream can't leave out
// its middle. Neither end is notified; when the sender closes the connection, the receiver sees
// that.
func (m *Message) Drop() { m.decide(dropped) }

// Skip loses only this message; later messages of its direction go on. A server treats messages for
// a slow subscriber in this way.
func (m *Message) Skip() { m.decide(skipped) }

// Reset loses the message and resets its connection, after the messages that were forwarded earlier
// have been written to the receiver.
func (m *Message) Reset() { m.decide(broken) }

func (m *Message) decide(verdict int32) {
	if !m.verdict.CompareAndSwap(undecided, verdict) && m.verdict.CompareAndSwap(awaited, verdict) {
		m.door.note()
	}
}
