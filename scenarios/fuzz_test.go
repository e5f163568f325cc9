package scenarios_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/scenarios"
)

// Whatever the text, the parser accepts it or says where it is wrong; what it
// accepts survives formatting.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("library/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	more, err := filepath.Glob("testdata/format/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, more...) {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	cases, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range strings.Split(string(cases), "\n=== ") {
		_, body, _ := strings.Cut(c, "\n")
		src, _, _ := strings.Cut(body, "---\n")
		f.Add([]byte(src))
	}
	for _, hostile := range []string{
		"", "\n", "#", "#\n#\n", "\x00", "\xff\xfe", "\ufeff\ufeff", "\r\r\n", "\u2028", "::::", "expect :", "expect",
		"clients A\nA", "clients A\nbegin", "clients A\nawait A replies -1", "clients A\nhold before", "clients A\nn1",
		"clients A\nn99999999999999999999 crash", "clients A\nwait 1e999ttl", "clients A\nwait -0ttl", "clients A\nwait 0x1p-1ttl",
		"clients A\nA clock -0ttl\nexpect none", "clients A\nA clock -0s\nexpect none", "clients A\nn1 drift 1e1\nexpect none",
		"clients A\nA acquire within\x00", "clients A\nA acquire #" + strings.Repeat("#", 9000) + "\nexpect none",
		"thread %d A\nclients A\n%s %v %!", "clients " + strings.Repeat("A", 9000) + "\n", "clients A\nexpect @: none",
		"clients A\nreplicas 1\nbandwidth A n1 1000B/ttl\nbandwidth unlimited\ntimeout A from n1 after 1s\n" +
			"n1 replication delay 1s jitter 1ms\nn1 replication bandwidth 2KB/s\nn1 replication timeout 1ttl\nn1 replication reset\nexpect none",
		"clients A\nbandwidth 99999999999999999999KB/s", "clients A\nbandwidth 0B/s", "clients A\nbandwidth /", "clients A\ntimeout A after",
		"clients A\ndelay A after any or none by 1s on n1 times 2\ndrop messages or none\nhold before SET or or\nexpect none",
		"#\n\n#\n\n\n#\nclients A\n#\n\nA try\n\n\n#\nexpect none\n\n#\n\n",
	} {
		f.Add([]byte(hostile))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		_, err := scenarios.Parse("x.txt", src)
		if err != nil {
			var syntax *scenarios.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("%v is not a SyntaxError", err)
			}
			if syntax.Line < 1 || syntax.Column < 1 || syntax.Message == "" || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Fatalf("a poor error: %#v", syntax)
			}
			return
		}
		// Canonical blanks may take a script that just fits over the limits.
		if len(src) > 1<<19 || longest(src) > 5_000 {
			return
		}
		roundTrip(t, src)
	})
}

func longest(src []byte) int {
	most := 0
	for _, line := range strings.Split(string(src), "\n") {
		most = max(most, len(line))
	}
	return most
}

// FuzzFileName looks for names of files that a script takes and that no report can show.
func FuzzFileName(f *testing.F) {
	for _, name := range []string{"mine.txt", "a/b.txt", "\xff\xfe.txt", "a\x1b[31mb.txt", "", ".", "/", "a\nb.txt", "\u202e.txt", ".txt"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		s, err := scenarios.Parse(name, []byte("clients A\n\nA acquire\n\nexpect none\n"))
		if err != nil {
			if s != nil {
				t.Errorf("%q: a script with the error %v", name, err)
			}
			return
		}
		if !printable.IsLine(s.Name) {
			t.Errorf("%q is called %q", name, s.Name)
		}
		s.Key()
	})
}
