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
// (https://github.com/apache/zookeeper/blob/master/zookeeper-jute/src/main/resources/zookeeper.jute).
// It parses only what a link needs, which inspects messages and changes none.
//
// Each message follows its length. A connection begins with a request for a session, and its
// answer. Each later request has a number of the client (xid) and an operation (opcode); its answer
// has the same number. Servers answer a connection's requests in order, except logins, which they
// answer at once.
//
// The word of a request is the operation, as in [faults.ZooKeeperRequests]; a request with several
// operations has all their words after MULTI or MULTIREAD. CONNECT, AUTH, SASL, CLOSE and
// SETWATCHES, which repeats the watches of the client's previous connection, belong to a
// connection's beginning or end.
//
// PING does, too, and counts as a request without an answer. Clients send about three per session
// timeout, by their own timers, at times that a script can't determine: a script that counts a
// lock's requests, or acts on the next one, would match a PING by chance. The answer to a PING
// answers no request, and neither do watch events.
//
// TLS is not carried, because it can't be parsed.
type Wire struct{}

var _ proxy.Protocol = Wire{}

func (Wire) String() string { return "the protocol of ZooKeeper's clients, without TLS" }

// Begin implements [proxy.Protocol].
func (Wire) Begin() proxy.Session { return new(talk) }

// ErrProtocol reports bytes that violate ZooKeeper's protocol.
var ErrProtocol = errors.New("zookeeper: protocol error")

// talk is the session of one connection. begun and numbered belong to the goroutine that reads
// requests, and greeted to the goroutine that reads answers.
type talk struct {
	begun    bool // the request for a session was seen
	numbered int
	greeted  bool // the answer to that request was seen

	mu         sync.Mutex // guards the field below, which both goroutines use
	unanswered []owes     // requests without an answer, oldest first
}

// owes is a request without an answer.
type owes struct {
	number int
	xid    int32
	code   int32
}

// The xids of server messages that answer no numbered request.
const (
	xidEvent = -1
	xidPing  = -2
)

// frame returns the first message of b without its length field, and the length of both, 0 while
// the message is incomplete.
func frame(b []byte) (body []byte, n int, err error) {
	const head = 4
	if len(b) < head {
		return nil, 0, nil
	}
	switch size := int64(int32(binary.BigEndian.Uint32(b))); {
	case size < 0:
		return nil, 0, fmt.Errorf("%w: a message of %d bytes", ErrProtocol, size)
	case size > proxy.MaxMessage-head: // for example a four-letter command, or TLS
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

// settle records that the oldest request with an xid is answered, and returns it. Earlier requests
// get no answer any more, because they didn't reach the server; a login, however, may be answered
// before them.
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

// reader reads values one by one. After the end of the bytes all values are zero, and short is set.
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

// bytes reads bytes after their length, which is -1 for no bytes.
func (r *reader) bytes() []byte {
	n := r.int()
	if n == -1 {
		return nil
	}
	return r.take(int(n))
}

func (r *reader) string() string { return string(r.bytes()) }

// count reads the number of following elements. It sets short if the remaining bytes can't hold
// that many elements of at least the given size.
func (r *reader) count(least int) int {
	n := int(r.int())
	if n > len(r.rest)/least {
		r.rest, r.short = nil, true
		return 0
	}
	return max(0, n) // -1 means no list
}
