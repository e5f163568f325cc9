package etcd

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/faults/real/proxy/proxytest"
)

// pen writes one direction of a connection.
type pen struct {
	bytes.Buffer
	framer *http2.Framer
	head   bytes.Buffer
	table  *hpack.Encoder
}

func newPen() *pen {
	p := new(pen)
	p.framer = http2.NewFramer(p, nil)
	p.table = hpack.NewEncoder(&p.head)
	return p
}

// cut returns what was written since the last time.
func (p *pen) cut() []byte {
	b := bytes.Clone(p.Bytes())
	p.Reset()
	return b
}

func (p *pen) must(err error) *pen {
	if err != nil {
		panic(err)
	}
	return p
}

// block returns headers, of names and values.
func (p *pen) block(fields ...string) []byte {
	p.head.Reset()
	for i := 0; i < len(fields); i += 2 {
		p.must(p.table.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}))
	}
	return bytes.Clone(p.head.Bytes())
}

// open begins a call.
func (p *pen) open(id uint32, path string) *pen {
	block := p.block(":method", "POST", ":scheme", "http", ":path", path, "token", "hidden", "content-type", "application/grpc")
	return p.must(p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true}))
}

// prefixed is a message as gRPC has it.
func prefixed(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
}

type marshaler interface{ Marshal() ([]byte, error) }

func encoded(m marshaler) []byte {
	b, err := m.Marshal()
	if err != nil {
		panic(err)
	}
	return b
}

// says writes messages, each in its own frame.
func (p *pen) says(id uint32, ends bool, messages ...marshaler) *pen {
	for i, m := range messages {
		p.must(p.framer.WriteData(id, ends && i == len(messages)-1, prefixed(encoded(m))))
	}
	return p
}

// begins answers a call with what stands before the first message.
func (p *pen) begins(id uint32) *pen {
	block := p.block(":status", "200", "content-type", "application/grpc")
	return p.must(p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true}))
}

// ends ends a call.
func (p *pen) ends(id uint32, status, message string) *pen {
	block := p.block("grpc-status", status, "grpc-message", message)
	return p.must(p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true, EndStream: true}))
}

// asks returns the text of a request.
func asks(r proxy.Request) string {
	if r.Quiet {
		return "quiet"
	}
	text := strings.Join(r.Words, ",") + ": " + proxytest.PartsText(r.Parts)
	if r.Silent {
		text += " silent"
	}
	if r.Opens {
		text += " opens"
	}
	if len(r.GivesUp) > 0 {
		text += fmt.Sprint(" gives up ", r.GivesUp)
	}
	return text
}

// answers returns the text of an answer.
func answers(r proxy.Reply) string {
	if r.Quiet {
		return "quiet"
	}
	text := fmt.Sprintf("%d: %s", r.Answers, proxytest.PartsText(r.Parts))
	if len(r.GivesUp) > 0 {
		text += fmt.Sprint(" gives up ", r.GivesUp)
	}
	if r.Overtakes != (r.Answers != 0) {
		text += " in the wrong order"
	}
	return text
}

// ear listens to a connection, and knows how much was not complete.
type ear struct {
	t        rapid.TB
	talk     proxy.Session
	up, down []byte
}

func listen(t rapid.TB) *ear {
	e := &ear{t: t, talk: Wire{}.Begin()}
	e.requests([]byte(http2.ClientPreface))
	return e
}

// requests returns the texts of the requests that are complete now.
func (e *ear) requests(b []byte) (list []string) {
	e.t.Helper()
	for e.up = append(e.up, b...); len(e.up) > 0; {
		r, n, err := e.talk.Request(e.up)
		if err != nil {
			e.t.Fatal(err)
		}
		if n == 0 {
			break
		}
		for _, word := range r.Words {
			if !slices.Contains(faults.EtcdRequests(), word) {
				e.t.Errorf("scripts don't know %s", word)
			}
		}
		if len(r.Words) != len(r.Parts) {
			e.t.Errorf("%d words, %d parts", len(r.Words), len(r.Parts))
		}
		list, e.up = append(list, asks(r)), e.up[n:]
	}
	return list
}

func (e *ear) answers(b []byte) (list []string) {
	e.t.Helper()
	for e.down = append(e.down, b...); len(e.down) > 0; {
		r, n, err := e.talk.Reply(e.down)
		if err != nil {
			e.t.Fatal(err)
		}
		if n == 0 {
			break
		}
		list, e.down = append(list, answers(r)), e.down[n:]
	}
	return list
}

// want compares texts, without those of quiet messages.
func want(t rapid.TB, got []string, lines ...string) {
	t.Helper()
	if got = slices.DeleteFunc(got, func(s string) bool { return s == "quiet" }); !slices.Equal(got, lines) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
	if strings.Contains(strings.Join(got, "\n"), "hidden") {
		t.Error("it shows a secret")
	}
}

