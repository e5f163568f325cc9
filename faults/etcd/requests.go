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

// The words of requests that are handled specially.
const (
	wordTxn       = "TXN"
	wordWatch     = "WATCH"
	wordKeepAlive = "LEASEKEEPALIVE"
	wordLogin     = "AUTHENTICATE"
	wordCancel    = "CANCEL"
	wordCall      = "CALL" // a method that etcd doesn't define
)

// reads reports whether requests with these words change no key.
func reads(words []string) bool {
	for i, word := range words {
		switch word {
		case "RANGE", wordWatch, "LEASEGRANT", "LEASETIMETOLIVE", "LEASELEASES", wordLogin, wordCall, "LEADER", "OBSERVE", "MEMBERLIST", "STATUS", "AUTHSTATUS":
		case wordTxn:
			if i > 0 { // a nested transaction, whose operations are unknown
				return false
			}
		default:
			return false
		}
	}
	return true
}

// opens reports whether a request belongs to a connection's beginning or end, or keeps a lease
// alive.
func opens(word string) bool {
	return slices.Contains([]string{wordKeepAlive, wordLogin, wordCall}, word)
}

// method is the method of a call.
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

// unread returns why a message isn't parsed, after a blank; empty if it can be parsed.
func (m message) unread() string {
	if m.hidden != "" {
		return " (" + m.hidden + ")"
	}
	return ""
}

// requested returns the operations of a request.
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

// ask appends the arguments of a method to l. It returns false if the bytes can't be parsed; the
// server decides whether they are an error. Arguments of other methods are not shown: those methods
// are unrelated to locks, and some contain passwords. A request that isn't known to change only
// some keys may change any.
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

// read parses a message and calls say with it. It returns false if the bytes can't be parsed.
func read[M interface{ Unmarshal(b []byte) error }](b []byte, m M, l *proxy.Part, say func(*proxy.Part, M)) bool {
	if m.Unmarshal(b) != nil {
		return false
	}
	say(l, m)
	return true
}

// sayLease appends a lease, whose ID the server draws.
func sayLease(l *proxy.Part, id int64) {
	l.Say(" …")
	l.Values = append(l.Values, fmt.Sprintf("%x", id))
}

// sayKeys appends a range of keys: one key, all with a prefix, or all from a key up to another.
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

// operations are the operations of one request.
type operations struct {
	words []string
	parts []proxy.Part
	// within are the key ranges that the request may change, unless anywhere is set.
	within   []proxy.KeyRange
	anywhere bool
}

// span returns the KeyRange for a range in etcd's notation.
func span(key, end []byte) proxy.KeyRange {
	switch {
	case len(end) == 0:
		return proxy.Only(string(key))
	case bytes.Equal(end, []byte{0}):
		return proxy.KeyRange{From: string(key)}
	}
	return proxy.KeyRange{From: string(key), To: string(end)}
}

// sayTxn appends the conditions and the operations of a transaction.
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

// add adds the operations of one branch. Beyond proxy.MaxParts it adds only operations with a new
// word.
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
			l.Say(" within") // the nested operations are not shown
		default:
			continue // the request has no effect
		}
		if len(o.parts) > proxy.MaxParts && slices.Contains(o.words, word) {
			continue
		}
		l.Text = when + word + l.Text
		o.words, o.parts = append(o.words, word), append(o.parts, l)
	}
}

// sayCompare appends a condition.
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
