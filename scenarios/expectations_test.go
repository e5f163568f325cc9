package scenarios_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/scenarios"
)

// readExpectations reads and checks a file as a run does.
func readExpectations(src string) (*scenarios.Expectations, error) {
	e, err := scenarios.ParseExpectations("x.expect", []byte(src))
	if err != nil {
		return nil, err
	}
	return e, e.Check([]string{"my-lock", "redlock"}, []string{"mine.txt"})
}

func TestExpectationErrors(t *testing.T) {
	text, err := os.ReadFile("testdata/expectations.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, cases, _ := strings.Cut(string(text), "=== ")
	for _, c := range strings.Split(cases, "\n=== ") {
		name, body, _ := strings.Cut(c, "\n")
		src, want, _ := strings.Cut(body, "---\n")
		t.Run(name, func(t *testing.T) { refusedExpectations(t, src, strings.TrimSpace(want)) })
	}
	for _, c := range []struct{ src, want string }{
		{"my-lock:\n  flush: none\x00", "x.expect:2:14: control character U+0000: files are plain text"},
		{"# \xff", "x.expect:1:3: this is not UTF-8: save the file as UTF-8 text"},
		{strings.Repeat("#\n", 1<<19) + "#", "x.expect:1:1: the file is larger than 1048576 bytes"},
		{strings.Repeat("x", 5000) + ":", `x.expect:1:1: no strategy is called "` + strings.Repeat("x", 40) + `…"`},
	} {
		refusedExpectations(t, c.src, c.want)
	}
}

func refusedExpectations(t *testing.T, src, want string) {
	t.Helper()
	e, err := readExpectations(src)
	if err == nil {
		t.Fatalf("it was accepted, as\n%s", e.Format())
	}
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	var syntax *scenarios.SyntaxError
	if !errors.As(err, &syntax) {
		t.Errorf("%#v is not a SyntaxError", err)
	}
}

// What is read is the same in whatever form; Format's is canonical, and a comment goes
// where the line goes that it is about.
func TestExpectationsFormat(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"nothing", "", ""},
		{"nothing but comments", "\n\n#one\n\n\n  # two\n", "# one\n\n# two\n"},
		{"sorted",
			"redlock:\n late-release:none-such.txt: ghost   overlap\n flush: none\nmy-lock:\n\tflush: lost-lock\n",
			"my-lock:\n  flush: lost-lock\n\nredlock:\n  flush: none\n  late-release:none-such.txt: overlap ghost\n"},
		{"CRLF and a byte order mark", "\ufeffmy-lock:\r\n  flush: none\r\n", "my-lock:\n  flush: none\n"},
		{"comments go along",
			"# the file\n\n# red\nredlock: # R\n  # late\n  late-release: none# why\n# flu\n\n  flush: none\n  # below red\n\n\n# my\nmy-lock:\n",
			"# the file\n\n# my\nmy-lock:\n\n# red\nredlock:  # R\n  # flu\n  flush: none\n  # late\n  late-release: none  # why\n  # below red\n"},
		{"the tail", "my-lock:\n  flush: none\n  # below\n# tail\n\n  # of it\n", "my-lock:\n  flush: none\n  # below\n\n# tail\n\n# of it\n"},
		{"a comment above the first is about that", "# my\nmy-lock:\n  flush: none", "# my\nmy-lock:\n  flush: none\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := scenarios.ParseExpectations("x.expect", []byte(c.src))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(e.Format()); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestExpectationsSet(t *testing.T) {
	e, err := readExpectations("# all of them\n\n# mine\nmy-lock:\n  # at times\n  flush: none  # really\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		strategy, scenario string
		may                []checker.Anomaly
	}{
		{"redlock", "flush", nil},
		{"my-lock", "mine.txt", []checker.Anomaly{checker.Ghost, checker.Overlap}},
		{"my-lock", "flush", []checker.Anomaly{checker.LostLock}},
		{"a-lock", "contention", nil},
	} {
		if err := e.Set(c.strategy, c.scenario, c.may); err != nil {
			t.Fatal(err)
		}
	}
	want := `# all of them

a-lock:
  contention: none

# mine
my-lock:
  # at times
  flush: lost-lock  # really
  mine.txt: overlap ghost

redlock:
  flush: none
`
	if got := string(e.Format()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if may, said := e.Of("my-lock", "mine.txt"); !said || !slices.Equal(may, []checker.Anomaly{checker.Overlap, checker.Ghost}) {
		t.Errorf("mine.txt: %v, said: %v", may, said)
	}
	if may, said := e.Of("redlock", "flush"); !said || len(may) > 0 {
		t.Errorf("flush: %v, said: %v", may, said)
	}
	for _, cell := range [][2]string{{"redlock", "mine.txt"}, {"nobody", "flush"}} {
		if may, said := e.Of(cell[0], cell[1]); said || may != nil {
			t.Errorf("%v: %v, said: %v", cell, may, said)
		}
	}
	if got, want := e.Scenarios("my-lock"), []string{"flush", "mine.txt"}; !slices.Equal(got, want) {
		t.Errorf("scenarios %q, want %q", got, want)
	}
	for _, key := range []string{"", "a b.txt", "a#b.txt", "a\tb.txt", "a/b.txt", `a\b.txt`, "\xff.txt", "\x01.txt", strings.Repeat("x", 10_000)} {
		if err := e.Set("my-lock", key, nil); err == nil {
			t.Errorf("a scenario called %q was taken", key)
		}
	}
	if err := e.Set("My", "flush", nil); err == nil {
		t.Error("a strategy called My was taken")
	}
	if err := e.Set("my-lock", "flush", []checker.Anomaly{"overslept"}); err == nil {
		t.Error("an anomaly called overslept was taken")
	}
	if got := string(e.Format()); got != want {
		t.Errorf("what was refused changed it to\n%s", got)
	}
}

// Whatever was set is read back, of whatever text it was set in, and no comment is
// lost.
func TestExpectationsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src, written := expectationText(t)
		e, err := scenarios.ParseExpectations("x.expect", []byte(src))
		if err != nil {
			t.Fatalf("%v\n%s", err, src)
		}
		for range rapid.IntRange(0, 5).Draw(t, "set") {
			cell, may := someCell(t), someAnomalies(t)
			if err := e.Set(cell[0], cell[1], may); err != nil {
				t.Fatal(err)
			}
			written[cell] = may
		}
		text := string(e.Format())
		got, err := scenarios.ParseExpectations("x.expect", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if again := string(got.Format()); again != text {
			t.Fatalf("%s\nbecomes\n%s", text, again)
		}
		lines := 0
		for cell, may := range written {
			lines++
			found, said := got.Of(cell[0], cell[1])
			if !said || !sameSet(found, may) {
				t.Fatalf("%v: %v, said: %v, want %v\n%s", cell, found, said, may, text)
			}
		}
		if count := strings.Count(text, "\n  ") - strings.Count(text, "\n  #"); count != lines {
			t.Fatalf("%d lines, want %d:\n%s", count, lines, text)
		}
		if got, want := sortedComments(text), sortedComments(src); !slices.Equal(got, want) {
			t.Fatalf("comments %q became %q\n%s", want, got, text)
		}
		if strings.Contains(text, "\n\n\n") || strings.HasPrefix(text, "\n") || strings.HasSuffix(text, "\n\n") {
			t.Fatalf("blank lines too many:\n%s", text)
		}
	})
}