const (
	lease = 0x694d98ab01234567
	key   = "lock/694d98ab01234567"
)

var header = &pb.ResponseHeader{Revision: 7}

func putOp(r *pb.PutRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: r}}
}

func rangeOp(r *pb.RangeRequest) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
}

func deleteOp(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key)}}}
}

func created(key string, revision int64) *pb.Compare {
	return &pb.Compare{Target: pb.Compare_CREATE, Key: []byte(key), TargetUnion: &pb.Compare_CreateRevision{CreateRevision: revision}}
}

func TestRequests(t *testing.T) {
	oldest := &pb.RangeRequest{Key: []byte("lock/"), RangeEnd: []byte("lock0"), SortOrder: pb.RangeRequest_ASCEND, SortTarget: pb.RangeRequest_CREATE, Limit: 1}
	many := &pb.TxnRequest{}
	for range 20 {
		many.Success = append(many.Success, deleteOp("a"))
		many.Compare = append(many.Compare, created("a", 1))
	}
	many.Failure = []*pb.RequestOp{putOp(&pb.PutRequest{Key: []byte("b"), Value: []byte("gone")})}
	for _, c := range []struct {
		name, path string
		says       marshaler
		want       string
	}{
		{"range", "etcdserverpb.KV/Range", &pb.RangeRequest{Key: []byte("a")}, "RANGE: RANGE a"},
		{"oldest", "etcdserverpb.KV/Range", oldest, "RANGE: RANGE lock/* by create limit 1"},
		{"much of a range", "etcdserverpb.KV/Range", &pb.RangeRequest{
			Key: []byte("a"), RangeEnd: []byte{0}, Revision: 3, MinModRevision: 1, MaxModRevision: 2, MinCreateRevision: 3, MaxCreateRevision: 4,
			SortOrder: pb.RangeRequest_DESCEND, SortTarget: pb.RangeRequest_MOD, Serializable: true, KeysOnly: true, CountOnly: true,
		}, "RANGE: RANGE a and all behind it at revision 3 modified from 1 modified until 2 created from 3 created until 4 by mod descending serializable keys only count only"},
		{"until", "etcdserverpb.KV/Range", &pb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("c")}, "RANGE: RANGE a until c"},
		{"put", "etcdserverpb.KV/Put", &pb.PutRequest{Key: []byte(key), Value: []byte("mine"), Lease: lease}, `PUT: PUT lock/… lease … ["694d98ab01234567" "694d98ab01234567" "mine"]`},
		{"put the same", "etcdserverpb.KV/Put", &pb.PutRequest{Key: []byte("a"), IgnoreLease: true, IgnoreValue: true}, `PUT: PUT a same lease same value`},
		{"put bytes", "etcdserverpb.KV/Put", &pb.PutRequest{Key: []byte("a\xff"), Value: []byte("\x00\xff")}, `PUT: PUT \x61ff ["\\x00ff"]`},
		{"delete", "etcdserverpb.KV/DeleteRange", &pb.DeleteRangeRequest{Key: []byte(key)}, `DELETERANGE: DELETERANGE lock/… ["694d98ab01234567"]`},
		{"delete all", "etcdserverpb.KV/DeleteRange", &pb.DeleteRangeRequest{Key: []byte("a/"), RangeEnd: []byte("a0")}, `DELETERANGE: DELETERANGE a/*`},
		{"the mutex's", "etcdserverpb.KV/Txn", &pb.TxnRequest{
			Compare: []*pb.Compare{created(key, 0)},
			Success: []*pb.RequestOp{putOp(&pb.PutRequest{Key: []byte(key), Lease: lease}), rangeOp(oldest)},
			Failure: []*pb.RequestOp{rangeOp(&pb.RangeRequest{Key: []byte(key)}), deleteOp("a"), {Request: &pb.RequestOp_RequestTxn{RequestTxn: new(pb.TxnRequest)}}, {}},
		}, `TXN,PUT,RANGE,RANGE,DELETERANGE,TXN: TXN if create lock/… = 0 ["694d98ab01234567"]; then PUT lock/… lease … ["694d98ab01234567" "694d98ab01234567"]; then RANGE lock/* by create limit 1; ` +
			`else RANGE lock/… ["694d98ab01234567"]; else DELETERANGE a; else TXN within`},
		{"conditions", "etcdserverpb.KV/Txn", &pb.TxnRequest{Compare: []*pb.Compare{
			{Target: pb.Compare_VALUE, Result: pb.Compare_NOT_EQUAL, Key: []byte("a"), TargetUnion: &pb.Compare_Value{Value: []byte("mine")}},
			{Target: pb.Compare_VERSION, Result: pb.Compare_GREATER, Key: []byte("a/"), RangeEnd: []byte("a0"), TargetUnion: &pb.Compare_Version{Version: 2}},
			{Target: pb.Compare_MOD, Result: pb.Compare_LESS, Key: []byte("b"), TargetUnion: &pb.Compare_ModRevision{ModRevision: 3}},
			{Target: pb.Compare_LEASE, Key: []byte("b"), TargetUnion: &pb.Compare_Lease{Lease: lease}},
		}}, `TXN: TXN if value a != ? and version a/* > 2 and mod b < 3 and lease b = … ["mine" "694d98ab01234567"]`},
		{"much", "etcdserverpb.KV/Txn", many, "TXN" + strings.Repeat(",DELETERANGE", 16) + ",PUT: TXN if create a = 1" + strings.Repeat(" and create a = 1", 15) + " …" + strings.Repeat("; then DELETERANGE a", 16) + `; else PUT b ["gone"]`},
		{"nothing", "etcdserverpb.KV/Txn", &pb.TxnRequest{}, "TXN: TXN"},
		{"watch", "etcdserverpb.Watch/Watch", &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte(key), StartRevision: 9}}},
			`WATCH: WATCH lock/… from revision 9 ["694d98ab01234567"]`},
		{"watch no longer", "etcdserverpb.Watch/Watch", &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: new(pb.WatchCancelRequest)}}, "WATCH: WATCH no longer"},
		{"watch progress", "etcdserverpb.Watch/Watch", &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: new(pb.WatchProgressRequest)}}, "WATCH: WATCH progress"},
		{"watch nothing", "etcdserverpb.Watch/Watch", new(pb.WatchRequest), "WATCH: WATCH"},
		{"grant", "etcdserverpb.Lease/LeaseGrant", &pb.LeaseGrantRequest{TTL: 4}, "LEASEGRANT: LEASEGRANT ttl 4 s"},
		{"revoke", "etcdserverpb.Lease/LeaseRevoke", &pb.LeaseRevokeRequest{ID: lease}, `LEASEREVOKE: LEASEREVOKE … ["694d98ab01234567"]`},
		{"keep", "etcdserverpb.Lease/LeaseKeepAlive", &pb.LeaseKeepAliveRequest{ID: lease}, `LEASEKEEPALIVE: LEASEKEEPALIVE … ["694d98ab01234567"] silent opens`},
		{"left", "etcdserverpb.Lease/LeaseTimeToLive", &pb.LeaseTimeToLiveRequest{ID: lease}, `LEASETIMETOLIVE: LEASETIMETOLIVE … ["694d98ab01234567"]`},
		{"login", "etcdserverpb.Auth/Authenticate", &pb.AuthenticateRequest{Name: "root", Password: "hidden"}, "AUTHENTICATE: AUTHENTICATE root (secret) opens"},
		{"new user", "etcdserverpb.Auth/UserAdd", &pb.AuthUserAddRequest{Name: "me", Password: "hidden"}, "USERADD: USERADD"},
		{"members", "etcdserverpb.Cluster/MemberList", new(pb.MemberListRequest), "MEMBERLIST: MEMBERLIST"},
		{"a lock of etcd's own", "v3lockpb.Lock/Lock", &pb.PutRequest{Key: []byte("x")}, "LOCK: LOCK x"},
		{"a lock of etcd's own, with a lease", "v3lockpb.Lock/Lock", fielded{1: "x", 2: lease}, `LOCK: LOCK x lease … ["694d98ab01234567"]`},
		{"unlock", "v3lockpb.Lock/Unlock", fielded{1: key}, `UNLOCK: UNLOCK lock/… ["694d98ab01234567"]`},
		{"an election", "v3electionpb.Election/Campaign", fielded{1: "x", 2: lease, 3: "me"}, `CAMPAIGN: CAMPAIGN x lease … ["694d98ab01234567" "me"]`},
		{"who leads", "v3electionpb.Election/Leader", fielded{1: "x"}, "LEADER: LEADER x"},
		{"observe", "v3electionpb.Election/Observe", fielded{1: "x"}, "OBSERVE: OBSERVE x"},
		{"resign", "v3electionpb.Election/Resign", fielded{1: fielded{1: "lock", 2: key, 3: 7}.String()}, `RESIGN: RESIGN lock/… ["694d98ab01234567"]`},
		{"proclaim", "v3electionpb.Election/Proclaim", fielded{1: fielded{1: "lock", 2: key}.String(), 2: "news"}, `PROCLAIM: PROCLAIM lock/… ["694d98ab01234567" "news"]`},
		{"no leader", "v3electionpb.Election/Resign", fielded{1: "\xff"}, "RESIGN: RESIGN (malformed)"},
		{"no lock", "v3lockpb.Lock/Lock", fielded{0: "x"}, "LOCK: LOCK (malformed)"},
		{"health", "grpc.health.v1.Health/Check", new(pb.MemberListRequest), "CALL: CALL /grpc.health.v1.Health/Check opens"},
		{"none", "", new(pb.MemberListRequest), "CALL: CALL / opens"},
		{"malformed", "etcdserverpb.KV/Txn", &pb.RangeRequest{Limit: 7}, "TXN: TXN (malformed)"},
		{"long", "etcdserverpb.KV/Put", &pb.PutRequest{Key: []byte("a"), Value: bytes.Repeat([]byte("v"), maxRead)}, "PUT: PUT (long)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, p := listen(t), newPen()
			p.open(1, "/"+c.path)
			for b := prefixed(encoded(c.says)); len(b) > 0; b = b[min(len(b), 16384):] {
				p.must(p.framer.WriteData(1, len(b) <= 16384, b[:min(len(b), 16384)]))
			}
			want(t, e.requests(p.cut()), c.want)
		})
	}
}

