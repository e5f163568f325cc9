package etcd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// Wire is the protocol of etcd's clients, gRPC over HTTP/2
// (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). It parses only what a link
// needs, which inspects messages and changes none.
//
// A request is a message of the client in a call: one for most methods, any number for watches and
// lease keepalives. The frame that opens the stream belongs to its first request, because a
// server's deadline for the call starts with that frame. The word of a request is the method, as in
// [faults.EtcdRequests]; a transaction also has the words of its operations. The next message on
// the same stream answers the request; further messages on the stream are unsolicited, such as a
// watch's events. Trailers that only report the end of the call pass without being shown, and so do
// the frames of HTTP/2 itself: settings, pings, window updates.
//
// Streams are independent, so an answer may overtake others. CANCEL is the message of a client that
// no longer waits for an answer.
//
// AUTHENTICATE, CANCEL, and CALL (any method of another service, such as gRPC's health service)
// belong to a connection's beginning or end. LEASEKEEPALIVE does, too, and counts as a request
// without an answer: clients send it by their own timers, at times that a script can't determine.
//
// A connection that doesn't begin as HTTP/2, such as JSON requests or TLS, is carried without
// parsing.
type Wire struct{}

var _ proxy.Protocol = Wire{}

func (Wire) String() string { return "the protocol of etcd's clients, which is gRPC" }

// Begin implements [proxy.Protocol].
func (Wire) Begin() proxy.Session {
	return &talk{asked: newHalf(), said: newHalf(), calls: map[uint32]*call{}}
}

// talk is the session of one connection. asked, begun and numbered belong to the goroutine that
// reads requests, and said to the goroutine that reads answers.
type talk struct {
	asked, said *half
	begun       bool
	numbered    int

	mu    sync.Mutex // guards the fields below, which both goroutines use
	blind bool       // the connection isn't HTTP/2
	calls map[uint32]*call
}

// call is a stream with a call of a method, until the server has finished it or the client has
// canceled it.
type call struct {
	method
	unanswered []int // numbers of the requests without an answer, oldest first
	up         body  // from the client
	down       body
}

// half is one direction of a connection.
type half struct {
	in     bytes.Reader
	framer *http2.Framer
	read   int // bytes of the incomplete message that were read
}

// mostTable is the maximum size of a header table that the ends of a connection may agree on, in
// bytes.
const mostTable = 1 << 20

func newHalf() *half {
	h := new(half)
	h.framer = http2.NewFramer(io.Discard, &h.in)
	h.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	h.framer.ReadMetaHeaders.SetAllowedMaxDynamicTableSize(mostTable)
	h.framer.MaxHeaderListSize = proxy.MaxMessage
	return h
}

// headFrame is the length of a frame's header, in bytes.
const headFrame = 9

// next returns the next frame of b, after the frames that were already read, together with its
// continuations; nil while it is incomplete. The frame's contents are valid until the next call.
func (h *half) next(b []byte) (http2.Frame, error) {
	n := h.read
	for more := true; more; {
		if len(b) < n+headFrame {
			return nil, nil
		}
		size, kind, flags := int(b[n])<<16|int(b[n+1])<<8|int(b[n+2]), http2.FrameType(b[n+3]), http2.Flags(b[n+4])
		if n += headFrame + size; n > proxy.MaxMessage {
			return nil, fmt.Errorf("etcd: a message of more than %d bytes", proxy.MaxMessage)
		}
		if len(b) < n {
			return nil, nil
		}
		more = (kind == http2.FrameHeaders || kind == http2.FrameContinuation) && !flags.Has(http2.FlagHeadersEndHeaders)
	}
	h.in.Reset(b[h.read:n])
	frame, err := h.framer.ReadFrame()
	if of := new(http2.StreamError); errors.As(err, of) { // for example invalid headers: the connection goes on
		frame, err = &http2.FrameHeader{StreamID: of.StreamID}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("etcd: no frame of HTTP/2: %w", err)
	}
	h.read = n
	return frame, nil
}

// taken returns the length of the complete message that was read, in bytes.
func (h *half) taken() (n int) {
	n, h.read = h.read, 0
	return n
}

// Request implements [proxy.Session].
func (t *talk) Request(b []byte) (asks proxy.Request, n int, err error) {
	if len(b) == 0 {
		return asks, 0, nil
	}
	if !t.begun {
		switch preface := []byte(http2.ClientPreface); {
		case len(b) < len(preface) && bytes.HasPrefix(preface, b):
			return asks, 0, nil
		case bytes.HasPrefix(b, preface):
			n, asks.Quiet = len(preface), true
		default:
			t.mu.Lock()
			t.blind = true
			t.mu.Unlock()
		}
		t.begun = true
	}
	if t.isBlind() {
		asks, n = proxy.Request{Words: []string{proxy.AnyBytes}, Silent: true}, len(b)
	}
	for n == 0 {
		frame, err := t.asked.next(b)
		if frame == nil {
			return asks, 0, err
		}
		if t.begins(frame) {
			continue
		}
		asks, n = t.request(frame), t.asked.taken()
	}
	t.numbered++
	return asks, n, nil
}