func sameSet(a, b []checker.Anomaly) bool {
	return len(a) == len(b) && !slices.ContainsFunc(b, func(x checker.Anomaly) bool { return !slices.Contains(a, x) })
}

// sortedComments returns the comments that say something.
func sortedComments(text string) []string {
	list := comments(text)
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	list = slices.DeleteFunc(list, func(comment string) bool { return comment == "" })
	return slices.Sorted(slices.Values(list))
}

var (
	someStrategies = []string{"b", "a", "redlock", "my-lock-2"}
	someScenarios  = []string{"flush", "contention", "mine.txt", "a:b.txt", "50%q.txt", "ä.txt"}
)

func someCell(t *rapid.T) [2]string {
	return [2]string{rapid.SampledFrom(someStrategies).Draw(t, "strategy"), rapid.SampledFrom(someScenarios).Draw(t, "scenario")}
}

func someAnomalies(t *rapid.T) []checker.Anomaly {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(checker.Anomalies()), 0, 4, rapid.ID[checker.Anomaly]).Draw(t, "may")
}

// expectationText draws a text with comments and blank lines anywhere, and what it
// says.
func expectationText(t *rapid.T) (string, map[[2]string][]checker.Anomaly) {
	var text strings.Builder
	number := 0
	aside := func() {
		for range rapid.IntRange(0, 3).Draw(t, "aside") {
			number++
			text.WriteString(rapid.SampledFrom([]string{"", " \t", fmt.Sprint("# ", number), fmt.Sprint("  # ", number), "  #"}).Draw(t, "line") + "\n")
		}
	}
	end := func() {
		if number++; rapid.Bool().Draw(t, "trailing") {
			text.WriteString(fmt.Sprint("# ", number))
		}
		text.WriteString("\n")
	}
	says := map[[2]string][]checker.Anomaly{}
	for _, strategy := range rapid.Permutation(someStrategies).Draw(t, "strategies")[:rapid.IntRange(0, 4).Draw(t, "n")] {
		aside()
		text.WriteString(strategy + ": ")
		end()
		for _, scenario := range rapid.Permutation(someScenarios).Draw(t, "scenarios")[:rapid.IntRange(0, 6).Draw(t, "n")] {
			aside()
			may := someAnomalies(t)
			text.WriteString("\t" + scenario + ":  ")
			for _, a := range may {
				text.WriteString(string(a) + " ")
			}
			if len(may) == 0 {
				text.WriteString("none ")
			}
			end()
			says[[2]string{strategy, scenario}] = may
		}
	}
	aside()
	return text.String(), says
}