func TestAnswers(t *testing.T) {
	kvs := []*mvccpb.KeyValue{{Key: []byte(key), Value: []byte("mine"), CreateRevision: 5}, {Key: []byte("b"), CreateRevision: 6}}
	found := &pb.RangeResponse{Header: header, Kvs: kvs, Count: 2}
	many := &pb.RangeResponse{Count: 20}
	for i := range 20 {
		many.Kvs = append(many.Kvs, &mvccpb.KeyValue{Key: fmt.Append(nil, i)})
	}
	for _, c := range []struct {
		name, path string
		says       marshaler
		want       string
	}{
		{"found", "etcdserverpb.KV/Range", found, `lock/… created 5, b created 6 ["694d98ab01234567" "mine"]`},
		{"none", "etcdserverpb.KV/Range", &pb.RangeResponse{Header: header}, "none"},
		{"counted", "etcdserverpb.KV/Range", &pb.RangeResponse{Header: header, Count: 3}, "none of 3"},
		{"many", "etcdserverpb.KV/Range", many, "0 created 0, 1 created 0, 2 created 0, 3 created 0, 4 created 0, 5 created 0, 6 created 0, 7 created 0, 8 created 0, 9 created 0, " +
			"10 created 0, 11 created 0, 12 created 0, 13 created 0, 14 created 0, 15 created 0 … 20 in all"},
		{"put", "etcdserverpb.KV/Put", &pb.PutResponse{Header: header}, "ok revision 7"},
		{"put, and no more said", "etcdserverpb.KV/Put", &pb.PutResponse{}, "ok"},
		{"deleted", "etcdserverpb.KV/DeleteRange", &pb.DeleteRangeResponse{Header: header, Deleted: 1}, "deleted 1 revision 7"},
		{"then", "etcdserverpb.KV/Txn", &pb.TxnResponse{Header: header, Succeeded: true, Responses: []*pb.ResponseOp{
			{Response: &pb.ResponseOp_ResponsePut{ResponsePut: new(pb.PutResponse)}}, {Response: &pb.ResponseOp_ResponseRange{ResponseRange: found}},
			{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: &pb.DeleteRangeResponse{Deleted: 2}}},
		}}, `then revision 7; ok; lock/… created 5, b created 6 ["694d98ab01234567" "mine"]; deleted 2`},
		{"else", "etcdserverpb.KV/Txn", &pb.TxnResponse{Header: header}, "else revision 7"},
		{"much", "etcdserverpb.KV/Txn", &pb.TxnResponse{Responses: make([]*pb.ResponseOp, 0, 1)}, "else"},
		{"watching", "etcdserverpb.Watch/Watch", &pb.WatchResponse{Header: header, Created: true}, "watching revision 7"},
		{"no watch", "etcdserverpb.Watch/Watch", &pb.WatchResponse{Header: header, Created: true, Canceled: true, CancelReason: "why"}, "watch ended: why"},
		{"granted", "etcdserverpb.Lease/LeaseGrant", &pb.LeaseGrantResponse{ID: lease, TTL: 4}, "lease … ttl 4 s"},
		{"revoked", "etcdserverpb.Lease/LeaseRevoke", new(pb.LeaseRevokeResponse), "ok"},
		{"left", "etcdserverpb.Lease/LeaseTimeToLive", &pb.LeaseTimeToLiveResponse{TTL: 3, GrantedTTL: 4}, "3 of 4 s"},
		{"login", "etcdserverpb.Auth/Authenticate", &pb.AuthenticateResponse{Token: "hidden"}, "ok"},
		{"malformed", "etcdserverpb.KV/Txn", &pb.PutRequest{Value: []byte("x")}, "ok (malformed)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, up, down := listen(t), newPen(), newPen()
			e.requests(up.open(1, "/"+c.path).says(1, true, new(pb.MemberListRequest)).cut())
			want(t, e.answers(down.begins(1).says(1, false, c.says).ends(1, "0", "").cut()), "2: "+c.want)
			if k := e.talk.(*talk); len(k.calls) > 0 {
				t.Error("the call isn't over")
			}
		})
	}
}

