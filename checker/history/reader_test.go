package history_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/lockfault/lockfault/checker/history"
	"github.com/lockfault/lockfault/checker/linear"
)

// show writes an event on one line.
func show(e linear.Event) string {
	phase := [...]string{"?", "call", "ok", "fail", "unknown", "crash", "expired"}[e.Phase]
	op := [...]string{"", "acquire", "try", "release", "extend", "use"}[e.Op]
	b := fmt.Sprintf("%d: %s %s", e.Line, e.Time, e.Client)
	for _, word := range []string{op, phase} {
		if word != "" {
			b += " " + word
		}
	}
	if e.Key != "" {
		b += " key=" + e.Key
	}
	if e.Token != 0 {
		b += fmt.Sprint(" token=", e.Token)
	}
	if e.Lease != 0 {
		b += fmt.Sprint(" lease=", e.Lease)
	}
	if e.Shared {
		b += " shared"
	}
	if e.Permits != 0 {
		b += fmt.Sprint(" permits=", e.Permits)
	}
	return b
}

// read returns what a reader makes of the text, a line for each event, and
// behind them what it counted.
func read(text []byte, lenient bool, o history.Options) string {
	var b strings.Builder
	if lenient {
		o.Skip = func(err *history.Error) { fmt.Fprintln(&b, "skip", err) }
	}
	r := history.New(bytes.NewReader(text), o)
	for e, err := range r.Events() {
		if err != nil {
			fmt.Fprintln(&b, err)
			break
		}
		fmt.Fprintln(&b, show(e))
	}
	if c := r.Separator(); c != 0 && c != ',' {
		fmt.Fprintf(&b, "separated by %q\n", c)
	}
	if times := r.Times(); times.Since1970 || times.Unit != "" && !times.Guessed {
		fmt.Fprintf(&b, "times %+v\n", times)
	}
	for _, other := range r.IgnoredEvents() {
		fmt.Fprintf(&b, "other %+v\n", other)
	}
	if r.Skipped() > 0 {
		fmt.Fprintf(&b, "skipped %d\n", r.Skipped())
	}
	if r.Ignored() > 0 {
		fmt.Fprintf(&b, "ignored %d\n", r.Ignored())
	}
	return b.String()
}

// Each file of testdata is read strictly and leniently; the golden file beside
// it holds what came out. A unit of time behind "-as-" in its name is asked for.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/read/*")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, ".golden") {
			continue
		}
		seen++
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(file)
			o := history.Options{Name: name}
			if _, unit, ok := strings.Cut(name, "-as-"); ok {
				o.TimeUnit = history.TimeUnit(strings.TrimSuffix(unit, filepath.Ext(unit)))
			}
			got := read(text, false, o)
			if lenient := read(text, true, o); lenient != got {
				got += "\nlenient:\n" + lenient
			}
			golden.Assert(t, got, filepath.Join("read", name+".golden"))
		})
	}
	if seen == 0 {
		t.Error("no files in testdata/read")
	}
}

