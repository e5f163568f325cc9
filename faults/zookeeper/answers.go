package zookeeper

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// connected parses the answer to a request for a session, and reports whether it is valid. A
// session that the server no longer has is answered with a timeout of 0.
func connected(r *reader) (p proxy.Part, ok bool) {
	version, span := r.int(), r.int()
	r.long()  // the session's ID
	r.bytes() // the session's password
	p.Text = fmt.Sprintf("session of %d ms", span)
	if span <= 0 {
		p.Text = failures[-112]
	}
	return p, version == 0 && !r.short
}

// failures maps error codes to names.
var failures = map[int32]string{
	-1: "system error", -2: "runtime inconsistency", -3: "data inconsistency", -4: "connection loss", -5: "marshalling error",
	-6: "unimplemented", -7: "operation timeout", -8: "bad arguments", -12: "unknown session", -13: "no quorum of the new members",
	-14:  "reconfiguration in progress",
	-100: "API error", -101: "no node", -102: "no auth", -103: "bad version", -108: "no children for ephemerals", -110: "node exists",
	-111: "not empty", -112: "session expired", -113: "invalid callback", -114: "invalid ACL", -115: "auth failed", -118: "session moved",
	-119: "not read-only", -120: "ephemeral on local session", -121: "no watcher", -122: "request timeout", -123: "reconfiguration disabled",
	-124: "auth required", -125: "quota exceeded", -127: "throttled",
}

// failed returns the name of an error.
func failed(code int32) string {
	if name, ok := failures[code]; ok {
		return name
	}
	return fmt.Sprintf("error %d", code)
}

// answered returns the parts of an answer to an operation, given the bytes after its header.
func answered(code int32, zxid int64, failure int32, r *reader) []proxy.Part {
	if code == opMulti || code == opMultiRead {
		if parts := results(r); len(parts) > 0 {
			return parts
		}
		code = opMulti // empty, or refused as a whole
	}
	if failure != 0 {
		return []proxy.Part{{Text: failed(failure)}}
	}
	p := result(code, r)
	switch code { // each change has a transaction ID
	case opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opSetData, opSetACL:
		p.Text += fmt.Sprintf(" zxid %#x", zxid)
	}
	return []proxy.Part{p}
}

// results parses the answers to several operations, up to proxy.MaxParts.
func results(r *reader) (parts []proxy.Part) {
	for len(parts) < proxy.MaxParts {
		code, done := r.int(), r.bool()
		failure := r.int()
		if done || r.short {
			break
		}
		if code == opError {
			failure = r.int()
		}
		if r.short {
			break
		}
		if failure != 0 {
			parts = append(parts, proxy.Part{Text: failed(failure)})
			continue
		}
		parts = append(parts, result(code, r))
	}
	return parts
}

// result parses the result of a successful operation.
func result(code int32, r *reader) proxy.Part {
	var l proxy.Part
	switch code {
	case opCreate, opCreateContainer, opCreateTTL:
		l.Name(r.string())
	case opCreate2:
		l.Name(r.string())
		readStat(r)
	case opExists:
		sayStat(&l, readStat(r))
	case opSetData, opSetACL:
		s := readStat(r)
		l.Say(fmt.Sprintf("version %d", s.version))
		if code == opSetACL {
			l.Text = "ok"
		}
	case opGetData:
		data := r.bytes()
		sayStat(&l, readStat(r))
		l.Data(data)
	case opGetChildren, opGetChildren2, opGetEphemerals:
		names(&l, r)
	case opGetAllChildrenNumber:
		l.Say(fmt.Sprint(r.int()))
	default:
		l.Text = "ok"
	}
	if r.short {
		return proxy.Part{Text: strings.TrimSpace(proxy.Malformed)}
	}
	l.Text = strings.TrimSpace(l.Text)
	return l
}

// maxNames is the maximum number of names that are sorted; for more names only the count is shown.
const maxNames = 1000

// names appends the names of nodes. Servers return names with random parts in a random order, so
// names are sorted by their other parts.
func names(l *proxy.Part, r *reader) {
	type name struct{ whole, rest string }
	n := r.count(4)
	if n > maxNames {
		l.Say(fmt.Sprintf("%d in all", n))
		return
	}
	list := make([]name, n)
	for i := range list {
		whole := r.string()
		rest, _ := proxy.Undrawn(whole)
		list[i] = name{whole, rest}
	}
	slices.SortFunc(list, func(a, b name) int { return cmp.Or(cmp.Compare(a.rest, b.rest), cmp.Compare(a.whole, b.whole)) })
	for _, name := range list[:min(len(list), proxy.MaxParts)] {
		l.Name(name.whole)
	}
	switch {
	case n == 0:
		l.Say("none")
	case n > proxy.MaxParts:
		l.Say(fmt.Sprintf(" … %d in all", n))
	}
}

// stat holds the shown fields of a node's Stat. The other fields are times, and values that the
// server draws.
type stat struct {
	made     int64 // the zxid of the creation
	version  int32
	children int32
}

func readStat(r *reader) (s stat) {
	const long = 8
	s.made = r.long()
	r.take(3 * long) // zxid of the last change, and two times
	s.version = r.int()
	r.take(2*4 + long + 4) // two more versions, the owner's session, and the length of the data
	s.children = r.int()
	r.long() // zxid of the last change of its children
	return s
}

func sayStat(l *proxy.Part, s stat) {
	l.Say(fmt.Sprintf("czxid %#x version %d", s.made, s.version))
	if s.children > 0 {
		l.Say(fmt.Sprintf(" children %d", s.children))
	}
}

// event parses an event of a watch.
func event(r *reader) proxy.Part {
	kind, state := r.int(), r.int()
	l := proxy.Part{Text: kinds[kind]}
	switch {
	case l.Text == "" && kind == -1:
		l.Text = fmt.Sprintf("session state %d", state)
	case l.Text == "":
		l.Text = fmt.Sprintf("event %d", kind)
	}
	if path := r.string(); path != "" {
		l.Name(path)
	}
	if r.short {
		return proxy.Part{Text: "event" + proxy.Malformed}
	}
	return l
}

// kinds maps the codes of events to names.
var kinds = map[int32]string{1: "node created", 2: "node deleted", 3: "data changed", 4: "children changed", 5: "watch for data removed", 6: "watch for children removed", 7: "persistent watch removed"}