// fielded is a message of protocol buffers, by numbers of fields.
type fielded map[int]any

func (f fielded) Marshal() (b []byte, err error) {
	for _, i := range slices.Sorted(maps.Keys(f)) {
		switch value := f[i].(type) {
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, protowire.Number(i), protowire.BytesType), value)
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(i), protowire.VarintType), uint64(value))
		}
	}
	return b, nil
}

func (f fielded) String() string { return string(encoded(f)) }

// What a request may change is known but where it may be anything.
func TestWithin(t *testing.T) {
	within := func(op *pb.RequestOp) *pb.RequestOp {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Success: []*pb.RequestOp{op}}}}
	}
	for _, c := range []struct {
		path string
		says marshaler
		want []proxy.KeyRange
	}{
		{"etcdserverpb.KV/Put", &pb.PutRequest{Key: []byte("a")}, []proxy.KeyRange{proxy.Only("a")}},
		{"etcdserverpb.KV/DeleteRange", &pb.DeleteRangeRequest{Key: []byte("a")}, []proxy.KeyRange{proxy.Only("a")}},
		{"etcdserverpb.KV/DeleteRange", &pb.DeleteRangeRequest{Key: []byte("a"), RangeEnd: []byte("c")}, []proxy.KeyRange{{From: "a", To: "c"}}},
		{"etcdserverpb.KV/DeleteRange", &pb.DeleteRangeRequest{Key: []byte("a"), RangeEnd: []byte{0}}, []proxy.KeyRange{{From: "a"}}},
		{"etcdserverpb.KV/Txn", &pb.TxnRequest{Success: []*pb.RequestOp{deleteOp("a"), rangeOp(&pb.RangeRequest{Key: []byte("x")})}, Failure: []*pb.RequestOp{putOp(&pb.PutRequest{Key: []byte("b")})}},
			[]proxy.KeyRange{proxy.Only("a"), proxy.Only("b")}},
		{"etcdserverpb.KV/Txn", &pb.TxnRequest{Success: []*pb.RequestOp{deleteOp("a"), within(deleteOp("b"))}}, nil},
		{"etcdserverpb.KV/Put", &pb.PutRequest{Key: []byte("a"), Value: bytes.Repeat([]byte("v"), maxRead)}, nil},
		{"etcdserverpb.KV/Txn", &pb.RangeRequest{Limit: 7}, nil}, // malformed
		{"etcdserverpb.Lease/LeaseRevoke", &pb.LeaseRevokeRequest{ID: lease}, nil},
		{"etcdserverpb.Auth/UserAdd", &pb.AuthUserAddRequest{Name: "me"}, nil},
		{"v3lockpb.Lock/Lock", fielded{1: "x"}, []proxy.KeyRange{proxy.Below("x/")}},
		{"v3lockpb.Lock/Unlock", fielded{1: "x/1"}, []proxy.KeyRange{proxy.Only("x/1")}},
		{"v3electionpb.Election/Campaign", fielded{1: "x"}, []proxy.KeyRange{proxy.Below("x/")}},
		{"v3electionpb.Election/Resign", fielded{1: fielded{2: "x/1"}.String()}, []proxy.KeyRange{proxy.Only("x/1")}},
	} {
		talk, p := Wire{}.Begin(), newPen()
		p.open(1, "/"+c.path)
		for b := prefixed(encoded(c.says)); len(b) > 0; b = b[min(len(b), 16384):] {
			p.must(p.framer.WriteData(1, len(b) <= 16384, b[:min(len(b), 16384)]))
		}
		var got []proxy.KeyRange
		asked := false
		for b := append([]byte(http2.ClientPreface), p.cut()...); len(b) > 0 && !asked; {
			asks, n, err := talk.Request(b)
			if n == 0 || err != nil {
				t.Fatal(n, err)
			}
			b, got, asked = b[n:], asks.Within, len(asks.Words) > 0
		}
		if !asked || !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s of %v changes %q, want %q", c.path, c.says, got, c.want)
		}
	}
}