func pack(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const (
	header  = "time,client,event,result\n"
	acquire = header + "1,A,acquire,call\n2,A,acquire,ok\n"
	taken   = "2: 1ns A acquire call\n3: 2ns A acquire ok\n"
)

// What no text file in a repository can show well.
func TestHostile(t *testing.T) {
	big := strings.Repeat("x", 10<<20)
	packed := pack(t, acquire)
	damaged := []byte(packed)
	damaged[len(damaged)-6] ^= 1
	events := `{"t":1,"kind":"invoke","client":"A","op":"acquire","call":1}` + "\n"
	tests := []struct {
		name, text, want string
		lenient          string // what a lenient reader makes of it, if it is another thing
	}{
		{"empty", "", "f:1: the history is empty\n", ""},
		{"blank", " \n\t\r\n", "f:1: the history is empty\n", ""},
		{"only a mark", "\xef\xbb\xbf", "f:1: the history is empty\n", ""},
		{"an empty archive", pack(t, ""), "f:1: the history is empty\n", ""},
		{"only a header", header, "f:1: the history tells of no operation of a lock\n", ""},
		{"noise", "\x00\x01\x02", "f:1: this looks like none of JSON lines, EDN and CSV: name the format\n", ""},
		{"UTF-16", "\xff\xfet\x00i\x00", "f:1: the text is UTF-16: convert it to UTF-8\n", ""},
		{"a mark", "\xef\xbb\xbf" + acquire, taken, ""},
		{"packed", packed, taken, ""},
		{"packed, with a mark", pack(t, "\xef\xbb\xbf"+acquire), taken, ""},
		{"packed twice", pack(t, packed), "f:1: this looks like none of JSON lines, EDN and CSV: name the format\n", ""},
		{"an archive cut short", packed[:len(packed)-10], taken + "f:4: the gzip data ends too soon\n", ""},
		{"an archive without an end", packed[:len(packed)-4], taken + "f:4: the gzip data ends too soon\n", ""},
		{"a damaged archive", string(damaged), taken + "f:4: the gzip data is damaged: its checksum is wrong\n", ""},
		{"a damaged head", packed[:5], "f:1: the gzip data is damaged: it ends too soon\n", ""},
		{"an archive of CSV cut short in its header", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03+\xc9\xccM\xd5I\xce\xc9L\xcd+\x01", "f:1: the gzip data ends too soon\n", ""},
		{"half a character in JSON", `{"t":1,"kind":"invoke","client":"\ud800","op":"acquire"}` + "\n" + `{"t":2,"kind":"return","client":"\ud801","op":"acquire","result":"ok"}`,
			"f:1: an escape as \\ud800 is half of a character, and the other half is missing\n",
			"skip f:1: an escape as \\ud800 is half of a character, and the other half is missing\n" +
				"skip f:2: an escape as \\ud800 is half of a character, and the other half is missing\nf:2: no line that can be read tells of an operation of a lock\nskipped 2\n"},
		{"whole characters in JSON", `{"t":1,"kind":"invoke","client":"\ud83d\ude00 \ufffd","op":"acquire"}` + "\n", "1: 1ns \U0001F600 \uFFFD acquire call\n", ""},
		{"a list in another order", "time,client,event,result,key\n1,A,acquire,call,z\n2,A,acquire,call,x y\n3,A,acquire,ok,y x\n",
			"2: 1ns A acquire call key=z\n3: 2ns A acquire call key=x y\nf:4: A returns from acquire of \"y x\", which its call of line 3 has as \"x y\": write it the same way\n",
			"2: 1ns A acquire call key=z\n3: 2ns A acquire call key=x y\nskip f:4: A returns from acquire of \"y x\", which its call of line 3 has as \"x y\": write it the same way\nskipped 1\n"},
		{"mixed ends of lines", "time,client,event,result\r\n1,A,acquire,call\n\r\n\n2,A,acquire,ok\r\n", "2: 1ns A acquire call\n5: 2ns A acquire ok\n", ""},
		{"no end of the last line", strings.TrimSuffix(acquire, "\n"), taken, ""},
		{"a long line", header + big + "\n" + strings.TrimPrefix(acquire, header), "f:2: the line has 10485760 bytes; 1048576 are the most\n",
			"skip f:2: the line has 10485760 bytes; 1048576 are the most\n3: 1ns A acquire call\n4: 2ns A acquire ok\nskipped 1\n"},
		{"a long line of JSON", events + `{"t":2,"kind":"` + big + `"}`, "1: 1ns A acquire call\nf:2: the line has 10485777 bytes; 1048576 are the most\n",
			"1: 1ns A acquire call\nskip f:2: the line has 10485777 bytes; 1048576 are the most\nskipped 1\n"},
		{"a long map", `{:type :invoke, :process 0, :f :acquire, :value "` + big + "\"}\n{:type :invoke, :process 0, :f :acquire}",
			"f:1: the value has 10485811 bytes; 1048576 are the most\n",
			"skip f:1: the value has 10485811 bytes; 1048576 are the most\n2: 1ns 0 acquire call\nskipped 1\n"},
		{"a vector on one long line", "[" + strings.Repeat(" ", 2<<20) + "{:type :invoke, :process 0, :f :acquire}]", "1: 1ns 0 acquire call\n", ""},
		{"deep EDN", "{:value " + strings.Repeat("[", 1<<19) + strings.Repeat("]", 1<<19) + "}\n{:type :invoke, :process 0, :f :acquire}",
			"f:1: it nests 524289 deep; 64 is the most\n",
			"skip f:1: it nests 524289 deep; 64 is the most\n2: 1ns 0 acquire call\nskipped 1\n"},
		{"deep EDN without an end", "{:value " + strings.Repeat("[", 1<<19), "f:1: it is not closed when the file ends\n",
			"skip f:1: it is not closed when the file ends\nf:1: no line that can be read tells of an operation of a lock\nskipped 1\n"},
		{"deep tags", "{:value " + strings.Repeat("#a ", 1<<17) + "1}\n{:type :invoke, :process 0, :f :acquire}",
			"f:1: it nests 131073 deep; 64 is the most\n",
			"skip f:1: it nests 131073 deep; 64 is the most\n2: 1ns 0 acquire call\nskipped 1\n"},
		{"deep JSON", events + strings.Repeat(`{"t":`, 1<<16), "1: 1ns A acquire call\nf:2: invalid character '{' exceeded max depth\n",
			"1: 1ns A acquire call\nskip f:2: invalid character '{' exceeded max depth\nskipped 1\n"},
		{"NUL", header + "1,A\x00,acquire,call\n", "f:2: there is a NUL byte in it\n",
			"skip f:2: there is a NUL byte in it\nf:2: no line that can be read tells of an operation of a lock\nskipped 1\n"},
		{"NUL in JSON", events + "{\"t\":2,\"kind\":\"end\x00\"}\n", "1: 1ns A acquire call\nf:2: there is a NUL byte in it\n",
			"1: 1ns A acquire call\nskip f:2: there is a NUL byte in it\nskipped 1\n"},
		{"NUL in EDN", "{:type :invoke, :process 0, :f :acquire}\n{:type :ok, :process 0, :f :acquire, :error \"\x00\"}", "1: 1ns 0 acquire call\nf:2: there is a NUL byte in it\n",
			"1: 1ns 0 acquire call\nskip f:2: there is a NUL byte in it\nskipped 1\n"},
		{"not UTF-8", header + "1,\xff,acquire,call\n1,\xfe,acquire,call\n", "f:2: it is not valid UTF-8\n",
			"skip f:2: it is not valid UTF-8\nskip f:3: it is not valid UTF-8\nf:3: no line that can be read tells of an operation of a lock\nskipped 2\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := read([]byte(test.text), false, history.Options{Name: "f"}); got != test.want {
				t.Errorf("got\n%.1000swant\n%s", got, test.want)
			}
			want := test.lenient
			if want == "" {
				want = test.want
			}
			if got := read([]byte(test.text), true, history.Options{Name: "f"}); got != want {
				t.Errorf("lenient, got\n%.1000swant\n%s", got, want)
			}
		})
	}
}

