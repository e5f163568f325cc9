package etcd

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// Fields of the messages of etcd's own locks and elections (v3lock.proto, v3election.proto). Their
// Go types are part of etcd's server, which this package doesn't import. A leader message has the
// same first field and a key as the second.
const (
	fieldName  = 1 // of a lock or election; of UNLOCK the key, of PROCLAIM and RESIGN the leader message
	fieldLease = 2 // of LOCK and CAMPAIGN
	fieldKey   = 2 // of a leader message
	fieldValue = 3 // of CAMPAIGN
	fieldNews  = 2 // of PROCLAIM
)

// sayRecipe appends the lock or election of a request. It returns false if the bytes can't be
// parsed. The keys of both are the name, a slash, and the lease.
func (o *operations) sayRecipe(l *proxy.Part, b []byte) bool {
	asked, ok := fields(b)
	if !ok {
		return false
	}
	name := asked.text[fieldName]
	switch o.words[0] {
	case "UNLOCK":
		l.Name(proxy.Shown(name))
		o.within = append(o.within, proxy.Only(string(name)))
	case "PROCLAIM", "RESIGN":
		leader, ok := fields(name)
		if !ok {
			return false
		}
		l.Name(proxy.Shown(leader.text[fieldKey]))
		o.within = append(o.within, proxy.Only(string(leader.text[fieldKey])))
		if news, ok := asked.text[fieldNews]; ok {
			l.Data(news)
		}
	default:
		l.Name(proxy.Shown(name))
		if lease := asked.number[fieldLease]; lease != 0 {
			l.Say(" lease")
			sayLease(l, int64(lease))
		}
		if value, ok := asked.text[fieldValue]; ok {
			l.Data(value)
		}
		o.within = append(o.within, proxy.Below(string(name)+"/"))
	}
	return true
}

// said holds the fields of a protocol buffers message by number; of repeated fields, the last.
type said struct {
	text   map[protowire.Number][]byte
	number map[protowire.Number]uint64
}

// fields parses the fields of a message. It returns false if the bytes are no message.
func fields(b []byte) (said, bool) {
	s := said{map[protowire.Number][]byte{}, map[protowire.Number]uint64{}}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return said{}, false
		}
		b = b[n:]
		switch kind {
		case protowire.VarintType:
			s.number[number], n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			s.text[number], n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return said{}, false
		}
		b = b[n:]
	}
	return s, true
}
