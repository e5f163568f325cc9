package etcd

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// The words of requests that mean more than their method.
const (
	wordTxn       = "TXN"
	wordWatch     = "WATCH"
	wordKeepAlive = "LEASEKEEPALIVE"
	wordLogin     = "AUTHENTICATE"
	wordCancel    = "CANCEL"
	wordCall      = "CALL" // a method that is none of etcd's
)

// reads reports whether requests of these words change no key.
func reads(words []string) bool {
	for i, word := range words {
		switch word {
		case "RANGE", wordWatch, "LEASEGRANT", "LEASETIMETOLIVE", "LEASELEASES", wordLogin, wordCall, "LEADER", "OBSERVE", "MEMBERLIST", "STATUS", "AUTHSTATUS":
		case wordTxn:
			if i > 0 { // within another, and nobody has looked what it does
				return false
			}
		default:
			return false
		}
	}
	return true
}

// opens reports whether a request belongs to a connection's beginning or end, or keeps a lease.
func opens(word string) bool {
	return slices.Contains([]string{wordKeepAlive, wordLogin, wordCall}, word)
}

// method is what is called.
type method struct{ word, path string }

// methodOf returns the method of a path, such as /etcdserverpb.KV/Txn.
func methodOf(path string) method {
	service, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch pkg, _, _ := strings.Cut(service, "."); pkg {
	case "etcdserverpb", "v3lockpb", "v3electionpb":
		return method{strings.ToUpper(name), path}
	}
	return method{wordCall, path}
}

// unread returns why what was said isn't told, behind a blank; empty if it can be.
func (m message) unread() string {
	if m.hidden != "" {
		return " (" + m.hidden + ")"
	}
	return ""
}

// requested returns what a request asks for.
func (m method) requested(said message) operations {
	l := proxy.Part{Text: m.word + said.unread()}
	ops := operations{words: []string{m.word}, parts: []proxy.Part{{}}}
	if said.hidden != "" {
		ops.anywhere = true
	} else if !m.ask(&l, &ops, said.data) {
		l, ops.anywhere = proxy.Part{Text: m.word + proxy.Malformed}, true
	}
	ops.parts[0] = l
	return ops
}

// ask says what a method is asked for, and false if that can't be read, about which it is for the server to decide. Of methods that aren't
// here nothing is said: they have nothing to do with locks, and some have passwords. What isn't known to be about some keys alone may be about any.
func (m method) ask(l *proxy.Part, ops *operations, b []byte) bool {
	switch m.word {
	case "RANGE":
		return read(b, new(pb.RangeRequest), l, sayRange)
	case "PUT":
		return read(b, new(pb.PutRequest), l, ops.sayPut)
	case "DELETERANGE":
		return read(b, new(pb.DeleteRangeRequest), l, ops.sayDelete)
	case wordTxn:
		return read(b, new(pb.TxnRequest), l, ops.sayTxn)
	case wordWatch:
		return read(b, new(pb.WatchRequest), l, sayWatch)
	case "LEASEGRANT":
		return read(b, new(pb.LeaseGrantRequest), l, func(l *proxy.Part, r *pb.LeaseGrantRequest) { l.Say(fmt.Sprintf(" ttl %d s", r.TTL)) })
	case "LEASEREVOKE":
		ops.anywhere = true
		return read(b, new(pb.LeaseRevokeRequest), l, func(l *proxy.Part, r *pb.LeaseRevokeRequest) { sayLease(l, r.ID) })
	case wordKeepAlive:
		return read(b, new(pb.LeaseKeepAliveRequest), l, func(l *proxy.Part, r *pb.LeaseKeepAliveRequest) { sayLease(l, r.ID) })
	case "LEASETIMETOLIVE":
		return read(b, new(pb.LeaseTimeToLiveRequest), l, func(l *proxy.Part, r *pb.LeaseTimeToLiveRequest) { sayLease(l, r.ID) })
	case wordLogin:
		return read(b, new(pb.AuthenticateRequest), l, func(l *proxy.Part, r *pb.AuthenticateRequest) { l.Say(" " + proxy.Shorten(r.Name) + " (secret)") })
	case "LOCK", "UNLOCK", "CAMPAIGN", "PROCLAIM", "LEADER", "OBSERVE", "RESIGN":
		return ops.sayRecipe(l, b)
	case wordCall:
		l.Say(" " + proxy.Shorten(m.path))
	default:
		ops.anywhere = true
	}
	return true
}

// read reads a message, of which say tells; false if it is none.
func read[M interface{ Unmarshal(b []byte) error }](b []byte, m M, l *proxy.Part, say func(*proxy.Part, M)) bool {
	if m.Unmarshal(b) != nil {
		return false
	}
	say(l, m)
	return true
}

// sayLease says which lease is meant, which is drawn by the server.
func sayLease(l *proxy.Part, id int64) {
	l.Say(" …")
	l.Values = append(l.Values, fmt.Sprintf("%x", id))
}

// sayKeys says which keys are meant: one, all that begin so, or all from one on until another.
func sayKeys(l *proxy.Part, key, end []byte) {
	l.Name(proxy.Shown(key))
	switch {
	case len(end) == 0:
	case bytes.Equal(end, []byte(clientv3.GetPrefixRangeEnd(string(key)))):
		l.Say("*")
	case bytes.Equal(end, []byte{0}):
		l.Say(" and all behind it")
	default:
		l.Say(" until")
		l.Name(proxy.Shown(end))
	}
}

