package resp_test

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/resp"
)

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
		rest     string // what is left behind the request
	}{
		{"array", "*3\r\n$3\r\nSET\r\n$4\r\nlock\r\n$1\r\nv\r\n", []string{"SET", "lock", "v"}, ""},
		{"binary word", "*2\r\n$4\r\nECHO\r\n$4\r\n\r\n$1\r\n", []string{"ECHO", "\r\n$1"}, ""},
		{"empty word", "*2\r\n$3\r\nGET\r\n$0\r\n\r\n", []string{"GET", ""}, ""},
		{"pipeline", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n", []string{"PING"}, "*1\r\n$4\r\nQUIT\r\n"},
		{"inline", "SET lock  v\r\nPING\r\n", []string{"SET", "lock", "v"}, "PING\r\n"},
		{"inline without carriage return", "PING\n", []string{"PING"}, ""},
		// Redis 7 says nothing to these three.
		{"empty line", "\r\nPING\r\n", nil, "PING\r\n"},
		{"empty array", "*0\r\nPING\r\n", nil, "PING\r\n"},
		{"null array", "*-1\r\nPING\r\n", nil, "PING\r\n"},
		{"negative array", "*-5\r\nPING\r\n", nil, "PING\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			words, n, err := resp.Command([]byte(c.in))
			if err != nil || !slices.Equal(words, c.want) || c.in[n:] != c.rest {
				t.Errorf("Command(%q) = %q, %d, %v; want %q and the rest %q", c.in, words, n, err, c.want, c.rest)
			}
			for cut := range n {
				if words, n, err := resp.Command([]byte(c.in[:cut])); n != 0 || err != nil {
					t.Errorf("Command(%q) = %q, %d, %v; want it to be incomplete", c.in[:cut], words, n, err)
				}
			}
		})
	}
}

func TestCommandRefuses(t *testing.T) {
	for _, in := range []string{
		"*x\r\n", "*\r\n", "*1\r\n:3\r\n", "*1\r\n$x\r\n", "*1\r\n$-1\r\n", "*1\r\n$536870913\r\n",
		"*1048577\r\n", "*99999999999999999999\r\n", "*1\r\n*1\r\n",
	} {
		if words, n, err := resp.Command([]byte(in)); !errors.Is(err, resp.ErrProtocol) || n != 0 || words != nil {
			t.Errorf("Command(%q) = %q, %d, %v; want ErrProtocol", in, words, n, err)
		}
	}
}

// A claim about what follows must not cost memory before it does.
func TestClaimsCostNothing(t *testing.T) {
	for _, in := range []string{"*1000000\r\n", "*1000000\r\n$3\r\nSET\r\n", "*1\r\n$536870912\r\n", "%1000000\r\n", "$536870912\r\n"} {
		b := []byte(in)
		const times = 100
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			_, _, _ = resp.Command(b)
			_, _ = resp.Frame(b)
		}
		runtime.ReadMemStats(&after)
		if cost := (after.TotalAlloc - before.TotalAlloc) / times; cost > 4096 {
			t.Errorf("%q costs %d bytes", in, cost)
		}
	}
}

// frames are values and how they read.
var frames = []struct{ name, in, print string }{
	{"status", "+OK\r\n", "OK"},
	{"empty status", "+\r\n", ""},
	{"error", "-ERR no\r\n", "(error) ERR no"},
	{"integer", ":-2\r\n", "(integer) -2"},
	{"bulk", "$5\r\nhello\r\n", `"hello"`},
	{"binary bulk", "$4\r\na\r\nb\r\n", `"a\r\nb"`},
	{"empty bulk", "$0\r\n\r\n", `""`},
	{"null bulk", "$-1\r\n", "(nil)"},
	{"null bulk with a zero", "$-01\r\n", "(nil)"},
	{"array", "*2\r\n$1\r\na\r\n:1\r\n", `["a" (integer) 1]`},
	{"empty array", "*0\r\n", "[]"},
	{"null array", "*-1\r\n", "(nil)"},
	{"null array with a zero", "*-01\r\n", "(nil)"},
	{"nested", "*2\r\n*1\r\n:1\r\n*1\r\n*0\r\n", "[[(integer) 1] [[]]]"},
	{"RESP3 null", "_\r\n", "(nil)"},
	{"RESP3 booleans", "*2\r\n#t\r\n#f\r\n", "[(true) (false)]"},
	{"RESP3 double", ",3.14\r\n", "3.14"},
	{"RESP3 big number", "(3492890328409238509324850943850943825024385\r\n", "3492890328409238509324850943850943825024385"},
	{"RESP3 bulk error", "!5\r\nERR x\r\n", "(error) ERR x"},
	{"RESP3 verbatim", "=7\r\ntxt:abc\r\n", `"abc"`},
	{"RESP3 map", "%1\r\n+k\r\n:1\r\n", "[k (integer) 1]"},
	{"RESP3 set", "~2\r\n+a\r\n+b\r\n", "[a b]"},
	{"RESP3 push", ">2\r\n+a\r\n+b\r\n", "[a b]"},
	{"RESP3 attribute", "|1\r\n+k\r\n+v\r\n:5\r\n", "[k v (integer) 5]"},
}

