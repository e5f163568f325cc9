package checker

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// TestEventsAreWrittenAsJSONWould holds the hand-written encoder against
// encoding/json, over all fields of Event, also those to come.
func TestEventsAreWrittenAsJSONWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.Make[Event]().Draw(t, "event")
		if s := rapid.SampledFrom([]string{"", "\x00\x1f\"\\/<>&\b\f\n\r\t\x7f", "é\u2028\u2029×", "\xff\xc3"}).Draw(t, "text"); s != "" {
			e.Text = s
		}
		got := e.AppendJSON(nil)
		var want bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(e); err != nil {
			t.Fatal(err)
		}
		if w := bytes.TrimSpace(want.Bytes()); !bytes.Equal(got, w) {
			t.Fatalf("got  %s\nwant %s", got, w)
		}
	})
}

// TestEventsAreReadAsJSONWould holds the reader of plain lines against encoding/json, over all
// fields of Event, also those to come: what is written is read, and what the reader takes it
// takes as the library does, be the line spoilt in any way.
func TestEventsAreReadAsJSONWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.Make[Event]().Draw(t, "event")
		for _, text := range []*string{&e.Text, &e.Command, &e.Error} {
			*text = rapid.SampledFrom([]string{"", "SET lock A1 NX PX 30000", "é×", "a\"b\\n\n", "\x01", "\xff\xc3"}).Draw(t, "text")
		}
		line := e.AppendJSON(nil)
		if rapid.Bool().Draw(t, "spoilt") {
			at := rapid.IntRange(0, len(line)-1).Draw(t, "at")
			with := rapid.SampledFrom([]string{"", " ", "x", `"`, `,`, `:`, `}`, `"t":7,`, `0`, `-`, `\u0041`, "null", "true"}).Draw(t, "with")
			line = append(append(append([]byte{}, line[:at]...), with...), line[at+rapid.IntRange(0, 1).Draw(t, "cut"):]...)
		}
		var want, got Event
		err := decodeLine(line, &want)
		if !eventLines.Read(line, &got, byteString) {
			return
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\nread as %+v\nencoding/json: %+v, %v", line, got, want, err)
		}
	})
}

// TestPlainLinesAreScanned sees that what histories consist of is not left to encoding/json: a
// field that the reader doesn't know would make it so.
func TestPlainLinesAreScanned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.Make[Event]().Draw(t, "event")
		v := reflect.ValueOf(&e).Elem()
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.String:
				f.SetString(rapid.SampledFrom([]string{"", "A", "SET lock A1 NX PX 30000", "é"}).Draw(t, "text"))
			case reflect.Int, reflect.Int64:
				f.SetInt(rapid.Int64Range(-1e17, 1e17).Draw(t, "number"))
			}
		}
		var got Event
		if line := e.AppendJSON(nil); !eventLines.Read(line, &got, byteString) || got != e {
			t.Fatalf("%s\nread as %+v", line, got)
		}
	})
}

func byteString(b []byte) string { return string(b) }

func TestHistoryComesBack(t *testing.T) {
	for _, h := range caseHistories(t) {
		var first, second bytes.Buffer
		if err := Encode(&first, h); err != nil {
			t.Fatal(err)
		}
		text := first.String()
		back, err := Decode(&first)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, h) {
			t.Fatalf("got %+v, want %+v", back, h)
		}
		if err := Encode(&second, back); err != nil || second.String() != text {
			t.Fatalf("written again (%v):\n%s\nwant\n%s", err, &second, text)
		}
	}
}

// caseHistories returns the histories of testdata/cases.
func caseHistories(t testing.TB) []History {
	files, err := filepath.Glob("testdata/cases/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	var all []History
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(string(text), "\n\n") {
			var lines []string
			for line := range strings.Lines(part) {
				if line = strings.TrimSpace(line); line != "" && line[0] != '#' && line[0] != '-' {
					lines = append(lines, line)
				}
			}
			if len(lines) == 0 {
				continue
			}
			h, err := parseHistory(lines)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, h)
		}
	}
	return all
}

