package zookeeper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// Wire is the protocol of ZooKeeper's clients
// (https://github.com/apache/zookeeper/blob/master/zookeeper-jute/src/main/resources/zookeeper.jute), as far as a link needs it,
// which looks at messages and changes none.
//
// Each message has its length before it. A connection begins with a request, and its answer, for a session. Each further request has a
// number of its client's (xid) and an operation (opcode), and its answer the number again. Servers answer a connection's requests in their
// order, but those that log in, which they answer at once.
//
// The word of a request is its operation's, as [faults.ZooKeeperRequests] has them; one that is several operations has those of all, behind
// MULTI or MULTIREAD. To a connection's beginning or end belong CONNECT, AUTH, SASL, SETWATCHES, by which a client says again what it watched on the
// connection before, and CLOSE.
//
// So does PING, and it counts as one that gets no answer. Clients send it about three times in a session, by timers of their own, that is, at no
// moment of a script's: whoever counts what a lock asks, or takes the next request for what a lock does, would have it by chance. Its answer
// answers nothing, nor do events that were watched.
//
// TLS is not carried: nobody could look into it.
type Wire struct{}

var _ proxy.Protocol = Wire{}

func (Wire) String() string { return "the protocol of ZooKeeper's clients, without TLS" }

// Begin implements [proxy.Protocol].
func (Wire) Begin() proxy.Session { return new(talk) }

// ErrProtocol says that the bytes are not ZooKeeper's protocol.
var ErrProtocol = errors.New("zookeeper: protocol error")

// talk is one connection. begun and numbered belong to whoever reads requests, and greeted to whoever reads answers.
type talk struct {
	begun    bool // there is the request for a session
	numbered int
	greeted  bool // there is its answer

	mu         sync.Mutex // guards what both need
	unanswered []owes     // what has no answer yet, oldest first
}

// owes is a request that has no answer yet.
type owes struct {
	number int
	xid    int32
	code   int32
}

// The xids that a server gives messages which aren't the answer to a request that has one.
const (
	xidEvent = -1
	xidPing  = -2
)

// frame returns the first message of b without its length, and how many bytes both take; 0 while it isn't complete.
func frame(b []byte) (body []byte, n int, err error) {
	const head = 4
	if len(b) < head {
		return nil, 0, nil
	}
	switch size := int64(int32(binary.BigEndian.Uint32(b))); {
	case size < 0:
		return nil, 0, fmt.Errorf("%w: a message of %d bytes", ErrProtocol, size)
	case size > proxy.MaxMessage-head: // a command of four letters, or TLS, as well
		return nil, 0, fmt.Errorf("%w: a message of more than %d bytes, which begins with %q", ErrProtocol, proxy.MaxMessage, b[:head])
	case int64(len(b)) < head+size:
		return nil, 0, nil
	default:
		return b[head : head+size], int(head + size), nil
	}
}

// Request implements [proxy.Session].
func (t *talk) Request(b []byte) (asks proxy.Request, n int, err error) {
	body, n, err := frame(b)
	if n == 0 || err != nil {
		return asks, 0, err
	}
	r := &reader{rest: body}
	if !t.begun {
		part, ok := connecting(r)
		if !ok {
			return asks, 0, fmt.Errorf("%w: a connection that begins with %d bytes which ask for no session", ErrProtocol, len(body))
		}
		t.begun = true
		t.numbered++
		return proxy.Request{Words: []string{wordConnect}, Parts: []proxy.Part{part}, Opens: true, Reads: true}, n, nil
	}
	xid, code := r.int(), r.int()
	if r.short {
		return asks, 0, fmt.Errorf("%w: a request of %d bytes", ErrProtocol, len(body))
	}
	word, ok := words[code]
	if !ok {
		return asks, 0, fmt.Errorf("%w: no request has the operation %d", ErrProtocol, code)
	}
	asks.Words, asks.Parts, asks.Within = requested(word, code, r)
	asks.Silent, asks.Opens, asks.Reads = code == opPing, opens(code), reads(asks.Words)
	t.numbered++
	if !asks.Silent {
		t.owe(owes{t.numbered, xid, code})
	}
	return asks, n, nil
}

// Reply implements [proxy.Session].
func (t *talk) Reply(b []byte) (says proxy.Reply, n int, err error) {
	body, n, err := frame(b)
	if n == 0 || err != nil {
		return says, 0, err
	}
	r := &reader{rest: body}
	if !t.greeted {
		part, ok := connected(r)
		if !ok {
			return says, 0, fmt.Errorf("%w: an answer of %d bytes that gives no session", ErrProtocol, len(body))
		}
		t.greeted = true
		return proxy.Reply{Answers: 1, Parts: []proxy.Part{part}}, n, nil
	}
	xid, zxid, failure := r.int(), r.long(), r.int()
	if r.short {
		return says, 0, fmt.Errorf("%w: an answer of %d bytes", ErrProtocol, len(body))
	}
	switch xid {
	case xidEvent:
		says.Parts = []proxy.Part{event(r)}
		return says, n, nil
	case xidPing:
		says.Parts = []proxy.Part{{Text: "answer to " + words[opPing]}}
		return says, n, nil
	}
	o, ok := t.settle(xid)
	if !ok {
		says.Parts = []proxy.Part{{Text: fmt.Sprintf("answer to xid %d, which nobody asked", xid)}}
		return says, n, nil
	}
	return proxy.Reply{Answers: o.number, Overtakes: logsIn(o.code), Parts: answered(o.code, zxid, failure, r)}, n, nil
}

func (t *talk) owe(o owes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unanswered = append(t.unanswered, o)
}

// settle takes note that the oldest request of that xid is answered, and that those before it get no answer any more: they didn't
// reach the server. One that logs in may be answered before them.
func (t *talk) settle(xid int32) (o owes, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.IndexFunc(t.unanswered, func(o owes) bool { return o.xid == xid })
	if at < 0 {
		return o, false
	}
	if o = t.unanswered[at]; logsIn(o.code) {
		t.unanswered = slices.Delete(t.unanswered, at, at+1)
		return o, true
	}
	t.unanswered = slices.Delete(t.unanswered, 0, at+1)
	return o, true
}

// reader reads values one by one. Behind the end they are empty, and it is short.
type reader struct {
	rest  []byte
	short bool
}

// take returns the next n bytes.
func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.rest, r.short = nil, true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) int() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (r *reader) long() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (r *reader) bool() bool {
	b := r.take(1)
	return b != nil && b[0] != 0
}

// bytes reads bytes with their length before them, which is -1 where there is nothing.
func (r *reader) bytes() []byte {
	n := r.int()
	if n == -1 {
		return nil
	}
	return r.take(int(n))
}

func (r *reader) string() string { return string(r.bytes()) }

// count reads how many of something follow, each of which takes so many bytes at least.
func (r *reader) count(least int) int {
	n := int(r.int())
	if n > len(r.rest)/least {
		r.rest, r.short = nil, true
		return 0
	}
	return max(0, n) // -1 where there is no list
}