// What only reads can't have taken a lock, nor given it back.
func TestReads(t *testing.T) {
	for words, want := range map[string]bool{
		"RANGE": true, "WATCH": true, "LEASEGRANT": true, "AUTHENTICATE": true, "TXN RANGE RANGE": true, "TXN": true,
		"PUT": false, "TXN PUT RANGE": false, "TXN RANGE TXN": false, "LEASEREVOKE": false, "LEASEKEEPALIVE": false, "CANCEL": false, "RANGE DELETERANGE": false, "LOCK": false,
	} {
		if got := reads(strings.Fields(words)); got != want {
			t.Errorf("%s reads: %t", words, got)
		}
	}
}

// What can't be read may be anything.
func TestReadsWhatIsLong(t *testing.T) {
	for compressed, want := range map[byte]bool{0: true, 1: false} {
		e, p := listen(t), newPen()
		b := prefixed(encoded(&pb.TxnRequest{Success: []*pb.RequestOp{rangeOp(&pb.RangeRequest{Key: []byte("a")})}}))
		b[0] = compressed
		if r, n, err := e.talk.Request(p.open(1, "/etcdserverpb.KV/Txn").must(p.framer.WriteData(1, true, b)).cut()); n == 0 || err != nil || r.Reads != want {
			t.Errorf("%d: %+v %d %v, want %t", compressed, r, n, err, want)
		}
	}
}