func sayRange(l *proxy.Part, r *pb.RangeRequest) {
	sayKeys(l, r.Key, r.RangeEnd)
	say := func(name string, n int64) {
		if n != 0 {
			l.Say(fmt.Sprintf(" %s %d", name, n))
		}
	}
	say("at revision", r.Revision)
	say("modified from", r.MinModRevision)
	say("modified until", r.MaxModRevision)
	say("created from", r.MinCreateRevision)
	say("created until", r.MaxCreateRevision)
	if r.SortOrder != pb.RangeRequest_NONE {
		l.Say(" by " + strings.ToLower(r.SortTarget.String()))
	}
	if r.SortOrder == pb.RangeRequest_DESCEND {
		l.Say(" descending")
	}
	say("limit", r.Limit)
	for _, flag := range []struct {
		is   bool
		name string
	}{{r.Serializable, " serializable"}, {r.KeysOnly, " keys only"}, {r.CountOnly, " count only"}} {
		if flag.is {
			l.Say(flag.name)
		}
	}
}

func (o *operations) sayPut(l *proxy.Part, r *pb.PutRequest) {
	o.within = append(o.within, proxy.Only(string(r.Key)))
	l.Name(proxy.Shown(r.Key))
	if r.Lease != 0 {
		l.Say(" lease")
		sayLease(l, r.Lease)
	}
	if r.IgnoreLease {
		l.Say(" same lease")
	}
	if r.IgnoreValue {
		l.Say(" same value")
	}
	l.Data(r.Value)
}

func (o *operations) sayDelete(l *proxy.Part, r *pb.DeleteRangeRequest) {
	o.within = append(o.within, span(r.Key, r.RangeEnd))
	sayKeys(l, r.Key, r.RangeEnd)
}

func sayWatch(l *proxy.Part, r *pb.WatchRequest) {
	switch r := r.RequestUnion.(type) {
	case *pb.WatchRequest_CreateRequest:
		sayKeys(l, r.CreateRequest.Key, r.CreateRequest.RangeEnd)
		if from := r.CreateRequest.StartRevision; from != 0 {
			l.Say(fmt.Sprintf(" from revision %d", from))
		}
	case *pb.WatchRequest_CancelRequest:
		l.Say(" no longer")
	case *pb.WatchRequest_ProgressRequest:
		l.Say(" progress")
	}
}

// operations are those of one request.
type operations struct {
	words []string
	parts []proxy.Part
	// within are the keys that they may change, unless they may change any.
	within   []proxy.KeyRange
	anywhere bool
}

// span returns the keys that a range has, as etcd tells them.
func span(key, end []byte) proxy.KeyRange {
	switch {
	case len(end) == 0:
		return proxy.Only(string(key))
	case bytes.Equal(end, []byte{0}):
		return proxy.KeyRange{From: string(key)}
	}
	return proxy.KeyRange{From: string(key), To: string(end)}
}

// sayTxn says on which conditions a transaction does what.
func (o *operations) sayTxn(l *proxy.Part, r *pb.TxnRequest) {
	for i, c := range r.Compare[:min(len(r.Compare), proxy.MaxParts)] {
		l.Say([]string{" if", " and"}[min(i, 1)])
		sayCompare(l, c)
	}
	if len(r.Compare) > proxy.MaxParts {
		l.Say(" …")
	}
	o.add("then ", r.Success)
	o.add("else ", r.Failure)
}

// add says what is done in one case. Where there is much only the first are told, but so that each word is.
func (o *operations) add(when string, list []*pb.RequestOp) {
	for _, op := range list {
		word, l := "", proxy.Part{}
		switch r := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			word = "RANGE"
			sayRange(&l, r.RequestRange)
		case *pb.RequestOp_RequestPut:
			word = "PUT"
			o.sayPut(&l, r.RequestPut)
		case *pb.RequestOp_RequestDeleteRange:
			word = "DELETERANGE"
			o.sayDelete(&l, r.RequestDeleteRange)
		case *pb.RequestOp_RequestTxn:
			word, o.anywhere = wordTxn, true
			l.Say(" within") // whose operations are nowhere told
		default:
			continue // which changes nothing
		}
		if len(o.parts) > proxy.MaxParts && slices.Contains(o.words, word) {
			continue
		}
		l.Text = when + word + l.Text
		o.words, o.parts = append(o.words, word), append(o.parts, l)
	}
}

// sayCompare says a condition.
func sayCompare(l *proxy.Part, c *pb.Compare) {
	l.Say(" " + strings.ToLower(c.Target.String()))
	sayKeys(l, c.Key, c.RangeEnd)
	l.Say(" " + map[pb.Compare_CompareResult]string{pb.Compare_EQUAL: "=", pb.Compare_NOT_EQUAL: "!=", pb.Compare_GREATER: ">", pb.Compare_LESS: "<"}[c.Result])
	switch c.Target {
	case pb.Compare_VALUE:
		l.Say(" ?")
		l.Data(c.GetValue())
	case pb.Compare_LEASE:
		sayLease(l, c.GetLease())
	default:
		l.Say(fmt.Sprintf(" %d", max(c.GetVersion(), c.GetCreateRevision(), c.GetModRevision())))
	}
}
