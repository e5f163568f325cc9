package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/faults/real/proxy/proxytest"
)

// message is a message of pgproto3, which the tests use to write requests and answers.
type message interface {
	Encode(dst []byte) ([]byte, error)
}

func encode(t rapid.TB, list ...message) (b []byte) {
	t.Helper()
	for _, m := range list {
		var err error
		if b, err = m.Encode(b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// read is what is said of a request.
func read(asks proxy.Request) string {
	var parts []string
	for _, p := range asks.Parts {
		parts = append(parts, fmt.Sprintf("%s %q", p.Text, p.Values))
	}
	text := strings.Join(asks.Words, ",") + ": " + strings.Join(parts, "; ")
	if asks.Silent {
		text += " silent"
	}
	if asks.Opens {
		text += " opens"
	}
	return text
}

// opened returns the talk of a connection whose login is over.
func opened(t rapid.TB) *talk {
	t.Helper()
	k := Wire{}.Begin().(*talk)
	if _, _, err := k.Request(encode(t, &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "u"}})); err != nil {
		t.Fatal(err)
	}
	if _, n, err := k.Reply(encode(t, &pgproto3.AuthenticationOk{}, &pgproto3.BackendKeyData{SecretKey: []byte("1234")}, ready)); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	return k
}

var ready = &pgproto3.ReadyForQuery{TxStatus: 'I'}

func executes(sql string, values ...string) (list []message) {
	bind := &pgproto3.Bind{}
	for _, v := range values {
		bind.Parameters = append(bind.Parameters, []byte(v))
	}
	return []message{&pgproto3.Parse{Query: sql}, bind, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{}}
}

func TestRequests(t *testing.T) {
	sync := &pgproto3.Sync{}
	long := "SELECT '" + strings.Repeat("ä", 200) + "'"
	for _, c := range []struct {
		name string
		asks []message
		want string
	}{
		{"query", []message{&pgproto3.Query{String: "select  1"}}, `SELECT: select 1 []`},
		{"several", []message{&pgproto3.Query{String: "BEGIN; insert into t values (';'); COMMIT;"}}, `BEGIN,INSERT,COMMIT: BEGIN []; insert into t values (';') []; COMMIT []`},
		{"none", []message{&pgproto3.Query{String: "-- ping"}}, `EMPTY:  []`},
		{"no word", []message{&pgproto3.Query{String: "?"}}, `UNKNOWN: ? []`},
		{"synonyms", []message{&pgproto3.Query{String: "START TRANSACTION; END; abort"}}, `BEGIN,COMMIT,ROLLBACK: START TRANSACTION []; END []; abort []`},
		{"parameters", append(executes("DELETE FROM t WHERE a = $1", "lock", "x"), sync), `DELETE: DELETE FROM t WHERE a = $1 ["lock" "x"]`},
		{"batch", append(append(executes("SELECT 1"), executes("INSERT INTO t VALUES ($1)", "7")...), sync), `SELECT,INSERT: SELECT 1 []; INSERT INTO t VALUES ($1) ["7"]`},
		{"bytes", []message{&pgproto3.Parse{Query: "SELECT $1"}, &pgproto3.Bind{ParameterFormatCodes: []int16{1, 0}, Parameters: [][]byte{{0, 0, 7}, nil}}, &pgproto3.Execute{}, sync}, `SELECT: SELECT $1 ["\\x000007" "NULL"]`},
		{"prepare", []message{&pgproto3.Parse{Name: "s", Query: "INSERT INTO t VALUES (1)"}, &pgproto3.Describe{ObjectType: 'S', Name: "s"}, sync}, `PREPARE: PREPARE INSERT INTO t VALUES (1) []`},
		{"flush", []message{&pgproto3.Describe{ObjectType: 'S'}, &pgproto3.Flush{}}, `DESCRIBE: DESCRIBE []`},
		{"nothing to flush", []message{&pgproto3.Flush{}}, `FLUSH: FLUSH [] silent`},
		{"sync", []message{sync}, `SYNC: SYNC []`},
		{"close", []message{&pgproto3.Close{ObjectType: 'S', Name: "s"}, sync}, `CLOSE: CLOSE []`},
		{"unknown", []message{&pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{}, sync}, `EXECUTE: EXECUTE s []`},
		{"portal", []message{&pgproto3.Execute{Portal: "p"}, sync}, `EXECUTE: EXECUTE []`},
		{"call", []message{&pgproto3.FunctionCall{Function: 1}}, `FUNCTION: FUNCTION []`},
		{"copy", []message{&pgproto3.CopyData{Data: []byte("a")}, &pgproto3.CopyData{}, &pgproto3.CopyDone{}}, `COPYDATA: COPYDATA []`},
		{"no copy", []message{&pgproto3.CopyFail{Message: "why"}}, `COPYFAIL: COPYFAIL []`},
		{"password", []message{&pgproto3.PasswordMessage{Password: "hidden"}}, `PASSWORD: PASSWORD [] opens`},
		{"sasl", []message{&pgproto3.SASLInitialResponse{AuthMechanism: "hidden", Data: []byte("hidden")}}, `PASSWORD: PASSWORD [] opens`},
		{"alter", []message{&pgproto3.Query{String: "ALTER USER u PASSWORD 'it''s hidden'; SELECT dblink('host=x password=hidden', 1)"}},
			`ALTER,SELECT: ALTER USER u PASSWORD (secret) []; SELECT dblink('host=x password (secret) []`},
		{"long", []message{&pgproto3.Query{String: long}}, `SELECT: ` + string([]rune(long)[:proxy.MaxText-1]) + `… []`},
		{"cut short", []message{raw("B\x00\x00\x00\x0a\x00\x00\x00\x09\x00\x01"), &pgproto3.Execute{}, sync}, `EXECUTE: EXECUTE []`},
		{"no text", []message{raw("Q\x00\x00\x00\x0aDO \xffb\x00")}, "DO: DO \uFFFDb []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := encode(t, c.asks...)
			asks, n, err := opened(t).Request(append(b, "more"...))
			if got := read(asks); n != len(b) || err != nil || got != c.want {
				t.Errorf("got %s\nwant %s\n%d of %d bytes, %v", got, c.want, n, len(b), err)
			}
			if strings.Contains(fmt.Sprint(asks), "hidden") {
				t.Error("it shows a password")
			}
		})
	}
	// A statement that was prepared once is known by its name until it is closed.
	k := opened(t)
	for _, c := range []struct {
		asks []message
		want string
	}{
		{[]message{&pgproto3.Parse{Name: "s", Query: "UPDATE t SET a = $1"}, sync}, `PREPARE: PREPARE UPDATE t SET a = $1 []`},
		{[]message{&pgproto3.Bind{DestinationPortal: "p", PreparedStatement: "s", Parameters: [][]byte{[]byte("x")}}, sync}, `BIND: BIND []`},
		{[]message{&pgproto3.Execute{Portal: "p"}, sync}, `UPDATE: UPDATE t SET a = $1 ["x"]`},
		{[]message{&pgproto3.Close{ObjectType: 'S', Name: "s"}, &pgproto3.Close{ObjectType: 'P', Name: "p"}, sync}, `CLOSE: CLOSE []`},
		{[]message{&pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{}, sync}, `EXECUTE: EXECUTE s []`},
		{[]message{&pgproto3.Execute{Portal: "p"}, sync}, `EXECUTE: EXECUTE []`},
		{[]message{&pgproto3.Terminate{}}, `TERMINATE: TERMINATE [] silent opens`},
	} {
		if asks, _, err := k.Request(encode(t, c.asks...)); read(asks) != c.want || err != nil {
			t.Errorf("got %s\nwant %s, %v", read(asks), c.want, err)
		}
	}
}