func TestDecodeRefuses(t *testing.T) {
	const meta = `{"lockfault":1,"strategy":"s","scenario":"s","world":"sim","seed":1,"clients":["A"],"nodes":["n1"],"ttl":1,"grace":1,"bound":1}` + "\n"
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", "the history is empty"},
		{"no JSON", "hello\n", "line 1: it is no JSON: invalid character"},
		{"another format", `{"lockfault":2}`, "line 1: history format 2; this program reads format 1"},
		{"no format", `{}`, "line 1: history format 0"},
		{"unknown field of meta", `{"lockfault":1,"lease":3}`, `line 1: json: unknown field "lease"`},
		{"unknown field", meta + `{"i":0,"t":0,"kind":"end","colour":"red"}`, `line 2: json: unknown field "colour"`},
		{"wrong type", meta + `{"i":0,"t":"1s","kind":"end"}`, `line 2: "t" can't be a JSON string`},
		{"unknown kind", meta + `{"i":0,"t":0,"kind":"begin"}`, `line 2: no kind of event is called "begin"`},
		{"a gap", meta + `{"i":0,"t":0,"kind":"pause"}` + "\n" + `{"i":2,"t":0,"kind":"end"}`, "line 3: event 2 where event 1 should be"},
		{"time goes back", meta + `{"i":0,"t":2000000000,"kind":"pause"}` + "\n" + `{"i":1,"t":1000000000,"kind":"end"}`, "line 3: time goes back from 2s to 1s"},
		{"two objects", meta + `{"i":0,"t":0,"kind":"end"} {}`, "line 2: more than one object"},
		{"half an object", meta + `{"i":0,"t":0,`, "line 2: the line ends too soon"},
		{"an empty line", meta + "\n" + `{"i":0,"t":0,"kind":"end"}`, "line 2: the line ends too soon"},
		{"a long line", meta + `{"i":0,"t":0,"kind":"end","text":"` + strings.Repeat("x", maxLine) + `"}`, "line 2: longer than 1048576 bytes"},
	} {
		_, err := Decode(strings.NewReader(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.want)
		}
	}
	broken := errors.New("broken")
	if _, err := Decode(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

func TestEncodeReportsTheWriter(t *testing.T) {
	h := History{Events: make([]Event, 10_000)}
	for _, room := range []int{0, 100_000} {
		if err := Encode(&fullWriter{room}, h); !errors.Is(err, errFull) {
			t.Errorf("room for %d bytes: got %v, want the writer's error", room, err)
		}
	}
}

var errFull = errors.New("full")

type fullWriter struct{ room int }

func (w *fullWriter) Write(p []byte) (int, error) {
	if w.room -= len(p); w.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// TestDocsExample decodes the example in docs/history.md.
func TestDocsExample(t *testing.T) {
	text, err := os.ReadFile("../docs/history.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```jsonl\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("no block of JSON lines in docs/history.md")
	}
	h, err := Decode(bytes.NewReader(block[1]))
	if err != nil {
		t.Fatal(err)
	}
	var back bytes.Buffer
	if err := Encode(&back, h); err != nil || back.String() != string(block[1]) {
		t.Errorf("written again (%v):\n%s", err, &back)
	}
	v := Check(h)
	if got := v.Anomalies(); !reflect.DeepEqual(got, []Anomaly{Overlap, StaleWrite}) {
		t.Errorf("the example shows %v", got)
	}
	for _, w := range v.Witnesses {
		if !strings.Contains(string(text), w.Message) {
			t.Errorf("the page doesn't quote %q", w.Message)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, h := range caseHistories(f) {
		var b bytes.Buffer
		if err := Encode(&b, h); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := Decode(bytes.NewReader(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "checker: ") {
				t.Errorf("an error without the package's name: %v", err)
			}
			return
		}
		var out bytes.Buffer
		if err := Encode(&out, h); err != nil {
			t.Fatal(err)
		}
		back, err := Decode(&out)
		if err != nil || !reflect.DeepEqual(back, h) {
			t.Errorf("%+v came back as %+v (%v)", h, back, err)
		}
		Check(h)
	})
}

func BenchmarkEncodeEvent(b *testing.B) {
	e := Event{Index: 4711, Time: 33002000000, Kind: Reply, Client: "A", Node: "n1", Conn: 1, Command: "SET lock A1 NX PX 30000", Reply: "OK", Sent: 33001000000}
	line := make([]byte, 0, 512)
	for b.Loop() {
		line = e.AppendJSON(line[:0])
	}
}