func TestFrameAndPrint(t *testing.T) {
	for _, c := range frames {
		t.Run(c.name, func(t *testing.T) {
			if n, err := resp.Frame([]byte(c.in + "+next\r\n")); n != len(c.in) || err != nil {
				t.Errorf("Frame(%q) = %d, %v; want %d", c.in, n, err, len(c.in))
			}
			if got := resp.Print([]byte(c.in), nil); got != c.print {
				t.Errorf("Print(%q) = %s; want %s", c.in, got, c.print)
			}
			for cut := range len(c.in) {
				if n, err := resp.Frame([]byte(c.in[:cut])); n != 0 || err != nil {
					t.Errorf("Frame(%q) = %d, %v; want it to be incomplete", c.in[:cut], n, err)
				}
				if got := resp.Print([]byte(c.in[:cut]), nil); got != "?" {
					t.Errorf("Print(%q) = %s; want ?", c.in[:cut], got)
				}
			}
		})
	}
}

func TestFrameRefuses(t *testing.T) {
	for _, in := range []string{
		"?\r\n", "\r\n", "$x\r\n", "$-2\r\n", "*-2\r\n", "$536870913\r\n", "*1048577\r\n", "%9223372036854775807\r\n",
		"*1\r\n?\r\n", strings.Repeat("*1\r\n", resp.MaxDepth+1) + ":1\r\n",
	} {
		if n, err := resp.Frame([]byte(in)); !errors.Is(err, resp.ErrProtocol) || n != 0 {
			t.Errorf("Frame(%.20q) = %d, %v; want ErrProtocol", in, n, err)
		}
		if got := resp.Print([]byte(in), nil); got != "?" {
			t.Errorf("Print(%.20q) = %s; want ?", in, got)
		}
	}
	deep := strings.Repeat("*1\r\n", resp.MaxDepth) + ":1\r\n"
	if n, err := resp.Frame([]byte(deep)); n != len(deep) || err != nil {
		t.Errorf("Frame at MaxDepth = %d, %v; want %d", n, err, len(deep))
	}
}

func TestPrintRenames(t *testing.T) {
	rename := func(s string) string { return strings.Replace(s, "secret", "A1", 1) }
	if got, want := resp.Print([]byte("*2\r\n$6\r\nsecret\r\n+secret\r\n"), rename), `["A1" secret]`; got != want {
		t.Errorf("Print = %s; want %s", got, want)
	}
}

func TestIsPush(t *testing.T) {
	for _, c := range []struct {
		in   string
		want bool
	}{
		{"", false},
		{"+OK\r\n", false},
		{"*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\nm\r\n", true},
		{"*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$2\r\nch\r\n$1\r\nm\r\n", true},
		{"*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n", false},
		{"*3\r\n$7\r\nmessagE\r\n$2\r\nch\r\n$1\r\nm\r\n", false},
		{">3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\nm\r\n", true},
		{">3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$9\r\nsubscribe\r\n", true}, // its text, not its kind
		{">3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n", false},
		{">3\r\n$12\r\npunsubscribe\r\n$2\r\nch\r\n:0\r\n", false},
		{">0\r\n", false},
		{">0\n\n", false}, // once an index out of range
		{">", false},
	} {
		if got := resp.IsPush([]byte(c.in)); got != c.want {
			t.Errorf("IsPush(%q) = %t", c.in, got)
		}
	}
}

func FuzzCommand(f *testing.F) {
	for _, seed := range []string{"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", "PING\r\n", "*-1\r\n", "*1000000\r\n$1\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		words, n, err := resp.Command(b)
		if n < 0 || n > len(b) || err != nil && n != 0 {
			t.Fatalf("Command(%q) = %q, %d, %v", b, words, n, err)
		}
		if n == 0 {
			return
		}
		again, m, err := resp.Command(b[:n])
		if m != n || err != nil || !slices.Equal(again, words) {
			t.Errorf("Command(%q) = %q, %d, %v; was %q, %d with more behind it", b[:n], again, m, err, words, n)
		}
	})
}

func FuzzFrame(f *testing.F) {
	for _, c := range frames {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = resp.IsPush(b)
		line := resp.Print(b, strings.ToUpper)
		n, err := resp.Frame(b)
		if n < 0 || n > len(b) || err != nil && n != 0 {
			t.Fatalf("Frame(%q) = %d, %v", b, n, err)
		}
		if n == 0 {
			if line != "?" {
				t.Errorf("Print(%q) = %s though it is no value", b, line)
			}
			return
		}
		if m, err := resp.Frame(b[:n]); m != n || err != nil {
			t.Errorf("Frame(%q) = %d, %v; was %d with more behind it", b[:n], m, err, n)
		}
		if again := resp.Print(b[:n], strings.ToUpper); again != line {
			t.Errorf("Print(%q) = %s; was %s with more behind it", b[:n], again, line)
		}
	})
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"*2\r\n$4\r\nlock\r\n$1\r\nv\r\n", []string{"lock", "v"}},
		{"*2\r\n$4\r\nlock\r\n*1\r\n*2\r\n$1\r\nm\r\n,1.5\r\n", []string{"lock", "m", "1.5"}},
		{"$1\r\nv\r\n", []string{"v"}},
		{":3\r\n", []string{"3"}},
		{"+QUEUED\r\n", []string{"QUEUED"}},
		{"*-1\r\n", nil}, {"$-1\r\n", nil}, {"_\r\n", nil}, {"-ERR no\r\n", nil},
	} {
		if got := resp.Words([]byte(c.in)); !slices.Equal(got, c.want) {
			t.Errorf("Words(%q) = %q; want %q", c.in, got, c.want)
		}
	}
}