// raw is a message as it is.
type raw string

func (r raw) Encode(dst []byte) ([]byte, error) { return append(dst, r...), nil }

func TestBeginnings(t *testing.T) {
	k := Wire{}.Begin()
	for _, c := range []struct {
		asks    message
		want    string
		answer  []message
		says    string
		answers int
	}{
		{&pgproto3.SSLRequest{}, "SSLREQUEST:  opens", []message{raw("N")}, "no", 1},
		{&pgproto3.GSSEncRequest{}, "GSSENCREQUEST:  opens", []message{&pgproto3.ErrorResponse{Severity: "ERROR", Code: "0A000", Message: "what?"}}, "ERROR 0A000 what?", 2},
		{&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion32, Parameters: map[string]string{"user": "u"}}, `STARTUP: STARTUP user=u [] opens`,
			[]message{&pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256"}}}, "go on", 3},
		{&pgproto3.SASLInitialResponse{AuthMechanism: "SCRAM-SHA-256"}, `PASSWORD: PASSWORD [] opens`, []message{&pgproto3.AuthenticationSASLContinue{Data: []byte("x")}}, "go on", 4},
		{&pgproto3.SASLResponse{Data: []byte("x")}, `PASSWORD: PASSWORD [] opens`, []message{&pgproto3.AuthenticationSASLFinal{}, &pgproto3.AuthenticationOk{},
			&pgproto3.ParameterStatus{Name: "a", Value: "b"}, &pgproto3.NoticeResponse{Message: "n"}, &pgproto3.BackendKeyData{SecretKey: []byte("1234")}, ready}, "logged in", 5},
	} {
		b := encode(t, c.asks)
		asks, n, err := k.Request(b)
		if read(asks) != c.want || n != len(b) || err != nil {
			t.Errorf("got %s, want %s, %d, %v", read(asks), c.want, n, err)
		}
		b = encode(t, c.answer...)
		says, n, err := k.Reply(b)
		if n != len(b) || err != nil || says.Answers != c.answers || says.Parts[0].Text != c.says {
			t.Errorf("%s: %+v, %d of %d, %v", c.want, says, n, len(b), err)
		}
	}
	cancel, n, err := Wire{}.Begin().Request(encode(t, &pgproto3.CancelRequest{SecretKey: []byte("1234")}))
	if read(cancel) != "CANCEL:  silent" || n != 16 || err != nil {
		t.Error(read(cancel), n, err)
	}
}

// What isn't PostgreSQL's protocol, is encrypted, or is too long is refused with what is wrong.
func TestRefuses(t *testing.T) {
	refuses := func(name string, err error, want string) {
		t.Helper()
		if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, b := range map[string]string{"begins with": "GET / HTTP/1.1\r\n", "version 2.0": "\x00\x00\x00\x08\x00\x02\x00\x00", `"\x00\x00\x00\a"`: "\x00\x00\x00\x07"} {
		_, _, err := Wire{}.Begin().Request([]byte(b))
		refuses(name, err, name)
	}
	for want, b := range map[string]string{
		`begins with 'Z'`: "Z\x00\x00\x00\x05I", "of 3 bytes": "Q\x00\x00\x00\x03x", "more than 16777216 bytes": "Q\x01\x00\x00\x00x",
	} {
		_, _, err := opened(t).Request([]byte(b))
		refuses(want, err, want)
		_, _, err = opened(t).Reply([]byte(strings.Replace(b, "Z\x00", "Q\x00", 1)))
		refuses(want, err, strings.Replace(want, "'Z'", "'Q'", 1))
	}
	k := Wire{}.Begin()
	if _, _, err := k.Request(encode(t, &pgproto3.SSLRequest{})); err != nil {
		t.Fatal(err)
	}
	_, _, err := k.Reply([]byte("S"))
	refuses("TLS", err, "sslmode=disable")
	// Many messages that make one request, or one answer, are together not longer either.
	k, asked := opened(t), opened(t)
	if _, _, err := asked.Request(encode(t, &pgproto3.Query{String: "SELECT 1"})); err != nil {
		t.Fatal(err)
	}
	million := make([]byte, 1<<20)
	data, rows := encode(t, &pgproto3.CopyData{Data: million}), encode(t, &pgproto3.DataRow{Values: [][]byte{million}})
	for name, read := range map[string]func([]byte) error{
		"a request": func(b []byte) error { _, _, err := k.Request(b); return err },
		"an answer": func(b []byte) error { _, _, err := asked.Reply(b); return err },
	} {
		one, err := rows, error(nil)
		if name == "a request" {
			one = data
		}
		n := 0
		for b := []byte(nil); err == nil && n < 20; n++ {
			b = append(b, one...)
			err = read(b)
		}
		refuses(name, err, "more than 16777216 bytes")
		if n != 16 {
			t.Errorf("%s of %d MB is too long", name, n)
		}
	}
}

// exchange is what a client sends, and what the server answers to that; nothing where the request is silent.
type exchange struct {
	asks, answer []message
	words        string
}

// exchanges draws a complete exchange, and what must precede the next one.
func exchanges(t *rapid.T) []exchange {
	sync := &pgproto3.Sync{}
	text := rapid.StringMatching(`[a-z;' ]{0,20}`)
	done := &pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")}
	failed := &pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "22012", Message: "division by zero"}
	rows := func() (list []message) {
		list = append(list, &pgproto3.RowDescription{})
		for range rapid.IntRange(0, 3).Draw(t, "rows") {
			list = append(list, &pgproto3.DataRow{Values: [][]byte{[]byte(text.Draw(t, "value")), nil}})
		}
		if rapid.Bool().Draw(t, "noticed") {
			list = append(list, &pgproto3.NoticeResponse{Message: "n"}, &pgproto3.NotificationResponse{Channel: "c"}, &pgproto3.ParameterStatus{Name: "a"})
		}
		return append(list, done)
	}
	ask := executes("SELECT $1", text.Draw(t, "parameter"))
	data := []message{&pgproto3.CopyData{Data: []byte(text.Draw(t, "data"))}, &pgproto3.CopyData{}, &pgproto3.CopyDone{}}
	begun := []message{&pgproto3.ParseComplete{}, &pgproto3.BindComplete{}, &pgproto3.NoData{}}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return []exchange{{[]message{&pgproto3.Query{String: "SELECT 1"}}, append(rows(), ready), "SELECT"}}
	case 1:
		return []exchange{{[]message{&pgproto3.Query{String: "INSERT x; DELETE y"}}, append(rows(), failed, ready), "INSERT,DELETE"}}
	case 2:
		return []exchange{{append(ask, sync), append(append(begun, rows()[1:]...), ready), "SELECT"}}
	case 3: // behind a Flush, and then the Sync
		return []exchange{{append(ask, &pgproto3.Flush{}), append(begun, rows()[1:]...), "SELECT"}, {[]message{sync}, []message{ready}, "SYNC"}}
	case 4: // of what follows an error nothing is answered
		return []exchange{{append(ask, &pgproto3.Flush{}), append(begun[:1:1], failed), "SELECT"}, {append(ask, &pgproto3.Flush{}), nil, "SELECT"}, {[]message{sync}, []message{ready}, "SYNC"}}
	case 5:
		return []exchange{{[]message{&pgproto3.Query{String: "COPY t FROM STDIN"}}, []message{&pgproto3.CopyInResponse{}}, "COPY"}, {data, []message{done, ready}, "COPYDATA"}}
	case 6:
		return []exchange{{append(ask, sync), append(begun, &pgproto3.CopyInResponse{}), "SELECT"}, {append(data, sync), []message{done, ready}, "COPYDATA"}}
	case 7:
		return []exchange{{[]message{&pgproto3.Query{String: "COPY t TO STDOUT"}}, []message{&pgproto3.CopyOutResponse{}, &pgproto3.CopyData{Data: []byte("x")}, &pgproto3.CopyDone{}, done, ready}, "COPY"}}
	case 8:
		return []exchange{{[]message{&pgproto3.FunctionCall{}}, []message{&pgproto3.FunctionCallResponse{}, ready}, "FUNCTION"}}
	}
	return []exchange{{nil, []message{rapid.SampledFrom([]message{
		&pgproto3.NoticeResponse{Message: "n"}, &pgproto3.NotificationResponse{Channel: "c", Payload: "p"}, &pgproto3.ParameterStatus{Name: "a", Value: "b"},
	}).Draw(t, "aside")}, ""}}
}

