package etcd

import (
	"fmt"
	"net/url"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// answered returns the parts of an answer to a method, or of an unsolicited message.
func (m method) answered(said message) []proxy.Part {
	l := proxy.Part{Text: "ok" + said.unread()}
	var more []proxy.Part
	if said.hidden == "" && !m.answer(&l, &more, said.data) {
		l = proxy.Part{Text: "ok" + proxy.Malformed}
	}
	return append([]proxy.Part{l}, more...)
}

// answer appends the result of a method to l, and the results of a transaction's operations to
// more. It returns false if the bytes can't be parsed.
func (m method) answer(l *proxy.Part, more *[]proxy.Part, b []byte) bool {
	l.Text = ""
	switch m.word {
	case "RANGE":
		return read(b, new(pb.RangeResponse), l, sayFound)
	case "PUT":
		return read(b, new(pb.PutResponse), l, func(l *proxy.Part, r *pb.PutResponse) {
			l.Say("ok")
			sayRevision(l, r.Header)
		})
	case "DELETERANGE":
		return read(b, new(pb.DeleteRangeResponse), l, func(l *proxy.Part, r *pb.DeleteRangeResponse) {
			sayDeleted(l, r)
			sayRevision(l, r.Header)
		})
	case wordTxn:
		return read(b, new(pb.TxnResponse), l, func(l *proxy.Part, r *pb.TxnResponse) {
			l.Say(map[bool]string{true: "then", false: "else"}[r.Succeeded])
			sayRevision(l, r.Header)
			for _, op := range r.Responses[:min(len(r.Responses), proxy.MaxParts)] {
				*more = append(*more, result(op))
			}
		})
	case wordWatch:
		return read(b, new(pb.WatchResponse), l, saySeen)
	case "LEASEGRANT": // the server draws the lease's ID
		return read(b, new(pb.LeaseGrantResponse), l, func(l *proxy.Part, r *pb.LeaseGrantResponse) { l.Say(fmt.Sprintf("lease … ttl %d s", r.TTL)) })
	case wordKeepAlive:
		return read(b, new(pb.LeaseKeepAliveResponse), l, func(l *proxy.Part, r *pb.LeaseKeepAliveResponse) {
			l.Say(fmt.Sprintf("answer to %s: ttl %d s", wordKeepAlive, r.TTL))
		})
	case "LEASETIMETOLIVE":
		return read(b, new(pb.LeaseTimeToLiveResponse), l, func(l *proxy.Part, r *pb.LeaseTimeToLiveResponse) {
			l.Say(fmt.Sprintf("%d of %d s", r.TTL, r.GrantedTTL))
		})
	}
	l.Say("ok")
	return true
}

// sayRevision appends the revision of the store after a change.
func sayRevision(l *proxy.Part, h *pb.ResponseHeader) {
	if h != nil {
		l.Say(fmt.Sprintf(" revision %d", h.Revision))
	}
}

func sayFound(l *proxy.Part, r *pb.RangeResponse) {
	if len(r.Kvs) == 0 {
		l.Say("none")
	}
	if len(r.Kvs) == 0 && r.Count > 0 { // only counted, or outside the requested revisions
		l.Say(fmt.Sprintf(" of %d", r.Count))
	}
	for i, kv := range r.Kvs[:min(len(r.Kvs), proxy.MaxParts)] {
		if i > 0 {
			l.Say(",")
		}
		sayKey(l, kv)
		l.Say(fmt.Sprintf(" created %d", kv.CreateRevision))
		l.Data(kv.Value)
	}
	if len(r.Kvs) > proxy.MaxParts {
		l.Say(fmt.Sprintf(" … %d in all", len(r.Kvs)))
	}
}

// sayKey appends a key, without a leading blank at the beginning of the text.
func sayKey(l *proxy.Part, kv *mvccpb.KeyValue) {
	first := l.Text == ""
	l.Name(proxy.Shown(kv.Key))
	if first {
		l.Text = l.Text[1:]
	}
}

func sayDeleted(l *proxy.Part, r *pb.DeleteRangeResponse) {
	l.Say(fmt.Sprintf("deleted %d", r.Deleted))
}

// result returns the result of one operation of a transaction.
func result(op *pb.ResponseOp) proxy.Part {
	var l proxy.Part
	switch r := op.Response.(type) {
	case *pb.ResponseOp_ResponseRange:
		sayFound(&l, r.ResponseRange)
	case *pb.ResponseOp_ResponseDeleteRange:
		sayDeleted(&l, r.ResponseDeleteRange)
	default:
		l.Say("ok")
	}
	return l
}

// saySeen appends the events that a watch has received.
func saySeen(l *proxy.Part, r *pb.WatchResponse) {
	switch {
	case r.Canceled:
		l.Say("watch ended")
		if r.CancelReason != "" {
			l.Say(": " + proxy.Shorten(r.CancelReason))
		}
	case r.Created:
		l.Say("watching")
		sayRevision(l, r.Header)
	case len(r.Events) == 0:
		l.Say("progress")
		sayRevision(l, r.Header)
	}
	for i, e := range r.Events[:min(len(r.Events), proxy.MaxParts)] {
		if i > 0 {
			l.Say(", ")
		}
		l.Say(map[mvccpb.Event_EventType]string{mvccpb.DELETE: "deleted", mvccpb.PUT: "put"}[e.Type])
		if e.Kv == nil {
			continue
		}
		l.Name(proxy.Shown(e.Kv.Key))
		l.Say(fmt.Sprintf(" revision %d", e.Kv.ModRevision))
		l.Data(e.Kv.Value)
	}
}

// ended returns how a call has ended; nil for a success that the client doesn't wait for.
func ended(fields []hpack.HeaderField, waits bool) []proxy.Part {
	status, message := codes.OK, ""
	for _, f := range fields {
		switch f.Name {
		case "grpc-status":
			if n, err := strconv.ParseUint(f.Value, 10, 32); err == nil {
				status = codes.Code(n)
			}
		case "grpc-message":
			if text, err := url.PathUnescape(f.Value); err == nil && text != "" {
				message = ": " + text
			}
		}
	}
	if status == codes.OK && !waits {
		return nil
	}
	return []proxy.Part{{Text: proxy.Shorten(status.String() + message)}}
}
