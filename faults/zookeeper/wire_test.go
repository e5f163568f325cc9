package zookeeper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/faults/real/proxy/proxytest"
)

// jute writes values one behind the other: int32, int64, bool, strings and bytes with their lengths before them, raw as it is.
func jute(values ...any) (b []byte) {
	for _, v := range values {
		switch v := v.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		case bool:
			b = append(b, 0)
			if v {
				b[len(b)-1] = 1
			}
		case string:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
		case raw:
			b = append(b, v...)
		default:
			panic(fmt.Sprintf("%T", v))
		}
	}
	return b
}

type raw []byte

// framed is a message with its length before it.
func framed(values ...any) []byte {
	body := jute(values...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// request returns a request with an xid and an operation.
func request(xid, code int, values ...any) []byte {
	return framed(append([]any{xid, code}, values...)...)
}

// answer returns an answer to an xid, at the zxid 0x100000012.
func answer(xid, failure int, values ...any) []byte {
	return framed(append([]any{xid, int64(0x100000012), failure}, values...)...)
}

var (
	connect = framed(0, int64(7), 4000, int64(0), "sixteen hidden b")
	session = framed(0, 4000, int64(0x1234567), "sixteen hidden b", false)
	// world is who may do what, of two.
	world = raw(jute(2, 31, "world", "anyone", 31, "digest", "user:hidden"))
	// node is a Stat.
	node = raw(jute(int64(0x10000000a), int64(0x10000000b), int64(1), int64(2), 3, 4, 5, int64(0x77), 6, 2, int64(0x10000000c)))
)

const guid = "0123456789abcdef0123456789abcdef"

// greeted returns the talk of a connection that has a session.
func greeted(t rapid.TB) *talk {
	t.Helper()
	k := Wire{}.Begin().(*talk)
	if asks, n, err := k.Request(connect); n != len(connect) || err != nil || !asks.Opens || asks.Silent {
		t.Fatal(asks, n, err)
	}
	if says, n, err := k.Reply(session); n != len(session) || err != nil || says.Answers != 1 {
		t.Fatal(says, n, err)
	}
	return k
}

// read is what is said of a request.
func read(asks proxy.Request) string {
	text := strings.Join(asks.Words, ",") + ": " + proxytest.PartsText(asks.Parts)
	if asks.Silent {
		text += " silent"
	}
	if asks.Opens {
		text += " opens"
	}
	return text
}

// What a request may change is known but where it may be anything.
func TestWithin(t *testing.T) {
	header := func(kind int) raw { return jute(kind, false, -1) }
	end := raw(jute(-1, true, -1))
	for _, c := range []struct {
		code int
		says []any
		want []proxy.KeyRange
	}{
		{opCreate, []any{"/a", "", world, 3}, []proxy.KeyRange{proxy.Below("/a")}},
		{opDelete, []any{"/a", -1}, []proxy.KeyRange{proxy.Only("/a")}},
		{opSetData, []any{"/a", "mine", 2}, []proxy.KeyRange{proxy.Only("/a")}},
		{opSetACL, []any{"/a", world, 2}, []proxy.KeyRange{proxy.Only("/a")}},
		{opMulti, []any{header(opCheck), "/x", 0, header(opDelete), "/a", -1, header(opSetData), "/b", "", -1, end}, []proxy.KeyRange{proxy.Only("/a"), proxy.Only("/b")}},
		{opMulti, []any{header(opDelete), "/a", -1, header(opMulti), end}, nil}, // malformed
		{opDelete, []any{}, nil},
		{opClose, nil, nil},
	} {
		body := append([]any{1, c.code}, c.says...)
		asks, n, err := greeted(t).Request(framed(body...))
		if n == 0 || err != nil {
			t.Fatal(n, err)
		}
		if got := asks.Within; !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%s changes %q, want %q", read(asks), got, c.want)
		}
	}
}

func TestRequests(t *testing.T) {
	protected := "/lock/_c_" + guid + "-lock-"
	header := func(kind int) raw { return jute(kind, false, -1) }
	end := raw(jute(-1, true, -1))
	many := []any{header(opCheck), "/a", 0}
	for range 20 {
		many = append(many, header(opDelete), "/b", -1)
	}
	many = append(many, header(opSetData), "/c", "", -1, end)
	for _, c := range []struct {
		name string
		code int
		says []any
		want string
	}{
		{"create", opCreate, []any{protected, "", world, 3}, `CREATE: CREATE /lock/_c_…-lock- ephemeral sequential ["` + guid + `"]`},
		{"create, no acl", opCreate, []any{"/a", -1, -1, 0}, `CREATE: CREATE /a`},
		{"create2", opCreate2, []any{"/a", "mine", world, 1}, `CREATE: CREATE /a ephemeral ["mine"]`},
		{"container", opCreateContainer, []any{"/a", "", world, 4}, `CREATE: CREATE /a container`},
		{"ttl", opCreateTTL, []any{"/a", "x", world, 6, int64(500)}, `CREATE: CREATE /a sequential ttl 500 ms ["x"]`},
		{"sequential", opCreate, []any{"/a", "", world, 2}, `CREATE: CREATE /a sequential`},
		{"ttl, not sequential", opCreateTTL, []any{"/a", "", world, 5, int64(9)}, `CREATE: CREATE /a ttl 9 ms`},
		{"unknown flags", opCreate, []any{"/a", "", world, 9}, `CREATE: CREATE /a flags 9`},
		{"curator", opCreate, []any{"/l/_c_01234567-89ab-cdef-0123-456789abcdef-x", "\x00\xff", world, 3}, `CREATE: CREATE /l/_c_…-x ephemeral sequential ["01234567-89ab-cdef-0123-456789abcdef" "\\x00ff"]`},
		{"delete", opDelete, []any{"/a", -1}, `DELETE: DELETE /a`},
		{"delete a version", opDelete, []any{"/a", 3}, `DELETE: DELETE /a version 3`},
		{"exists", opExists, []any{"/a", false}, `EXISTS: EXISTS /a`},
		{"get data", opGetData, []any{"/a", true}, `GETDATA: GETDATA /a watch`},
		{"set data", opSetData, []any{"/a", "mine", 2}, `SETDATA: SETDATA /a version 2 ["mine"]`},
		{"get acl", opGetACL, []any{"/a"}, `GETACL: GETACL /a`},
		{"set acl", opSetACL, []any{"/a", world, 2}, `SETACL: SETACL /a version 2`},
		{"children", opGetChildren, []any{"/a", false}, `GETCHILDREN: GETCHILDREN /a`},
		{"children2", opGetChildren2, []any{"/a", true}, `GETCHILDREN: GETCHILDREN /a watch`},
		{"sync", opSync, []any{"/a"}, `SYNC: SYNC /a`},
		{"check", opCheck, []any{"/a", 1}, `CHECK: CHECK /a version 1`},
		{"multi", opMulti, []any{header(opCreate), "/a", "d", world, 0, header(opSetData), "/b", "e", -1, header(opCheck), "/c", 1, end},
			`MULTI,CREATE,SETDATA,CHECK: MULTI; CREATE /a ["d"]; SETDATA /b ["e"]; CHECK /c version 1`},
		{"multi of nothing", opMulti, []any{end}, `MULTI: MULTI`},
		{"much", opMulti, many, `MULTI,CHECK` + strings.Repeat(",DELETE", 15) + `,SETDATA: MULTI; CHECK /a version 0` + strings.Repeat("; DELETE /b", 15) + `; SETDATA /c`},
		{"multi without an end", opMulti, []any{header(opCheck), "/c", 1}, `MULTI,CHECK: MULTI (malformed); CHECK /c version 1`},
		{"multi in multi", opMulti, []any{header(opMulti), end}, `MULTI: MULTI (malformed)`},
		{"several reads", opMultiRead, []any{header(opGetData), "/a", false, header(opGetChildren), "/b", true, end}, `MULTIREAD,GETDATA,GETCHILDREN: MULTIREAD; GETDATA /a; GETCHILDREN /b watch`},
		{"auth", opAuth, []any{0, "digest", "user:hidden"}, `AUTH: AUTH digest (secret) opens`},
		{"sasl", opSASL, []any{"hidden"}, `SASL: SASL (secret) opens`},
		{"watches", opSetWatches, []any{int64(1), 0, 0, 0}, `SETWATCHES: SETWATCHES opens`},
		{"watches2", opSetWatches2, []any{int64(1), 0, 0, 0, 0, 0}, `SETWATCHES: SETWATCHES opens`},
		{"ping", opPing, nil, `PING: PING silent opens`},
		{"close", opClose, nil, `CLOSE: CLOSE opens`},
		{"who", opWhoAmI, nil, `WHOAMI: WHOAMI`},
		{"reconfig", opReconfig, []any{"", "", "", int64(-1)}, `RECONFIG: RECONFIG`},
		{"cut short", opCreate, []any{"/a"}, `CREATE: CREATE (malformed)`},
		{"too long a path", opExists, []any{1 << 30, true}, `EXISTS: EXISTS (malformed)`},
		{"negative length", opExists, []any{-2, true}, `EXISTS: EXISTS (malformed)`},
		{"too long a list", opCreate, []any{"/a", "", 1 << 30, 0}, `CREATE: CREATE (malformed)`},
		{"long", opExists, []any{"/" + strings.Repeat("ä", 200), false}, `EXISTS: EXISTS /` + strings.Repeat("ä", proxy.MaxText-2) + "…"},
		{"no text", opExists, []any{"/a\xff\nb", false}, "EXISTS: EXISTS /a\uFFFD b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := request(5, c.code, c.says...)
			asks, n, err := greeted(t).Request(append(slices.Clone(b), "more"...))
			if got := read(asks); n != len(b) || err != nil || got != c.want {
				t.Errorf("got %s\nwant %s\n%d of %d bytes, %v", got, c.want, n, len(b), err)
			}
			if strings.Contains(fmt.Sprint(asks), "hidden") {
				t.Error("it shows a password")
			}
			for _, word := range asks.Words {
				if !slices.Contains(faults.ZooKeeperRequests(), word) {
					t.Errorf("scripts don't know %s", word)
				}
			}
			if len(asks.Parts) != len(asks.Words) {
				t.Errorf("%d words, %d parts", len(asks.Words), len(asks.Parts))
			}
		})
	}
}