func TestFormatThatIsAskedFor(t *testing.T) {
	for _, format := range history.Formats() {
		got := read([]byte("hello\n"), false, history.Options{Format: format})
		if !strings.HasPrefix(got, "stdin:1: ") {
			t.Errorf("%s: %s", format, got)
		}
	}
	if got, want := read([]byte("hello\n"), false, history.Options{Format: "xml"}), "stdin:1: there is no format \"xml\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReaderIsUsedOnce(t *testing.T) {
	r := history.New(strings.NewReader(acquire), history.Options{})
	if r.Format() != history.Auto {
		t.Errorf("format %q before anything is read", r.Format())
	}
	for range r.Events() {
		break // a consumer that has seen enough
	}
	if r.Format() != history.CSV {
		t.Errorf("format %q of CSV", r.Format())
	}
	for _, err := range r.Events() {
		var where *history.Error
		if !errors.As(err, &where) {
			t.Errorf("second pass: %v", err)
		}
	}
}

// A brokenReader fails after its text.
type brokenReader struct{ text *strings.Reader }

var errBroken = errors.New("the disk is gone")

func (b brokenReader) Read(p []byte) (int, error) {
	if b.text.Len() == 0 {
		return 0, errBroken
	}
	return b.text.Read(p)
}

func TestErrorOfTheInput(t *testing.T) {
	for _, text := range []string{"", "t", acquire, acquire + "3,A,rel", "[{:type :invoke, :process 0, :f :acquire}", "{:type", "{:a \"", "; c"} {
		var last error
		r := history.New(brokenReader{strings.NewReader(text)}, history.Options{Name: "f", Skip: func(*history.Error) {}})
		for _, err := range r.Events() {
			last = err
		}
		var where *history.Error
		if !errors.Is(last, errBroken) || !errors.As(last, &where) || where.Line < 1 {
			t.Errorf("%q: %v", text, last)
		}
	}
}