// However a stream is cut into pieces the same messages are found, and each answer with its request.
func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := opened(t)
		var up, down []byte
		number := 1
		for range rapid.IntRange(1, 8).Draw(t, "exchanges") {
			for _, x := range exchanges(t) {
				up = append(up, encode(t, x.asks...)...)
				if x.asks != nil {
					number++
					pieces(t, &up, func(b []byte) int {
						asks, n, err := k.Request(b)
						if err != nil || n > 0 && (n != len(b) || strings.Join(asks.Words, ",") != x.words || asks.Silent != (x.answer == nil)) {
							t.Fatalf("%s is %s, %d of %d bytes, %v", x.words, read(asks), n, len(b), err)
						}
						return n
					})
				}
				if x.answer == nil {
					continue
				}
				want := number
				if x.asks == nil {
					want = 0
				}
				down = encode(t, x.answer...)
				pieces(t, &down, func(b []byte) int {
					says, n, err := k.Reply(b)
					if err != nil || n > 0 && (n != len(b) || says.Answers != want || len(says.Parts) == 0) {
						t.Fatalf("the answer to %s: %+v, want %d; %d of %d bytes, %v", x.words, says, want, n, len(b), err)
					}
					return n
				})
			}
		}
	})
}

// pieces gives a message to a reader in pieces, which must take it when it is complete, and not before.
func pieces(t *rapid.T, b *[]byte, read func([]byte) int) {
	for at := 0; at < len(*b); {
		at += rapid.IntRange(1, len(*b)-at).Draw(t, "piece")
		if n := read((*b)[:at]); (n > 0) != (at == len(*b)) {
			t.Fatalf("with %d of %d bytes it took %d", at, len(*b), n)
		}
	}
	*b = nil
}

