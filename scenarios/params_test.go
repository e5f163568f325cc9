package scenarios_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/scenarios"
)

const opened = `# of a pause

clients A B
param pause 0.1ttl..2ttl at 1.1ttl
param jump 0s..1m
param lease 1s..1m at 30s
ttl $lease

A acquire
A pause
wait $pause  # how long
B acquire
A resume
A clock -$jump
A release

expect overlap
`

// A script with params is one with their values, keeps their names when it is formatted,
// and with other values is another script, which differs in nothing else.
func TestParams(t *testing.T) {
	script, err := scenarios.Parse("opened.txt", []byte(opened))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(script.Format()); got != opened {
		t.Errorf("formatted it is\n%s", got)
	}
	if script.TTL.String() != "30s" || script.Steps[2].Do.String() != "wait 1.1ttl" || script.Steps[5].Do.String() != "A clock -1m" {
		t.Errorf("its values are %v, %v and %v", script.TTL, script.Steps[2].Do, script.Steps[5].Do)
	}
	if !script.OpenTTL() {
		t.Error("its lease is none of a param")
	}
	text := string(script.With(map[string]string{"pause": "0.5ttl", "jump": "2s"}))
	want := strings.NewReplacer("at 1.1ttl", "at 0.5ttl", "0s..1m\n", "0s..1m at 2s\n").Replace(opened)
	if text != want {
		t.Errorf("with other values it is\n%s", text)
	}
	other, err := scenarios.Parse("opened.txt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if other.Steps[2].Do.String() != "wait 0.5ttl" || other.Steps[5].Do.String() != "A clock -2s" {
		t.Errorf("its values are %v and %v", other.Steps[2].Do, other.Steps[5].Do)
	}
	changed := *script
	changed.Steps = slices.Clone(script.Steps)
	changed.Steps[2].Do = scenarios.Wait{For: faults.Span{TTLs: 3}}
	if got := string(changed.Format()); !strings.Contains(got, "\nwait 3ttl  # how long\n") {
		t.Errorf("with another step it is\n%s", got)
	}
	// Whoever changes a step is not overruled by how it was written.
	script.Steps = script.Steps[:2]
	if strings.Contains(string(script.Format()), "wait") {
		t.Error("a step that was taken away is still there")
	}
}

// What is wrong with a param is said where it stands.
func TestParamsAreRefused(t *testing.T) {
	const rest = "\nA acquire\n\nexpect none\n"
	for line, want := range map[string]string{
		"param":               "a name is missing",
		"param Pause 0..1ttl": "small letters",
		"param verdict 1..2":  "column of that name",
		"param a123456789012345678901234567890 1..2": "at most 30 letters",
		"param p 1..2\nmeasure $p":                   "lower-case letters",
		"param pause":                                "a range such as 0.1ttl..2ttl",
		"param pause 1ttl":                           "no range",
		"param pause 0ttl..2s":                       "from one unit to another",
		"param pause 2ttl..1ttl":                     "nothing in it",
		"param pause 1ttl..1ttl":                     "nothing in it",
		"param pause 1s..1000000001ns":               "written alike",
		"param pause 0..x":                           "neither a number",
		"param p 100B/s..200B/s":                     `"100B/s" is neither a number such as 1.5 nor a length of time such as 30s, 200ms or 1.1ttl`,
		"param p 1banana..2banana":                   `"1banana" is neither a number`,
		"param p 1x..2x":                             `"1x" is neither a number`,
		"param p 1%..2%":                             `"1%" is neither a number`,
		"param p 1..2x":                              `"2x" is neither a number`,
		"param p 1..2 at 2%":                         `"2%" is neither a number`,
		"param pause 0..1ttl at 2ttl":                "out of the range",
		"param pause 0..1ttl at 1s":                  "another unit",
		"param pause 0..1ttl at":                     "a value is missing",
		"param pause 0..1ttl at 1ttl more":           "more",
		"param n 1..5 at 1.5":                        "no whole number",
		"param n 1..5\nparam n 1..5":                 "already set on line 2",
		"param n 1s..5s\nttl $m":                     "no param of the lines above",
		"param n 1s..5s\nttl 1$n":                    "not a length of time",
		"param n 1..5\nnodes $n\nfor $n":             "not a strategy's name",
		"ttl $n\nparam n 1s..5s":                     "no param of the lines above",
		"param n 1..3\nretries $n\nbound $":          "no param of the lines above",
	} {
		_, err := scenarios.Parse("x.txt", []byte("clients A\n"+line+"\n"+rest))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", line, err, want)
		}
	}
}

