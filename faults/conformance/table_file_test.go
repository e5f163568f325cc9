package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		want, got string
		ok        bool
	}{
		{"OK", "OK", true},
		{"OK", "OK ", false},
		{"(integer) <1..10>", "(integer) 1", true},
		{"(integer) <1..10>", "(integer) 10", true},
		{"(integer) <1..10>", "(integer) 11", false},
		{"(integer) <-2..-1>", "(integer) -2", true},
		{"(integer) <1..10>", "(nil)", false},
		{"(integer) <1..10>", "(integer) 99999999999999999999", false},
		{`["id" <*> "role"]`, `["id" (integer) 4 "role"]`, true},
		{`["id" <*> "role"]`, `["role"]`, false},
		{"a.c", "abc", false},
		{"<*>", "", true},
	} {
		if ok := matches(c.want, c.got); ok != c.ok {
			t.Errorf("matches(%q, %q) = %v", c.want, c.got, ok)
		}
	}
	if !sameCode("(error) ERR one", "(error) ERR two") || sameCode("(error) ERR x", "(error) WRONGTYPE x") || sameCode("(error) ERR x", "OK") {
		t.Error("sameCode compares more, or less, than the codes of errors")
	}
}

func TestWords(t *testing.T) {
	table := &table{scripts: map[string]string{"one": "return 1"}}
	got, err := table.words(wordPattern.FindAllString(`SET "a b\r\n" 'it "is"' {one} {sha:one} {lock} <ms+100> <s-1> ""`, -1), time.UnixMilli(5000))
	if err != nil {
		t.Fatal(err)
	}
	want := "SET|a b\r\n|it \"is\"|return 1|e0e1f9fabfc9d4800c877a703b823ac0578ff8db|{lock}|5100|4|"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %q\nwant %q", strings.Join(got, "|"), want)
	}
	for _, wrong := range []string{"<ms>", "<ms+x>", `"\q"`} {
		if _, err := table.words([]string{wrong}, time.Now()); err == nil {
			t.Errorf("%s is taken for a word", wrong)
		}
	}
}

// Of the lines behind a reply, the last that speaks of the server counts.
func TestOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.txt")
	text := "== x\nA> PING\nfirst\n# sim: virtual\n# why: x\n# redis 7.2: newer\n# why: x\n# valkey 8.0: other\n# why: x\n# valkey 8.1: newer\n# why: x\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := readTable(file)
	if err != nil {
		t.Fatal(err)
	}
	reply := table.cases[0].steps[0].want[0]
	if text, ok := reply.sim(); !ok || text != "virtual" {
		t.Errorf("sim answers %q, %v", text, ok)
	}
	for _, c := range []struct {
		want   string
		server release
	}{
		{"first", release{"redis": {6, 0}}},
		{"first", release{"redis": {7, 0}}},
		{"newer", release{"redis": {7, 2}}},
		{"newer", release{"redis": {8, 0}}},
		{"other", release{"redis": {7, 2}, "valkey": {8, 0}}},
		{"newer", release{"redis": {7, 2}, "valkey": {9, 1}}},
	} {
		if got := reply.of(c.server); got != c.want {
			t.Errorf("%v answers %q, want %q", c.server, got, c.want)
		}
	}
}

func TestWrongTables(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"A> PING", "1: \"A> PING\" stands before the first case"},
		{"== x\nOK", "2: \"OK\" is no step, and not the reply to one"},
		{"== x\nA> PING\nPONG\nPONG", "4: \"PONG\" is one reply too many"},
		{"== x\nA> PING\nPONG\n# sim: OK", "4: sim answers differently: say why"},
		{"== x\nA> PING\nPONG\n# valkey 8.0: OK", "4: valkey answers differently: say why"},
		{"== x\nA> PING\nPONG\n# why: because", "4: \"# why: because\" says of nobody what it answers"},
		{"== x\nA> PING\n# sim: OK", "3: \"# sim: OK\" stands behind no reply"},
		{"== x\nA>", "2: A sends nothing"},
		{"== x\nA>> PING\nB> PING", "3: A has not sent its pipeline yet"},
		{"== x\nadvance now", "2: advance by how much?"},
		{"== x\nA< now", "2: wait how long?"},
		{"== x\nreplication pause", "2: replication can stop or start"},
		{"== x\nsince ever", "2: \"ever\" is no version"},
		{"script x", "1: a script has a name and a text"},
	} {
		file := filepath.Join(t.TempDir(), "table.txt")
		if err := os.WriteFile(file, []byte(c.text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readTable(file); err == nil || !strings.Contains(err.Error(), "table.txt:"+c.want) {
			t.Errorf("%q: got error %v, want %s", c.text, err, c.want)
		}
	}
}

// What -update writes: new replies where there were none or others, what holes
// match stays, and notes stay with their replies.
func TestRewritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "table.txt")
	before := "== x\n# first\nA> PTTL k\n(integer) <1..9>\nA>> GET k\nA> GET l\n\"old\"\n# sim: \"s\"\n# why: because\n\nA> PING\n"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := readTable(file)
	if err != nil {
		t.Fatal(err)
	}
	steps := table.cases[0].steps
	got := table.rewritten(map[*step][]string{steps[0]: {"(integer) 5"}, steps[1]: {`"new"`, "(nil)"}, steps[2]: {"PONG"}})
	want := "== x\n# first\nA> PTTL k\n(integer) <1..9>\nA>> GET k\nA> GET l\n\"new\"\n# sim: \"s\"\n# why: because\n(nil)\n\nA> PING\nPONG\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