// Several requests under way are answered in their order.
func TestPipelined(t *testing.T) {
	k := opened(t)
	sync := &pgproto3.Sync{}
	var up, down []byte
	up = append(up, encode(t, append(executes("SELECT 1"), sync)...)...)
	up = append(up, encode(t, append(executes("INSERT x"), &pgproto3.Flush{})...)...)
	up = append(up, encode(t, append(executes("UPDATE x"), &pgproto3.Flush{})...)...)
	up = append(up, encode(t, sync, &pgproto3.Query{String: "DELETE x"})...)
	done, failed := &pgproto3.CommandComplete{}, &pgproto3.ErrorResponse{Severity: "ERROR", Code: "1"}
	down = append(down, encode(t, &pgproto3.ParseComplete{}, &pgproto3.BindComplete{}, &pgproto3.NoData{}, done, ready)...)
	down = append(down, encode(t, failed)...) // of INSERT, so UPDATE is skipped
	down = append(down, encode(t, ready, done, ready)...)
	var words []string
	for len(up) > 0 {
		asks, n, err := k.Request(up)
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		words, up = append(words, asks.Words[0]), up[n:]
	}
	var answers []int
	for len(down) > 0 {
		says, n, err := k.Reply(down)
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		answers, down = append(answers, says.Answers), down[n:]
	}
	if want := []string{"SELECT", "INSERT", "UPDATE", "SYNC", "DELETE"}; !slices.Equal(words, want) {
		t.Errorf("requests %v, want %v", words, want)
	}
	if want := []int{2, 3, 5, 6}; !slices.Equal(answers, want) {
		t.Errorf("answers to %v, want %v", answers, want)
	}
}