// TestStreams checks that unsolicited server messages answer no request, and that a watch's next
// request is answered by the message after it.
func TestStreams(t *testing.T) {
	e, up, down := listen(t), newPen(), newPen()
	watch := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte("a")}}}
	keep := &pb.LeaseKeepAliveRequest{ID: lease}
	want(t, e.requests(up.open(1, "/etcdserverpb.Watch/Watch").says(1, false, watch).cut()), "WATCH: WATCH a")
	want(t, e.requests(up.open(3, "/etcdserverpb.Lease/LeaseKeepAlive").says(3, false, keep).cut()), `LEASEKEEPALIVE: LEASEKEEPALIVE … ["694d98ab01234567"] silent opens`)
	down.begins(3).says(3, false, &pb.LeaseKeepAliveResponse{TTL: 4}).begins(1).says(1, false, &pb.WatchResponse{Header: header, Created: true})
	want(t, e.answers(down.cut()), "0: answer to LEASEKEEPALIVE: ttl 4 s", "2: watching revision 7")
	gone := &mvccpb.Event{Type: mvccpb.DELETE, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: 9}}
	put := &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: []byte("a"), ModRevision: 8, Value: []byte("mine")}}
	many := &pb.WatchResponse{Events: slices.Repeat([]*mvccpb.Event{{Kv: &mvccpb.KeyValue{Key: []byte("a")}}}, 20)}
	down.says(1, false, &pb.WatchResponse{Header: header, Events: []*mvccpb.Event{put, gone, {}}}, &pb.WatchResponse{Header: header}, many)
	want(t, e.answers(down.cut()), `0: put a revision 8, deleted lock/… revision 9, put ["mine" "694d98ab01234567"]`, "0: progress revision 7", "0: put a revision 0"+strings.Repeat(", put a revision 0", 15))
	want(t, e.requests(up.says(1, false, watch, watch).cut()), "WATCH: WATCH a", "WATCH: WATCH a") // the fourth request and the fifth
	want(t, e.answers(down.says(1, false, &pb.WatchResponse{Header: header, Created: true}).cut()), "4: watching revision 7")
	want(t, e.answers(down.ends(1, "14", "no%20leader").cut()), "5: Unavailable: no leader")
	want(t, e.answers(down.ends(3, "0", "").cut()))
	want(t, e.requests(up.says(1, true, watch).cut())) // too late
	want(t, e.answers(down.says(1, true, &pb.WatchResponse{}).cut()))
}

// TestOvertaking checks that answers are assigned to their requests in any order, also after a
// failed call or a canceled one.
func TestOvertaking(t *testing.T) {
	e, up, down := listen(t), newPen(), newPen()
	del := &pb.DeleteRangeRequest{Key: []byte("a")}
	for id := uint32(1); id <= 9; id += 2 { // requests 2 to 6
		want(t, e.requests(up.open(id, "/etcdserverpb.KV/DeleteRange").says(id, true, del).cut()), "DELETERANGE: DELETERANGE a")
	}
	done := &pb.DeleteRangeResponse{Header: header, Deleted: 1}
	want(t, e.answers(down.begins(5).says(5, false, done).ends(5, "0", "").cut()), "4: deleted 1 revision 7")
	want(t, e.answers(down.ends(1, "5", "etcdserver%3A not found").cut()), "2: NotFound: etcdserver: not found")
	want(t, e.requests(up.must(up.framer.WriteRSTStream(3, http2.ErrCodeCancel)).cut()), "CANCEL: CANCEL of DELETERANGE silent opens gives up [3]")
	want(t, e.answers(down.begins(3).says(3, false, done).ends(3, "0", "").cut())) // whoever asked has gone
	want(t, e.requests(up.must(up.framer.WriteRSTStream(1, http2.ErrCodeCancel)).cut()))
	want(t, e.answers(down.must(down.framer.WriteRSTStream(7, http2.ErrCodeRefusedStream)).cut()), "5: call ended (refused_stream)")
	want(t, e.answers(down.must(down.framer.WriteGoAway(9, http2.ErrCodeNo, nil)).cut()), "0: the server goes (no_error)")
	want(t, e.answers(down.begins(9).ends(9, "0", "").cut()), "6: OK")
	e.requests(up.open(13, "/etcdserverpb.KV/DeleteRange").says(13, false, del).cut())
	want(t, e.answers(down.begins(13).says(13, true, done).cut()), "9: deleted 1 revision 7")
	want(t, e.requests(up.must(up.framer.WriteRSTStream(13, http2.ErrCodeCancel)).cut())) // it is over
	// Several that are owed in one call end with it.
	watch := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: new(pb.WatchProgressRequest)}}
	e.requests(up.open(15, "/etcdserverpb.Watch/Watch").says(15, false, watch, watch, watch).cut())
	want(t, e.answers(down.ends(15, "14", "").cut()), "11: Unavailable gives up [12 13]")
}