func TestCheckMay(t *testing.T) {
	for _, c := range []struct {
		may  map[string][]string
		want string
	}{
		{nil, ""},
		{map[string][]string{"flush": {"overlap", "ghost"}, "contention": nil, "mine.txt": {}, "other.txt": {}}, ""},
		{map[string][]string{"flsh": nil}, `no scenario is called "flsh", did you mean "flush"?`},
		{map[string][]string{"zzz": nil}, `no scenario is called "zzz"; a script of your own goes by the name of its file, such as mine.txt`},
		{map[string][]string{"mine": nil}, `no scenario is called "mine", did you mean "mine.txt"?`},
		{map[string][]string{"flush": {"overlap", "gost"}}, `under flush: no anomaly is called "gost", did you mean "ghost"?`},
		{map[string][]string{"flush": {"none"}}, `under flush: no anomaly is called "none": there are overlap, `},
	} {
		err := scenarios.CheckMay(c.may, []string{"mine.txt"})
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && !strings.HasPrefix(got, c.want) {
			t.Errorf("%v: %v, want %s", c.may, err, c.want)
		}
	}
}

// The file that docs/expectations.md shows is one, in canonical form.
func TestDocumentedExpectations(t *testing.T) {
	text, err := os.ReadFile("../docs/expectations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```\n")
	src, _, found := strings.Cut(rest, "```")
	e, err := readExpectations(src)
	if err != nil || !found {
		t.Fatalf("%v in\n%s", err, src)
	}
	if got := string(e.Format()); got != src || len(e.Scenarios("my-lock")) < 4 {
		t.Errorf("%s\nis not canonical, this is:\n%s", src, got)
	}
}

// A user's script is not the library's, though it have the same name and text.
func TestKey(t *testing.T) {
	flush, err := scenarios.Lookup("flush")
	if err != nil {
		t.Fatal(err)
	}
	mine, err := scenarios.Parse("scripts/flush.txt", flush.Format())
	if err != nil {
		t.Fatal(err)
	}
	if flush.Key() != "flush" || mine.Key() != "flush.txt" {
		t.Errorf("keys %q and %q, want flush and flush.txt", flush.Key(), mine.Key())
	}
}

// Whatever the text, it is accepted, or it is said where it is wrong; what is accepted
// survives formatting.
func FuzzParseExpectations(f *testing.F) {
	text, err := os.ReadFile("testdata/expectations.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range strings.Split(string(text), "\n=== ") {
		_, body, _ := strings.Cut(c, "\n")
		src, _, _ := strings.Cut(body, "---\n")
		f.Add([]byte(src))
	}
	for _, src := range []string{
		"", "#", ":", "a::", "a:\n  :: none", "a:\n  b: none#\n  # c\n# d\n\n# e\nb:\n\n  # f\n", "\ufeff a:\n", "a:\n\n\n \tx%d: overlap ghost # %s",
	} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		e, err := scenarios.ParseExpectations("x.expect", src)
		if err == nil {
			err = e.Check([]string{"a", "b", "my-lock", "redlock"}, []string{"mine.txt"})
		}
		var syntax *scenarios.SyntaxError
		if errors.As(err, &syntax) {
			if syntax.Line < 1 || syntax.Column < 1 || syntax.Message == "" || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Fatalf("a poor error: %#v", syntax)
			}
		} else if err != nil {
			t.Fatalf("%v is not a SyntaxError", err)
		}
		// Canonical blanks may take a text that just fits over the limits.
		if e == nil || len(src) > 1<<18 || longest(src) > 5_000 {
			return
		}
		text := e.Format()
		again, err := scenarios.ParseExpectations("x.expect", text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if second := again.Format(); string(second) != string(text) {
			t.Fatalf("%q\nbecomes\n%q", text, second)
		}
		if got, want := sortedComments(string(text)), sortedComments(string(src)); !slices.Equal(got, want) {
			t.Fatalf("comments %q became %q\n%s", want, got, text)
		}
	})
}