// TestUnasked checks that a server's last message answers the last request or none, and that a COPY
// that failed before its data leaves no request unanswered.
func TestUnasked(t *testing.T) {
	fatal := &pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P01", Message: "terminating connection"}
	k := opened(t)
	if says, n, err := k.Reply(encode(t, fatal)); n == 0 || err != nil || says.Answers != 0 || says.Parts[0].Text != "FATAL 57P01 terminating connection" {
		t.Error(says, n, err)
	}
	if _, _, err := k.Request(encode(t, &pgproto3.Query{String: "SELECT 1"})); err != nil {
		t.Fatal(err)
	}
	if says, n, err := k.Reply(encode(t, fatal)); n == 0 || err != nil || says.Answers != 2 {
		t.Error(says, n, err)
	}
	k = opened(t)
	for _, step := range []struct {
		asks    []message
		answer  []message
		answers []int
	}{
		{[]message{&pgproto3.Query{String: "COPY t FROM STDIN"}}, []message{&pgproto3.CopyInResponse{}}, []int{2}},
		{nil, []message{&pgproto3.ErrorResponse{Severity: "ERROR"}, ready}, []int{0, 0}},
		{[]message{&pgproto3.CopyData{}, &pgproto3.CopyDone{}}, nil, nil},
		{[]message{&pgproto3.Query{String: "SELECT 1"}}, []message{&pgproto3.CommandComplete{}, ready}, []int{4}},
	} {
		if _, _, err := k.Request(encode(t, step.asks...)); err != nil {
			t.Fatal(err)
		}
		b := encode(t, step.answer...)
		for _, want := range step.answers {
			says, n, err := k.Reply(b)
			if err != nil || n == 0 || says.Answers != want {
				t.Errorf("%q answers %d, want %d, %d bytes, %v", b, says.Answers, want, n, err)
			}
			b = b[n:]
		}
		if len(b) > 0 {
			t.Errorf("%q is left", b)
		}
	}
}

