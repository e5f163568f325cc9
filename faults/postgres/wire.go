package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// Wire is PostgreSQL's protocol, version 3 (https://www.postgresql.org/docs/current/protocol.html).
// It parses only what a link needs, which inspects messages and changes none.
//
// A request is everything that a client sends until the server owes an answer: a query, all
// messages up to a Sync or Flush, a packet of the login, or the data of a COPY to its end. An
// answer is everything that the server then sends until it is the client's turn: up to
// ReadyForQuery, a question of the login, an error after which the server closes the connection, or
// the beginning of a COPY. An answer to a Flush ends after as many messages as the request asked
// for. Unsolicited messages (notices, notifications and changed parameters) answer no request;
// within an answer they are a part of it.
//
// The words of a request are the commands of its statements, as returned by commandOf. Messages
// that contain no SQL have other words:
//
//	STARTUP, PASSWORD, SSLREQUEST, GSSENCREQUEST   the beginning of a connection
//	TERMINATE, CANCEL                              its end; a cancel request; neither has an answer
//	PREPARE, BIND, DESCRIBE, CLOSE, SYNC, FLUSH    requests that execute no statement
//	EXECUTE                                        a statement whose text was not seen
//	COPYDATA, COPYFAIL                             data for COPY, or its failure
//	FUNCTION, EMPTY, UNKNOWN                       a function call; no statement; no word
//
// TLS is not carried, because it can't be parsed. After replication has begun on a connection, its
// messages are not parsed any more.
type Wire struct{}

var _ proxy.Protocol = Wire{}

func (Wire) String() string { return "PostgreSQL's protocol, version 3, without TLS" }

// Begin implements [proxy.Protocol].
func (Wire) Begin() proxy.Session {
	return &talk{known: map[string][]statement{}, prepared: map[string]statement{}, portals: map[string]bound{}}
}

// ErrProtocol reports bytes that violate PostgreSQL's protocol.
var ErrProtocol = errors.New("postgres: protocol error")

// The codes of packets without a type, which begin a connection.
const (
	codeCancel = 80877102
	codeTLS    = 80877103
	codeGSS    = 80877104
	version3   = 3 // the upper half of the version
)

// maxStartup is the maximum length of a packet that begins a connection, in bytes; the limit is
// PostgreSQL's own.
const maxStartup = 10000

// maxKept is the maximum number of statements, and of portals, that are kept per connection: a
// client with more doesn't close them.
const maxKept = 1000

// maxKnown is the maximum length of a text whose statements are cached, in bytes.
const maxKnown = 4 << 10

// talk is the session of one connection. Fields without a lock belong to the goroutine that reads
// requests or, from down on, to the goroutine that reads answers.
type talk struct {
	up       int // bytes of the current request that were parsed
	begun    bool
	now      request
	known    map[string][]statement // cache by text, because clients repeat the same texts
	prepared map[string]statement   // by name
	portals  map[string]bound       // by name
	numbered int

	down   int // bytes of the current answer that were parsed
	answer answer

	mu         sync.Mutex // guards the fields below, which both goroutines use
	unanswered []owes     // requests without an answer, oldest first
	skips      bool       // the server skips everything up to the next Sync
	broken     bool       // a COPY failed before its data arrived, so the server ignores the data
	copying    bool       // the client will send the data of a COPY that ends with a Sync
	apart      bool       // messages are not parsed any more
}

// bound is a statement with its parameters.
type bound struct {
	statement
	values []string
}

// request is an incomplete request.
type request struct {
	executes []bound
	also     bound // its name if it executes nothing
	asks     int   // number of answers to single messages
	data     bool  // it contains data for a COPY
}

// owes is a request without an answer.
type owes struct {
	number int
	ends   byte // type of its last message, or startup or tls
	left   int  // of a Flush: number of unanswered messages before it
	hides  bool // its answer must not be shown
}

// answer is an incomplete answer.
type answer struct {
	begun bool
	parts []proxy.Part
	row   []string // first row of the current statement
	rows  bool     // the statement returned a row
}

// The types of messages without a type byte.
const (
	startup byte = 0
	tls     byte = 1 // or GSS
)

// frame returns the first message of b and its length, 0 while it is incomplete.
func frame(b []byte) (kind byte, body []byte, n int, err error) {
	if len(b) < 5 {
		return 0, nil, 0, nil
	}
	size := int64(binary.BigEndian.Uint32(b[1:]))
	switch {
	case size < 4:
		return 0, nil, 0, fmt.Errorf("%w: a message %q of %d bytes", ErrProtocol, b[0], size)
	case size >= proxy.MaxMessage:
		return 0, nil, 0, tooLong()
	case int64(len(b)) < 1+size:
		return 0, nil, 0, nil
	}
	return b[0], b[5 : 1+size], int(1 + size), nil
}