func (t *talk) isBlind() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.blind
}

// begins records a frame that opens a stream for further messages, and reports whether the frame is
// one.
func (t *talk) begins(frame http2.Frame) bool {
	head, ok := frame.(*http2.MetaHeadersFrame)
	if !ok || head.StreamEnded() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls[head.StreamID] == nil {
		t.calls[head.StreamID] = &call{method: methodOf(head.PseudoValue("path"))}
	}
	return true
}

// request parses a frame of a client.
func (t *talk) request(frame http2.Frame) (asks proxy.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := frame.Header().StreamID
	c := t.calls[id]
	if c == nil { // the stream is over, or none
		return proxy.Request{Quiet: true}
	}
	number := t.numbered + 1
	switch frame := frame.(type) {
	case *http2.DataFrame:
		known, anywhere := true, false
		for _, m := range c.up.add(frame.Data()) {
			ops := c.requested(m)
			known, anywhere = known && m.hidden == "", anywhere || ops.anywhere
			asks.Words, asks.Parts, asks.Within = append(asks.Words, ops.words...), append(asks.Parts, ops.parts...), append(asks.Within, ops.within...)
		}
		if anywhere {
			asks.Within = nil
		}
		if len(asks.Words) > 0 {
			asks.Silent, asks.Opens, asks.Reads = c.word == wordKeepAlive, opens(c.word), known && reads(asks.Words)
		}
		if len(asks.Words) > 0 && !asks.Silent {
			c.unanswered = append(c.unanswered, number)
		}
	case *http2.RSTStreamFrame:
		delete(t.calls, id)
		asks = proxy.Request{Words: []string{wordCancel}, Parts: []proxy.Part{{Text: wordCancel + " of " + c.word}}, Silent: true, Opens: true, GivesUp: c.unanswered}
	}
	asks.Quiet = len(asks.Words) == 0
	return asks
}

// Reply implements [proxy.Session].
func (t *talk) Reply(b []byte) (says proxy.Reply, n int, err error) {
	if len(b) > 0 && t.isBlind() {
		return says, len(b), nil
	}
	frame, err := t.said.next(b)
	if frame == nil {
		return says, 0, err
	}
	return t.reply(frame), t.said.taken(), nil
}

// reply parses a frame of a server.
func (t *talk) reply(frame http2.Frame) (says proxy.Reply) {
	if away, ok := frame.(*http2.GoAwayFrame); ok {
		return proxy.Reply{Parts: []proxy.Part{{Text: fmt.Sprintf("the server goes (%s)", strings.ToLower(away.ErrCode.String()))}}}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	id := frame.Header().StreamID
	c := t.calls[id]
	if c == nil {
		return proxy.Reply{Quiet: true}
	}
	over := false
	switch frame := frame.(type) {
	case *http2.DataFrame:
		for _, m := range c.down.add(frame.Data()) {
			says.Parts = append(says.Parts, c.answered(m)...)
		}
		over = frame.StreamEnded()
	case *http2.MetaHeadersFrame:
		if over = frame.StreamEnded(); over {
			says.Parts = ended(frame.RegularFields(), len(c.unanswered) > 0)
		}
	case *http2.RSTStreamFrame:
		over = true
		says.Parts = []proxy.Part{{Text: "call ended (" + strings.ToLower(frame.ErrCode.String()) + ")"}}
	}
	if len(says.Parts) > 0 && len(c.unanswered) > 0 {
		says.Answers, says.Overtakes = c.unanswered[0], true
		c.unanswered = c.unanswered[1:]
	}
	if over {
		says.GivesUp = c.unanswered
		delete(t.calls, id)
	}
	says.Quiet = len(says.Parts) == 0
	return says
}

// body is the data of one end on a stream: messages, each with a prefix of five bytes.
type body struct {
	rest  []byte // the bytes of an incomplete message
	skips int    // bytes still to come of a message that is too long to be parsed
}

// message is one message in a body.
type message struct {
	data   []byte
	hidden string // why data can't be parsed; empty if it can
}

const headMessage = 5

// maxRead is the maximum length of a message that is parsed, in bytes.
const maxRead = 1 << 20

// add returns the messages that these bytes complete. They are valid until the next call.
func (b *body) add(data []byte) (list []message) {
	skipped := min(b.skips, len(data))
	data, b.skips = data[skipped:], b.skips-skipped
	if skipped > 0 && b.skips == 0 {
		list = append(list, message{hidden: "long"})
	}
	if len(b.rest) > 0 {
		data = append(b.rest, data...)
	}
	for len(data) >= headMessage {
		size := int(binary.BigEndian.Uint32(data[1:]))
		if size > maxRead && len(data) < headMessage+size {
			b.skips, data = headMessage+size-len(data), nil
			break
		}
		if len(data) < headMessage+size {
			break
		}
		m := message{data: data[headMessage : headMessage+size]}
		if data[0] != 0 {
			m = message{hidden: "compressed"}
		}
		list, data = append(list, m), data[headMessage+size:]
	}
	b.rest = slices.Clone(data)
	return list
}