// TestReplication checks that replication is carried without parsing.
func TestReplication(t *testing.T) {
	k := opened(t)
	if _, _, err := k.Request(encode(t, &pgproto3.Query{String: "START_REPLICATION 0/0"})); err != nil {
		t.Fatal(err)
	}
	if says, n, err := k.Reply(encode(t, &pgproto3.CopyBothResponse{})); err != nil || n == 0 || says.Answers != 2 {
		t.Error(says, n, err)
	}
	if says, n, err := k.Reply([]byte("anything")); err != nil || n != 8 || says.Answers != 0 {
		t.Error(says, n, err)
	}
	if asks, n, err := k.Request([]byte("anything")); err != nil || n != 8 || !asks.Silent || asks.Words[0] != proxy.AnyBytes {
		t.Error(asks, n, err)
	}
}

func TestStatements(t *testing.T) {
	for sql, want := range map[string]string{
		"":                                     "EMPTY",
		" ; ;":                                 "EMPTY",
		"select 1;":                            "SELECT select 1",
		"SELECT ';', E'\\';', 'it''s;', \";\"": "SELECT SELECT ';', E'\\';', 'it''s;', \";\"",
		"do $$ begin; end $$; commit":          "DO do $$ begin; end $$|COMMIT commit",
		"do $a$ ; $$ ; $a$; x":                 "DO do $a$ ; $$ ; $a$|X x",
		"select $1; select $2":                 "SELECT select $1|SELECT select $2",
		"/* a /* ; */ ; */ insert -- ;\n into": "INSERT insert into",
		"(SELECT 1)":                           "SELECT (SELECT 1)",
		"select 'open; -- not":                 "SELECT select 'open; -- not",
		"select $a$ open":                      "SELECT select $a$ open",
		"a\tb\r\n  c":                          "A a b c",
		"SELECT  'two  blanks'":                "SELECT SELECT 'two  blanks'",
		"/* open ; ":                           "EMPTY",
		"CREATE FUNCTION f() BEGIN ATOMIC SELECT 1; VALUES (2); END; x":        "CREATE CREATE FUNCTION f() BEGIN ATOMIC SELECT 1; VALUES (2); END|X x",
		"CREATE RULE r AS ON INSERT TO t DO ALSO (NOTIFY a; DELETE FROM u); x": "CREATE CREATE RULE r AS ON INSERT TO t DO ALSO (NOTIFY a; DELETE FROM u)|X x",
		"with x as (select 1) insert into t":                                   "WITH with x as (select 1) insert into t",
	} {
		var got []string
		for _, s := range statements(sql) {
			got = append(got, strings.TrimSpace(s.command+" "+s.text))
		}
		if got := strings.Join(got, "|"); got != want {
			t.Errorf("%q: got %q, want %q", sql, got, want)
		}
	}
}