func tooLong() error {
	return fmt.Errorf("%w: a request or an answer of more than %d bytes", ErrProtocol, proxy.MaxMessage)
}

// packet returns the packet without a type at the beginning of b and its length, 0 while it is
// incomplete.
func packet(b []byte) (code uint32, body []byte, n int, err error) {
	if len(b) < 4 {
		return 0, nil, 0, nil
	}
	size := binary.BigEndian.Uint32(b)
	switch {
	case size < 8 || size > maxStartup:
		return 0, nil, 0, fmt.Errorf("%w: a connection that begins with %q", ErrProtocol, b[:4])
	case uint32(len(b)) < size:
		return 0, nil, 0, nil
	}
	return binary.BigEndian.Uint32(b[4:]), b[8:size], int(size), nil
}

// Request implements [proxy.Session].
func (t *talk) Request(b []byte) (asks proxy.Request, n int, err error) {
	if !t.begun {
		return t.begin(b)
	}
	if t.has(&t.apart) && len(b) > 0 {
		t.numbered++
		return proxy.Request{Words: []string{proxy.AnyBytes}, Silent: true}, len(b), nil
	}
	for {
		kind, body, n, err := frame(b[t.up:])
		if n == 0 || err != nil {
			if err == nil && len(b) > proxy.MaxMessage {
				err = tooLong()
			}
			return asks, 0, err
		}
		ends, err := t.take(kind, body)
		if err != nil {
			return asks, 0, err
		}
		if t.up += n; t.up > proxy.MaxMessage {
			return asks, 0, tooLong()
		}
		if ends {
			n, t.up = t.up, 0
			return t.ended(kind), n, nil
		}
	}
}

// begin parses a packet that begins a connection.
func (t *talk) begin(b []byte) (asks proxy.Request, n int, err error) {
	code, body, n, err := packet(b)
	if n == 0 || err != nil {
		return asks, 0, err
	}
	t.numbered++
	asks.Opens = true
	kind := tls
	switch {
	case code == codeTLS:
		asks.Words = []string{"SSLREQUEST"}
	case code == codeGSS:
		asks.Words = []string{"GSSENCREQUEST"}
	case code == codeCancel:
		return proxy.Request{Words: []string{"CANCEL"}, Silent: true}, n, nil
	case code>>16 == version3:
		t.begun, kind = true, startup
		asks.Words, asks.Parts = []string{"STARTUP"}, []proxy.Part{{Text: "STARTUP" + who(body), Values: application(body)}}
	default:
		return asks, 0, fmt.Errorf("%w: version %d.%d", ErrProtocol, code>>16, code&0xffff)
	}
	t.owe(owes{number: t.numbered, ends: kind})
	return asks, n, nil
}

// who returns the user and the database of a startup packet, each after a blank.
func who(body []byte) (says string) {
	for _, name := range []string{"user", "database"} {
		for _, value := range startupParameters(body, name) {
			says += " " + proxy.Shorten(name+"="+value)
		}
	}
	return says
}

// application returns the application name in a startup packet, which may identify the owner of a
// session.
func application(body []byte) []string { return startupParameters(body, "application_name") }

// startupParameters returns the values of a startup packet's parameters with a name.
func startupParameters(body []byte, name string) (values []string) {
	words := strings.Split(string(body), "\x00")
	for i := 0; i+1 < len(words) && words[i] != ""; i += 2 {
		if words[i] == name {
			values = append(values, words[i+1])
		}
	}
	return values
}