func TestSessions(t *testing.T) {
	for _, c := range []struct {
		name           string
		asks, gives    []byte
		wants, answers string
	}{
		{"new", connect, session, "CONNECT: CONNECT new session of 4000 ms opens", "session of 4000 ms"},
		{"again", framed(0, int64(7), 4000, int64(9), "hidden", true), framed(0, 4000, int64(9), "hidden"), "CONNECT: CONNECT session of 4000 ms again opens", "session of 4000 ms"},
		{"expired", framed(0, int64(7), 4000, int64(9), "hidden"), framed(0, 0, int64(0), "hidden"), "CONNECT: CONNECT session of 4000 ms again opens", "session expired"},
	} {
		k := Wire{}.Begin()
		asks, n, err := k.Request(c.asks)
		if read(asks) != c.wants || n != len(c.asks) || err != nil {
			t.Errorf("%s: asks %s, want %s: %d %v", c.name, read(asks), c.wants, n, err)
		}
		says, n, err := k.Reply(c.gives)
		if proxytest.PartsText(says.Parts) != c.answers || says.Answers != 1 || n != len(c.gives) || err != nil {
			t.Errorf("%s: says %s to %d, want %s: %d %v", c.name, proxytest.PartsText(says.Parts), says.Answers, c.answers, n, err)
		}
		if strings.Contains(fmt.Sprint(asks, says), "hidden") {
			t.Errorf("%s: it shows a session's password", c.name)
		}
	}
}