// A range is read back as it is written, and so is each of its values.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"ttl", "ms", "s", "", ".0"}).Draw(t, "unit")
		from := rapid.IntRange(-5, 100).Draw(t, "from")
		to := from + rapid.IntRange(1, 1000).Draw(t, "length")
		end := func(n int) string { return strings.Replace(rapid.Just(itoa(n)).Draw(t, "end")+unit, "-0", "0", 1) }
		r, err := scenarios.ParseRange(end(from) + ".." + end(to))
		if err != nil {
			t.Fatal(err)
		}
		again, err := scenarios.ParseRange(r.String())
		if err != nil || again != r {
			t.Fatalf("%+v is %s, and that is %+v, %v", r, r, again, err)
		}
		n := rapid.IntRange(1, 300).Draw(t, "n")
		for _, i := range []int{0, rapid.IntRange(0, n).Draw(t, "i"), n} {
			v := r.Of(i, n)
			if v < r.From || v > r.To {
				t.Errorf("%d of %d of %v is %v", i, n, r, v)
			}
			script, err := scenarios.Parse("x.txt", []byte("clients A\nparam p "+r.String()+" at "+r.Text(v)+"\n\nA acquire\n\nexpect none\n"))
			if err != nil {
				t.Fatal(err)
			}
			if script.Params[0].At != r.Text(v) || script.Params[0].Range != r {
				t.Errorf("%s of %v is read as %+v", r.Text(v), r, script.Params[0])
			}
		}
	})
}

func itoa(n int) string {
	if n < 0 {
		return "-" + itoa(-n)
	}
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

// Any length of time can be made a param.
func TestOpenSpan(t *testing.T) {
	r, err := scenarios.ParseRange("0.5ttl..2ttl")
	if err != nil {
		t.Fatal(err)
	}
	const text = "# about\n\nclients A B\n\nA acquire within 3ttl\nlatency 5ms jitter 1ms\nwait 1.1ttl\n\nexpect none\n"
	got, err := scenarios.OpenSpan("x.txt", []byte(text), 7, 1, "line-7", r)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("clients", "param line-7 0.5ttl..2ttl at 1.1ttl\nclients", "wait 1.1ttl", "wait $line-7").Replace(text)
	if string(got) != want {
		t.Errorf("got\n%s", got)
	}
	if script, err := scenarios.Parse("x.txt", got); err != nil || script.Steps[2].Do.String() != "wait 1.1ttl" {
		t.Errorf("%v, %v", script, err)
	}
	r, _ = scenarios.ParseRange("1ms..2s")
	if got, err := scenarios.OpenSpan("x.txt", []byte(text), 6, 2, "j", r); err != nil || !strings.Contains(string(got), "latency 5ms jitter $j") {
		t.Errorf("%v\n%s", err, got)
	}
	for _, c := range []struct{ line, nth int }{{0, 1}, {99, 1}, {3, 1}, {6, 3}, {6, 0}} {
		if _, err := scenarios.OpenSpan("x.txt", []byte(text), c.line, c.nth, "p", r); err == nil {
			t.Errorf("line %d, %d: no error", c.line, c.nth)
		}
	}
}

// The scripts for maps that come with the program are scripts, in their canonical form, and
// have two params.
func TestMapScripts(t *testing.T) {
	for _, name := range scenarios.MapNames() {
		file, src := scenarios.MapSource(name)
		script, err := scenarios.Parse(file, src)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := string(script.Format()); got != string(src) {
			t.Errorf("%s is formatted as\n%s", name, got)
		}
		if len(script.Params) != 2 || len(script.Doc) == 0 || script.Name != name {
			t.Errorf("%s: %d params, %d lines about it, and the name %s", name, len(script.Params), len(script.Doc), script.Name)
		}
	}
	if file, src := scenarios.MapSource("none"); file != "" || src != nil {
		t.Error(file)
	}
}