// take takes the next message of a request, and reports whether it is the last one. The server
// decides whether a malformed message is an error: take uses the fields that can be read.
func (t *talk) take(kind byte, body []byte) (ends bool, err error) {
	now := &t.now
	switch kind {
	case 'Q':
		var m pgproto3.Query
		_ = m.Decode(body)
		for _, s := range t.statements(m.String) {
			now.executes = append(now.executes, bound{statement: s})
		}
		return true, nil
	case 'F':
		now.also = named("FUNCTION")
		return true, nil
	case 'p':
		*now = request{also: named("PASSWORD")}
		return true, nil
	case 'X':
		*now = request{also: named("TERMINATE")}
		return true, nil
	case 'S', 'H':
		return true, nil
	case 'd':
		now.data, now.also = true, named("COPYDATA")
	case 'c':
		now.data, now.also = true, named("COPYDATA")
		return !t.has(&t.copying), nil
	case 'f':
		now.data, now.also = true, named("COPYFAIL")
		return !t.has(&t.copying), nil
	case 'P':
		var m pgproto3.Parse
		_ = m.Decode(body)
		s := t.statements(m.Query)[0]
		keep(t.prepared, m.Name, s)
		now.also = bound{statement: statement{"PREPARE", s.text, s.hides}} // ended completes the text if the request executes nothing
		now.asks++
	case 'B':
		var m pgproto3.Bind
		if m.Decode(body) != nil {
			m.Parameters = nil
		}
		s, ok := t.prepared[m.PreparedStatement]
		if !ok {
			s = statement{command: "EXECUTE", text: proxy.Shorten(strings.TrimSpace("EXECUTE " + m.PreparedStatement))}
		}
		keep(t.portals, m.DestinationPortal, bound{s, shown(m.Parameters)})
		now.call("BIND")
		now.asks++
	case 'D':
		now.call("DESCRIBE")
		now.asks++
	case 'C':
		now.call("CLOSE")
		var m pgproto3.Close
		switch err := m.Decode(body); {
		case err != nil:
		case m.ObjectType == 'S':
			delete(t.prepared, m.Name)
		default:
			delete(t.portals, m.Name)
		}
		now.asks++
	case 'E':
		var m pgproto3.Execute
		_ = m.Decode(body)
		b, ok := t.portals[m.Portal]
		if !ok {
			b = named("EXECUTE")
		}
		if len(now.executes) < maxStatements {
			now.executes = append(now.executes, b)
		}
		now.asks++
	default:
		return false, fmt.Errorf("%w: no request begins with %q", ErrProtocol, kind)
	}
	return false, nil
}

// named returns a bound whose command and text are one word.
func named(word string) bound { return bound{statement: statement{command: word, text: word}} }

// call names a request, unless it has a name already.
func (r *request) call(word string) {
	if r.also.command == "" {
		r.also = named(word)
	}
}

// keep stores a value by its name. A full map is cleared first.
func keep[T any](all map[string]T, name string, what T) {
	if len(all) >= maxKept {
		clear(all)
	}
	all[name] = what
}

// statements acts like the function [statements], with a cache.
func (t *talk) statements(sql string) []statement {
	if list, ok := t.known[sql]; ok {
		return list
	}
	list := statements(sql)
	if len(sql) <= maxKnown {
		keep(t.known, sql, list)
	}
	return list
}

// shown returns values as histories have them.
func shown(values [][]byte) (list []string) {
	for _, value := range values {
		if value == nil {
			list = append(list, "NULL")
		} else {
			list = append(list, proxy.Shown(value))
		}
	}
	return list
}

// ended returns the request for the messages that were taken. kind is the type of the last one.
func (t *talk) ended(kind byte) (asks proxy.Request) {
	now := t.now
	t.now = request{}
	if len(now.executes) == 0 {
		switch {
		case now.also.command != "":
		case kind == 'H':
			now.also = named("FLUSH")
		default:
			now.also = named("SYNC")
		}
		if now.also.command == "PREPARE" {
			now.also.text = proxy.Shorten(strings.TrimSpace("PREPARE " + now.also.text))
		}
		now.executes = []bound{now.also}
	}
	hides := false
	for _, b := range now.executes {
		if b.hides {
			hides, b.values = true, nil
		}
		asks.Words = append(asks.Words, b.command)
		asks.Parts = append(asks.Parts, proxy.Part{Text: b.text, Values: b.values})
	}
	asks.Opens = kind == 'X' || kind == 'p'
	t.numbered++
	o := owes{number: t.numbered, ends: kind, left: now.asks, hides: hides}
	asks.Silent = kind == 'X' || kind == 'H' && (o.left == 0 || t.has(&t.skips)) || (kind == 'c' || kind == 'f') && t.has(&t.broken)
	if !asks.Silent {
		t.owe(o)
	}
	return asks
}

func (t *talk) owe(o owes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch o.ends {
	case 'S':
		t.skips, t.copying, t.broken = false, false, false
	case 'Q':
		t.broken = false
	}
	t.unanswered = append(t.unanswered, o)
}

// has reports a field that both goroutines use.
func (t *talk) has(flag *bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *flag
}

// oldest returns the oldest request without an answer, if there is one.
func (t *talk) oldest() (o owes, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.unanswered) == 0 {
		return o, false
	}
	return t.unanswered[0], true
}