// What opens a call goes with what is asked there, but nothing else waits for it.
func TestOpening(t *testing.T) {
	e, p := listen(t), newPen()
	p.must(p.framer.WriteSettings()).must(p.framer.WritePing(false, [8]byte{}))
	if got := e.requests(p.cut()); !slices.Equal(got, []string{"quiet", "quiet"}) {
		t.Error(got)
	}
	opens := p.open(1, "/etcdserverpb.KV/Range").open(3, "/etcdserverpb.KV/Range").cut()
	if got := e.requests(opens); len(got) > 0 {
		t.Error(got)
	}
	if got := e.requests(p.must(p.framer.WriteWindowUpdate(0, 1)).cut()); !slices.Equal(got, []string{"quiet"}) || len(e.up) > 0 {
		t.Error(got)
	}
	// One message in two frames, and two in one.
	one := prefixed(encoded(&pb.RangeRequest{Key: []byte("a")}))
	p.must(p.framer.WriteData(3, false, one[:3])).must(p.framer.WriteDataPadded(3, false, one[3:], make([]byte, 2)))
	if got := e.requests(p.cut()); !slices.Equal(got, []string{"quiet", "RANGE: RANGE a"}) {
		t.Error(got)
	}
	want(t, e.requests(p.must(p.framer.WriteData(3, true, slices.Concat(one, one))).cut()), "RANGE,RANGE: RANGE a; RANGE a")
	// Headers that need several frames, are indexed, or say all that there is.
	block := p.block(":method", "POST", ":scheme", "http", ":path", "/etcdserverpb.KV/Range", "content-type", "application/grpc")
	p.must(p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 5, BlockFragment: block[:2]})).must(p.framer.WriteContinuation(5, false, block[2:3]))
	if got := e.requests(p.cut()); len(got) > 0 {
		t.Error(got)
	}
	p.must(p.framer.WriteContinuation(5, true, block[3:])).must(p.framer.WriteData(5, true, one))
	want(t, e.requests(p.cut()), "RANGE: RANGE a")
	p.must(p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 7, BlockFragment: p.block(":method", "GET", ":scheme", "http", ":path", "/"), EndHeaders: true, EndStream: true}))
	if got := e.requests(p.cut()); !slices.Equal(got, []string{"quiet"}) {
		t.Error(got)
	}
	// A table of headers may be larger than at first.
	p.table.SetMaxDynamicTableSizeLimit(64 << 10)
	p.table.SetMaxDynamicTableSize(64 << 10)
	want(t, e.requests(p.open(17, "/etcdserverpb.KV/Range").must(p.framer.WriteData(17, true, one)).cut()), "RANGE: RANGE a")
	// Headers that are none are the server's business.
	p.must(p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 9, BlockFragment: p.block("Upper Case", "x"), EndHeaders: true}))
	p.must(p.framer.WriteData(9, true, one))
	want(t, e.requests(p.open(11, "/etcdserverpb.KV/Range").says(11, true, &pb.RangeRequest{Key: []byte("b")}).cut()), "RANGE: RANGE b")
	compressed := append([]byte{1}, one[1:]...)
	want(t, e.requests(p.open(13, "/etcdserverpb.KV/Range").must(p.framer.WriteData(13, true, compressed)).cut()), "RANGE: RANGE (compressed)")
}

// What is no HTTP/2 is carried as it is, in both directions.
func TestBlind(t *testing.T) {
	e := &ear{t: t, talk: Wire{}.Begin()}
	post := []byte("POST /v3/kv/put HTTP/1.1\r\n\r\n")
	if _, n, err := e.talk.Request(post[:1]); n != 0 || err != nil {
		t.Fatal("a P may become anything", n, err)
	}
	for _, b := range [][]byte{post, []byte("more")} {
		r, n, err := e.talk.Request(b)
		if n != len(b) || err != nil || !r.Silent || r.Quiet || !slices.Equal(r.Words, []string{proxy.AnyBytes}) {
			t.Error(r, n, err)
		}
	}
	if r, n, err := e.talk.Reply(post); n != len(post) || err != nil || r.Answers != 0 || r.Quiet {
		t.Error(r, n, err)
	}
}