func TestAnswers(t *testing.T) {
	protected := "/lock/_c_" + guid + "-lock-0000000001"
	kind := func(code, failure int) raw { return jute(code, false, failure) }
	end := raw(jute(-1, true, -1))
	children := []any{20}
	for i := range 20 {
		children = append(children, fmt.Sprintf("c%02d", i))
	}
	for _, c := range []struct {
		name    string
		code    int
		failure int
		says    []any
		want    string
	}{
		{"created", opCreate, 0, []any{protected}, `/lock/_c_…-lock-0000000001 zxid 0x100000012 ["` + guid + `"]`},
		{"created2", opCreate2, 0, []any{"/a", node}, `/a zxid 0x100000012`},
		{"deleted", opDelete, 0, nil, `ok zxid 0x100000012`},
		{"exists", opExists, 0, []any{node}, `czxid 0x10000000a version 3 children 2`},
		{"data", opGetData, 0, []any{"mine", node}, `czxid 0x10000000a version 3 children 2 ["mine"]`},
		{"set", opSetData, 0, []any{node}, `version 3 zxid 0x100000012`},
		{"acl", opGetACL, 0, []any{world, node}, `ok`},
		{"acl set", opSetACL, 0, []any{node}, `ok zxid 0x100000012`},
		{"children", opGetChildren2, 0, []any{2, "_c_" + guid + "-lock-0000000001", "b", node}, `_c_…-lock-0000000001 b ["` + guid + `"]`},
		{"too many to read", opGetChildren, 0, []any{maxNames + 1, raw(make([]byte, 4*(maxNames+1)))}, `1001 in all`},
		{"in order", opGetChildren, 0, []any{2, "_c_" + guid + "-lock-0000000002", "_c_f" + guid[1:] + "-lock-0000000001"}, `_c_…-lock-0000000001 _c_…-lock-0000000002 ["f` + guid[1:] + `" "` + guid + `"]`},
		{"no children", opGetChildren, 0, []any{0}, `none`},
		{"many children", opGetChildren, 0, children, `c00 c01 c02 c03 c04 c05 c06 c07 c08 c09 c10 c11 c12 c13 c14 c15 … 20 in all`},
		{"number", opGetAllChildrenNumber, 0, []any{7}, `7`},
		{"synced", opSync, 0, []any{"/a"}, `ok`},
		{"auth", opAuth, 0, nil, `ok`},
		{"auth failed", opAuth, -115, nil, `auth failed`},
		{"no node", opDelete, -101, nil, `no node`},
		{"node exists", opCreate, -110, nil, `node exists`},
		{"no auth", opCreate, -102, nil, `no auth`},
		{"session expired", opCreate, -112, nil, `session expired`},
		{"bad version", opSetData, -103, nil, `bad version`},
		{"new error", opSetData, -99, nil, `error -99`},
		{"multi", opMulti, 0, []any{kind(opCreate, 0), "/a", kind(opSetData, 0), node, kind(opDelete, 0), kind(opCheck, 0), end}, `/a; version 3; ok; ok`},
		{"multi failed", opMulti, -103, []any{kind(opError, 0), 0, kind(opError, -103), -103, end}, `ok; bad version`},
		{"multi refused", opMulti, -102, nil, `no auth`},
		{"multi of nothing", opMulti, 0, []any{end}, `ok`},
		{"reads", opMultiRead, 0, []any{kind(opGetData, 0), "d", node, kind(opError, -101), -101, end}, `czxid 0x10000000a version 3 children 2 ["d"]; no node`},
		{"cut short", opCreate, 0, []any{1}, `(malformed) zxid 0x100000012`},
		{"too long a list", opGetChildren, 0, []any{1 << 30}, `(malformed)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := greeted(t)
			if _, n, err := k.Request(request(5, c.code)); n == 0 || err != nil {
				t.Fatal(n, err)
			}
			b := answer(5, c.failure, c.says...)
			says, n, err := k.Reply(append(slices.Clone(b), "more"...))
			if got := proxytest.PartsText(says.Parts); got != c.want || says.Answers != 2 || n != len(b) || err != nil {
				t.Errorf("got %s to %d\nwant %s\n%d of %d bytes, %v", got, says.Answers, c.want, n, len(b), err)
			}
			if strings.Contains(fmt.Sprint(says), "hidden") {
				t.Error("it shows a password")
			}
			if len(k.unanswered) > 0 {
				t.Errorf("%v has still no answer", k.unanswered)
			}
		})
	}
}

// TestUnasked checks that unsolicited server messages answer no request.
func TestUnasked(t *testing.T) {
	k := greeted(t)
	if _, _, err := k.Request(request(1, opGetData, "/a", true)); err != nil {
		t.Fatal(err)
	}
	for want, b := range map[string][]byte{
		"answer to PING":                       answer(xidPing, 0),
		"node deleted /a/… [\"" + guid + "\"]": framed(xidEvent, int64(-1), 0, 2, 3, "/a/"+guid),
		"data changed /a":                      framed(xidEvent, int64(-1), 0, 3, 3, "/a"),
		"session state -112":                   framed(xidEvent, int64(-1), 0, -1, -112, ""),
		"event 99 /a":                          framed(xidEvent, int64(-1), 0, 99, 3, "/a"),
		"event (malformed)":                    framed(xidEvent, int64(-1), 0, 2),
		"answer to xid 7, which nobody asked":  answer(7, 0),
		"answer to xid -4, which nobody asked": answer(-4, 0),
	} {
		if says, n, err := k.Reply(b); proxytest.PartsText(says.Parts) != want || says.Answers != 0 || n != len(b) || err != nil {
			t.Errorf("says %s to %d, want %s: %d %v", proxytest.PartsText(says.Parts), says.Answers, want, n, err)
		}
	}
	if says, _, err := k.Reply(answer(1, -101)); says.Answers != 2 || err != nil {
		t.Error(says, err)
	}
}

// TestPipelined checks that answers are assigned by xid: after lost requests, around pings, and for
// logins, which are answered before other requests.
func TestPipelined(t *testing.T) {
	k := greeted(t)
	for _, b := range [][]byte{
		request(1, opSync, "/a"), request(-2, opPing), request(2, opExists, "/a", true), request(3, opDelete, "/a", -1), // numbers 2 to 5
		request(-4, opAuth, 0, "digest", "x"), request(-8, opSetWatches, int64(1), 0, 0, 0), request(4, opDelete, "/b", -1), request(1, opSync, "/b"), // to 9
		request(5, opClose),
	} {
		if _, n, err := k.Request(b); n != len(b) || err != nil {
			t.Fatal(n, err)
		}
	}
	var got []int
	for _, b := range [][]byte{
		answer(2, -101),              // so what asked before it was lost
		answer(-2, 0), answer(-4, 0), // who logs in
		answer(3, 0), answer(-8, 0), answer(1, 0, "/b"), // the second of that xid, so 4 was lost
		answer(4, 0), // which comes too late
		answer(5, 0),
	} {
		says, n, err := k.Reply(b)
		if n != len(b) || err != nil {
			t.Fatal(n, err)
		}
		got = append(got, says.Answers)
		if login := says.Answers == 6; says.Overtakes != login {
			t.Errorf("the answer to %d overtakes: %t", says.Answers, says.Overtakes)
		}
	}
	if want := []int{4, 0, 6, 5, 7, 9, 0, 10}; !slices.Equal(got, want) {
		t.Errorf("answers to %v, want %v", got, want)
	}
	// Who logs in when nobody else waits is answered.
	if _, _, err := k.Request(request(-4, opAuth, 0, "digest", "x")); err != nil {
		t.Fatal(err)
	}
	if says, _, err := k.Reply(answer(-4, -115)); says.Answers != 11 || proxytest.PartsText(says.Parts) != "auth failed" || err != nil {
		t.Error(says, err)
	}
}

// TestRefused checks that bytes that violate ZooKeeper's protocol are refused, and that the error
// describes them.
func TestRefused(t *testing.T) {
	fresh := func() *talk { return Wire{}.Begin().(*talk) }
	for _, c := range []struct {
		name string
		talk *talk
		up   bool
		b    []byte
		why  string
	}{
		{"four letters", fresh(), true, []byte("srvr"), `more than 16777216 bytes, which begins with "srvr"`},
		{"TLS", fresh(), true, []byte("\x16\x03\x01\x02\x00"), `which begins with "\x16\x03\x01\x02"`},
		{"negative", fresh(), true, jute(-5), "a message of -5 bytes"},
		{"nothing", fresh(), true, jute(0), "begins with 0 bytes which ask for no session"},
		{"no session", fresh(), true, request(1, opPing), "ask for no session"},
		{"another version", fresh(), true, framed(1, int64(7), 4000, int64(0), "x"), "ask for no session"},
		{"too long a password", fresh(), true, framed(0, int64(7), 4000, int64(0), 1<<30), "ask for no session"},
		{"short", greeted(t), true, framed(1), "a request of 4 bytes"},
		{"empty", greeted(t), true, framed(), "a request of 0 bytes"},
		{"an operation", greeted(t), true, request(1, 99), "no request has the operation 99"},
		{"too long", greeted(t), true, jute(proxy.MaxMessage-3, "x"), "more than 16777216 bytes"},
		{"a server's", greeted(t), true, session, "no request has the operation 4000"},
		{"gives none", fresh(), false, answer(1, 0), "gives no session"},
		{"short answer", greeted(t), false, framed(1, int64(1)), "an answer of 12 bytes"},
		{"negative answer", greeted(t), false, jute(-1), "a message of -1 bytes"},
		{"too long an answer", greeted(t), false, jute(1<<30, "x"), "more than 16777216 bytes"},
	} {
		var n int
		var err error
		if c.up {
			_, n, err = c.talk.Request(c.b)
		} else {
			_, n, err = c.talk.Reply(c.b)
		}
		if n != 0 || !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %d, %v, want %s", c.name, n, err, c.why)
		}
	}
	// The longest there may be is none of these, and waits for its end.
	if _, n, err := greeted(t).Request(jute(proxy.MaxMessage-4, "x")); n != 0 || err != nil {
		t.Error(n, err)
	}
}

// Every operation has a name that scripts know, and scripts know no other.
func TestNames(t *testing.T) {
	known := faults.ZooKeeperRequests()
	has := map[string]bool{wordConnect: true}
	for code, word := range words {
		has[word] = true
		if !slices.Contains(known, word) {
			t.Errorf("scripts don't know %s, which is %d", word, code)
		}
	}
	for _, word := range known {
		if !has[word] {
			t.Errorf("there is no %s", word)
		}
	}
}

// However a stream is cut into pieces the same messages are found.
func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := Wire{}.Begin().(*talk)
		asked := [][]byte{connect, request(1, opCreate, "/a", "mine", world, 3), request(-2, opPing), request(2, opGetChildren2, "/a", true), request(3, opClose)}
		said := [][]byte{session, answer(-2, 0), answer(1, 0, "/a0000000001"), framed(xidEvent, int64(-1), 0, 2, 3, "/a"), answer(2, 0, 1, "b", node), answer(3, 0)}
		pieces(t, asked, func(b []byte) (int, error) { _, n, err := k.Request(b); return n, err })
		pieces(t, said, func(b []byte) (int, error) { _, n, err := k.Reply(b); return n, err })
	})
}

// pieces gives messages to a reader in pieces, which must take each when it is complete, and not before.
func pieces(t *rapid.T, messages [][]byte, read func([]byte) (int, error)) {
	all := slices.Concat(messages...)
	from, have := 0, 0
	for _, m := range messages {
		for {
			n, err := read(all[from:have])
			if err != nil || n != 0 && n != len(m) || (n != 0) != (have-from >= len(m)) {
				t.Fatalf("of %d bytes of %d it took %d: %v", have-from, len(m), n, err)
			}
			if n != 0 {
				break
			}
			have += rapid.IntRange(1, len(all)-have).Draw(t, "piece")
		}
		from += len(m)
	}
}

// Nothing that is sent makes a reader fail, take what isn't there, or depend on how it comes.
func FuzzTalk(f *testing.F) {
	f.Add(slices.Concat(connect, request(1, opCreate, "/a", "mine", world, 3), request(-2, opPing)), slices.Concat(session, answer(1, 0, "/a0000000001"), answer(-2, 0)), byte(3))
	f.Add(slices.Concat(connect, request(1, opMulti, raw(jute(opDelete, false, -1)), "/a", -1, raw(jute(-1, true, -1)))), slices.Concat(session, answer(1, 0, raw(jute(opDelete, false, 0)), raw(jute(-1, true, -1)))), byte(1))
	f.Add(slices.Concat(connect, request(1, opGetChildren2, "/a", true)), slices.Concat(session, answer(1, 0, 1<<28, "a")), byte(7))
	f.Fuzz(func(t *testing.T, up, down []byte, step byte) {
		whole, pieces := converse(t, up, down, len(up)+len(down)), converse(t, up, down, 1+int(step))
		if whole != pieces {
			t.Errorf("whole:  %s\npieces: %s", whole, pieces)
		}
	})
}

// converse is [proxytest.Converse] where each word has its part.
func converse(t *testing.T, up, down []byte, step int) string {
	return proxytest.Converse(t, Wire{}, up, down, step, func(message any) string {
		if asks, ok := message.(proxy.Request); ok && (len(asks.Words) == 0 || len(asks.Words) != len(asks.Parts)) {
			t.Fatalf("%+v", asks)
		}
		return fmt.Sprintf("%+v", message)
	})
}

func BenchmarkTalk(b *testing.B) {
	k := greeted(b)
	asks := request(1, opCreate, "/lock/_c_"+guid+"-lock-", "", world, 3)
	says := answer(1, 0, "/lock/_c_"+guid+"-lock-0000000001")
	for b.Loop() {
		if _, n, err := k.Request(asks); n == 0 || err != nil {
			b.Fatal(err)
		}
		if _, n, err := k.Reply(says); n == 0 || err != nil {
			b.Fatal(err)
		}
	}
}