// Nothing that is sent makes a reader fail, take what isn't there, or depend on how it comes.
func FuzzTalk(f *testing.F) {
	f.Add(encode(f, &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30}, &pgproto3.Query{String: "SELECT 1"}), encode(f, &pgproto3.AuthenticationOk{}, ready), byte(3))
	f.Add(encode(f, append([]message{&pgproto3.SSLRequest{}, &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30}}, executes("SELECT $1", "x")...)...), []byte("N"), byte(1))
	f.Fuzz(func(t *testing.T, up, down []byte, step byte) {
		whole, pieces := converse(t, up, down, len(up)+len(down)), converse(t, up, down, 1+int(step))
		if whole != pieces {
			t.Errorf("whole:  %s\npieces: %s", whole, pieces)
		}
	})
}

// converse is [proxytest.Converse] up to the beginning of a replication, after which bytes come as they come.
func converse(t *testing.T, up, down []byte, step int) string {
	said, _, _ := strings.Cut(proxytest.Converse(t, Wire{}, up, down, step, func(message any) string {
		if asks, ok := message.(proxy.Request); ok && asks.Words[0] == proxy.AnyBytes {
			return ""
		}
		return fmt.Sprintf("%+v", message)
	}), "go on")
	return said
}

func BenchmarkTalk(b *testing.B) {
	k := opened(b)
	asks := encode(b, append(executes("INSERT INTO lockfault_locks AS l (name, owner, token, expires) VALUES ($1, $2, 3, now())", "lock", "A-0123456789abcdef0123456789abcdef"), &pgproto3.Sync{})...)
	answer := encode(b, &pgproto3.ParseComplete{}, &pgproto3.BindComplete{}, &pgproto3.NoData{}, &pgproto3.CommandComplete{CommandTag: []byte("INSERT 0 1")}, ready)
	for b.Loop() {
		if _, n, err := k.Request(asks); n == 0 || err != nil {
			b.Fatal(err)
		}
		if _, n, err := k.Reply(answer); n == 0 || err != nil {
			b.Fatal(err)
		}
	}
}

// TestPasswordsAreNotTold checks that neither the text of a statement nor that of its answer shows
// a password, however it is written.
func TestPasswordsAreNotTold(t *testing.T) {
	for _, sql := range []string{
		"CREATE ROLE r LOGIN PASSWORD U&'hidden'",
		"DO $x$ BEGIN EXECUTE 'CREATE ROLE r PASSWORD ''hidden'''; END $x$",
		"SELECT format('CREATE ROLE r PASSWORD %L', 'hidden')",
		"ALTER USER r PASSWORD = 'hidden'",
		"ALTER USER r IDENTIFIED BY 'hidden'",
		"SELECT set_config('my.password', 'hidden', false)",
		"SELECT dblink('PGPASSWORD=hidden')",
		"CREATE SERVER s OPTIONS (pwd = 'hidden')",
		"CREATE ROLE r PASSWORD 'hidden",
		"UPDATE users SET passwd = $1",
	} {
		k := opened(t)
		asks, _, err := k.Request(encode(t, append(executes(sql, "hidden"), &pgproto3.Sync{})...))
		if told := fmt.Sprint(asks); err != nil || strings.Contains(told, "hidden") || !strings.Contains(told, "(secret)") {
			t.Errorf("%s is told as %s: %v", sql, told, err)
		}
		says, _, err := k.Reply(encode(t, &pgproto3.DataRow{Values: [][]byte{[]byte("hidden")}}, &pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")},
			&pgproto3.ErrorResponse{Severity: "ERROR", Code: "42601", Message: "at or near hidden"}, ready))
		if told := fmt.Sprint(says); err != nil || strings.Contains(told, "hidden") || !strings.Contains(told, "ERROR 42601 (secret)") {
			t.Errorf("the answer to %s is told as %s: %v", sql, told, err)
		}
	}
}