// What isn't HTTP/2 after all is refused, and so is what would fill the memory.
func TestRefused(t *testing.T) {
	huge := append([]byte{0xff, 0xff, 0xff, byte(http2.FrameData), 0, 0, 0, 0, 1}, 0)
	bad := newPen().must(nil)
	bad.must(bad.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true}))
	for name, b := range map[string][]byte{"too long": huge, "no headers": bad.cut(), "a setting of five bytes": {0, 0, 5, byte(http2.FrameSettings), 0, 0, 0, 0, 0, 1, 2, 3, 4, 5}} {
		e := listen(t)
		if r, n, err := e.talk.Request(b); n != 0 || err == nil {
			t.Errorf("%s: %v %d", name, r, n)
		}
		if r, n, err := e.talk.Reply(b); n != 0 || err == nil {
			t.Errorf("%s: %v %d", name, r, n)
		}
	}
}

// Every method of etcd has a name that scripts know.
func TestNames(t *testing.T) {
	s := grpc.NewServer()
	pb.RegisterKVServer(s, nil)
	pb.RegisterWatchServer(s, nil)
	pb.RegisterLeaseServer(s, nil)
	pb.RegisterClusterServer(s, nil)
	pb.RegisterMaintenanceServer(s, nil)
	pb.RegisterAuthServer(s, nil)
	has := map[string]bool{}
	for service, info := range s.GetServiceInfo() {
		for _, m := range info.Methods {
			word := methodOf("/" + service + "/" + m.Name).word
			has[word] = true
			if !slices.Contains(faults.EtcdRequests(), word) {
				t.Errorf("scripts don't know %s of %s", word, service)
			}
		}
	}
	of := []string{"LOCK", "UNLOCK", "CAMPAIGN", "PROCLAIM", "LEADER", "OBSERVE", "RESIGN", wordCancel, wordCall} // of services that a client's module hasn't, or of none
	for _, word := range faults.EtcdRequests() {
		if !has[word] && !slices.Contains(of, word) {
			t.Errorf("there is no %s", word)
		}
	}
}

// conversation is one of all kinds of messages.
func conversation() (up, down []byte) {
	ask, say := newPen(), newPen()
	ask.WriteString(http2.ClientPreface)
	ask.must(ask.framer.WriteSettings()).open(1, "/etcdserverpb.KV/Txn").says(1, true, &pb.TxnRequest{Compare: []*pb.Compare{created("a", 0)}, Success: []*pb.RequestOp{deleteOp("a")}})
	ask.open(3, "/etcdserverpb.Lease/LeaseKeepAlive").must(ask.framer.WritePing(false, [8]byte{})).says(3, false, &pb.LeaseKeepAliveRequest{ID: lease})
	ask.open(5, "/etcdserverpb.Watch/Watch").open(7, "/etcdserverpb.KV/Range").says(7, true, &pb.RangeRequest{Key: []byte("a")}).must(ask.framer.WriteRSTStream(7, http2.ErrCodeCancel))
	say.must(say.framer.WriteSettings()).begins(1).says(1, false, &pb.TxnResponse{Header: header, Succeeded: true}).ends(1, "0", "")
	say.begins(3).says(3, false, &pb.LeaseKeepAliveResponse{TTL: 3}).must(say.framer.WriteWindowUpdate(0, 9)).ends(5, "14", "no").must(say.framer.WriteGoAway(9, 0, nil))
	return ask.cut(), say.cut()
}

// However a connection is cut into pieces the same messages are found.
func TestPieces(t *testing.T) {
	up, down := conversation()
	whole := proxytest.Converse(t, Wire{}, up, down, len(up)+len(down), nil)
	if got := strings.Count(whole, "\n"); got != 16 {
		t.Errorf("%d messages:\n%s", got, whole)
	}
	for step := 1; step < 64; step++ {
		if got := proxytest.Converse(t, Wire{}, up, down, step, nil); got != whole {
			t.Errorf("pieces of %d: %s\nwhole: %s", step, got, whole)
		}
	}
}

// Nothing that is sent makes a reader fail, take what isn't there, or depend on how it comes.
func FuzzTalk(f *testing.F) {
	up, down := conversation()
	f.Add(up, down, byte(3))
	f.Add(up[len(http2.ClientPreface):], down, byte(9))
	f.Add(up[:len(up)-9], down[:len(down)-3], byte(0))
	f.Fuzz(func(t *testing.T, up, down []byte, step byte) {
		whole, pieces := proxytest.Converse(t, Wire{}, up, down, len(up)+len(down), nil), proxytest.Converse(t, Wire{}, up, down, 1+int(step), nil)
		if !strings.HasPrefix(string(up), http2.ClientPreface) { // what came at once is one
			return
		}
		if whole != pieces {
			t.Errorf("whole:  %s\npieces: %s", whole, pieces)
		}
	})
}

func BenchmarkTalk(b *testing.B) {
	up, down := conversation()
	for b.Loop() {
		proxytest.Converse(b, Wire{}, up, down, 1<<16, func(any) string { return "" })
	}
}
