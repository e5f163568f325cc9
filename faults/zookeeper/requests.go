package zookeeper

import (
	"fmt"
	"slices"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// wordConnect is the word of the request for a session, which has no code.
const wordConnect = "CONNECT"

// The codes of operations.
const (
	opCreate               = 1
	opDelete               = 2
	opExists               = 3
	opGetData              = 4
	opSetData              = 5
	opGetACL               = 6
	opSetACL               = 7
	opGetChildren          = 8
	opSync                 = 9
	opPing                 = 11
	opGetChildren2         = 12
	opCheck                = 13
	opMulti                = 14
	opCreate2              = 15
	opReconfig             = 16
	opCheckWatches         = 17
	opRemoveWatches        = 18
	opCreateContainer      = 19
	opCreateTTL            = 21
	opMultiRead            = 22
	opAuth                 = 100
	opSetWatches           = 101
	opSASL                 = 102
	opGetEphemerals        = 103
	opGetAllChildrenNumber = 104
	opSetWatches2          = 105
	opAddWatch             = 106
	opWhoAmI               = 107
	opClose                = -11
	opError                = -1 // in the answer to several operations
)

// words maps the codes of operations to the words of requests.
var words = map[int32]string{
	opCreate: "CREATE", opCreate2: "CREATE", opCreateContainer: "CREATE", opCreateTTL: "CREATE",
	opDelete: "DELETE", opExists: "EXISTS", opGetData: "GETDATA", opSetData: "SETDATA", opGetACL: "GETACL", opSetACL: "SETACL",
	opGetChildren: "GETCHILDREN", opGetChildren2: "GETCHILDREN", opSync: "SYNC", opPing: "PING", opCheck: "CHECK",
	opMulti: "MULTI", opMultiRead: "MULTIREAD", opReconfig: "RECONFIG",
	opCheckWatches: "CHECKWATCHES", opRemoveWatches: "REMOVEWATCHES", opAddWatch: "ADDWATCH",
	opAuth: "AUTH", opSASL: "SASL", opSetWatches: "SETWATCHES", opSetWatches2: "SETWATCHES",
	opGetEphemerals: "GETEPHEMERALS", opGetAllChildrenNumber: "GETALLCHILDRENNUMBER", opWhoAmI: "WHOAMI", opClose: "CLOSE",
}

// opens reports whether an operation belongs to a connection's beginning or end, or keeps the
// connection alive.
func opens(code int32) bool {
	switch code {
	case opSetWatches, opSetWatches2, opPing, opClose:
		return true
	}
	return logsIn(code)
}

// reads reports whether requests with these words change no node.
func reads(words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool {
		switch word {
		case "CREATE", "DELETE", "SETDATA", "SETACL", "RECONFIG", "CLOSE":
			return true
		}
		return false
	})
}

// logsIn reports whether an operation is a login, which servers answer at once.
func logsIn(code int32) bool { return code == opAuth || code == opSASL }

// secret replaces text that must not be shown.
const secret = " (secret)"

// connecting parses the request for a session, and reports whether it is valid. The session's ID is
// omitted because the server draws it, and it differs from run to run; the password is secret.
func connecting(r *reader) (p proxy.Part, ok bool) {
	version := r.int()
	r.long() // the last zxid that the client has seen
	span, session := r.int(), r.long()
	r.bytes() // the password
	p.Text = fmt.Sprintf("%s new session of %d ms", wordConnect, span)
	if session != 0 {
		p.Text = fmt.Sprintf("%s session of %d ms again", wordConnect, span)
	}
	return p, version == 0 && !r.short
}

// requested returns the words of a request, one part for each, and the nodes that it may change,
// nil if they are unknown.
func requested(word string, code int32, r *reader) (list []string, parts []proxy.Part, within []proxy.KeyRange) {
	part, within := operation(word, code, r)
	list, parts = []string{word}, []proxy.Part{part}
	for code == opMulti || code == opMultiRead {
		kind, done := r.int(), r.bool()
		r.int() // an error code, used in answers
		if done && !r.short {
			break
		}
		one, ok := words[kind]
		if r.short || !ok || kind == opMulti || kind == opMultiRead {
			parts[0].Text = word + proxy.Malformed
			return list, parts, nil
		}
		part, of := operation(one, kind, r)
		within = append(within, of...)
		if len(parts) <= proxy.MaxParts || !slices.Contains(list, one) { // a gate order matches the first operation with a word, so each word must be included
			list, parts = append(list, one), append(parts, part)
		}
	}
	return list, parts, within
}

// operation parses one operation after its header, and returns the nodes that it may change.
func operation(word string, code int32, r *reader) (l proxy.Part, within []proxy.KeyRange) {
	l.Text = word
	changed := func() {
		path := r.string()
		l.Name(path)
		within = []proxy.KeyRange{proxy.Only(path)}
	}
	switch code {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL:
		path, data := r.string(), r.bytes()
		skipACL(r)
		l.Name(path)
		within = []proxy.KeyRange{proxy.Below(path)} // the server may append a number
		l.Say(kindOfNode(r.int()))
		if code == opCreateTTL {
			l.Say(fmt.Sprintf(" ttl %d ms", r.long()))
		}
		l.Data(data)
	case opDelete:
		changed()
		l.Say(onVersion(r.int()))
	case opCheck:
		l.Name(r.string())
		l.Say(onVersion(r.int()))
	case opExists, opGetData, opGetChildren, opGetChildren2:
		if l.Name(r.string()); r.bool() {
			l.Say(" watch")
		}
	case opSetData:
		changed()
		data := r.bytes()
		l.Say(onVersion(r.int()))
		l.Data(data)
	case opSetACL:
		changed()
		skipACL(r) // an ACL contains digests of passwords
		l.Say(onVersion(r.int()))
	case opGetACL, opSync, opCheckWatches, opRemoveWatches, opAddWatch, opGetEphemerals, opGetAllChildrenNumber:
		l.Name(r.string())
	case opAuth:
		r.int() // an unused type
		l.Say(" " + proxy.Shorten(r.string()) + secret)
	case opSASL:
		l.Say(secret)
	}
	if r.short {
		return proxy.Part{Text: word + proxy.Malformed}, nil
	}
	return l, within
}

// skipACL reads an access control list, and discards it.
func skipACL(r *reader) {
	const least = 12
	for range r.count(least) {
		r.int()
		r.bytes()
		r.bytes()
	}
}

// nodeKinds maps the flags of a node to create to its kind.
var nodeKinds = map[int32]string{0: "", 1: " ephemeral", 2: " sequential", 3: " ephemeral sequential", 4: " container", 5: "", 6: " sequential"}

// kindOfNode returns the kind of a node to create.
func kindOfNode(flags int32) string {
	if kind, ok := nodeKinds[flags]; ok {
		return kind
	}
	return fmt.Sprintf(" flags %d", flags)
}

// onVersion returns the version that a node must have; empty if any is accepted.
func onVersion(version int32) string {
	if version == -1 {
		return ""
	}
	return fmt.Sprintf(" version %d", version)
}
