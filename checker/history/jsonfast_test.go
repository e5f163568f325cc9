package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/checker"
)

// agree fails if the quick reader understood a line otherwise than the standard library.
func agree(t interface{ Fatalf(string, ...any) }, line []byte) (understood bool) {
	var fast, slow jsonLine
	if !jsonFormat.Read(line, &fast, func(b []byte) string { return string(b) }) {
		return false
	}
	if err := decode(line, &slow); err != nil {
		t.Fatalf("%q: Read took it, but %v", line, err)
	}
	if fast != slow {
		t.Fatalf("%q: Read read %+v, encoding/json %+v", line, fast, slow)
	}
	return true
}

func TestScan(t *testing.T) {
	tests := []struct {
		line string
		want bool
	}{
		{`{"t":1}`, true},
		{`{"i":0,"t":-12,"kind":"invoke","client":"A","op":"try","call":3}`, true},
		{`{"t":1,"kind":"write","accepted":true,"token":123456789012345678}`, true},
		{`{"t":1,"t":2,"client":"A","client":"B"}`, false},
		{`{"key":"k","permits":3,"until":4,"result":"ok"}`, true},
		{`{"node":"","server":"","error":"","direction":"","command":"","reply":"","owner":"","value":"","cause":"","text":"","conn":1,"sent":2,"expires":3,"took":4,"line":5}`, true},
		{``, false},
		{`{}`, false},
		{`{"t":1} `, true},
		{` {"t":1}`, true},
		{`{"t": 1}`, true},
		{`{"t":1,}`, false},
		{`{"t":1`, false},
		{`{"t":`, false},
		{`{"t"`, false},
		{`{"t`, false},
		{`{"t":01}`, false},
		{`{"t":-}`, false},
		{`{"t":1.5}`, false},
		{`{"t":1e3}`, false},
		{`{"t":1234567890123456789}`, false},
		{`{"t":"1"}`, false},
		{`{"t":null}`, false},
		{`{"T":1}`, false},
		{`{"client":"a\"b"}`, true},
		{`{"client":"é"}`, true},
		{"{\"client\":\"\x01\"}", false},
		{`{"client":5}`, false},
		{`{"accepted":false}`, true},
		{`{"accepted":truly}`, false},
		{`{"accepted":tru`, false},
		{`{"CLIENT":"A"}`, false},
		{`{"clie\u006et":"A"}`, false},
		{`{"reply":"\"OK\"","error":"\\\n","command":"é\/"}`, true},
		{`{"reply":"\u00e9"}`, false},
		{`{"reply":"\x"}`, false},
		{`{"reply":"\u00g0"}`, false},
		{`{"reply":"\u00"}`, false},
		{`{"reply":"\`, false},
		{"{\"reply\":\"\xff\"}", false},
		{`{"reply":5}`, false},
		{`{"t":5,"t":5}`, false},
		{"\t{ \"t\" :\r1 , \"kind\" : \"end\" } ", true},
		{`{"t":1} {}`, false},
		{`{"accepted":falsy}`, false},
		{`{"accepted":"true"}`, false},
		{`{"colour":"red"}`, false},
		{`{"colour":1}`, false},
		{`{"client":"A"`, false},
		{`{"client":"A"x}`, false},
	}
	for _, test := range tests {
		if got := agree(t, []byte(test.line)); got != test.want {
			t.Errorf("%s: understood: %v, want %v", test.line, got, test.want)
		}
	}
}

// Every field that an event may have is known by name.
func TestScanKnowsAllFields(t *testing.T) {
	for _, name := range jsonFormat.Names() {
		understood := 0
		for _, value := range []string{"1", `"x"`, "true"} {
			if agree(t, []byte(`{"`+name+`":`+value+`}`)) {
				understood++
			}
		}
		if understood != 1 {
			t.Errorf("the field %q has %d types in the quick way", name, understood)
		}
	}
}

// Whatever the program writes is understood, unless it needs escapes.
func TestScanUnderstandsWhatIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zA-Z0-9 ./:_-]{0,12}`)
		number := rapid.Int64Range(-1e17, 1e17)
		event := checker.Event{
			Time: time.Duration(number.Draw(t, "t")), Kind: checker.Kind(text.Draw(t, "kind")), Client: text.Draw(t, "client"),
			Node: text.Draw(t, "node"), Op: checker.Op(text.Draw(t, "op")), Call: rapid.IntRange(0, 1e9).Draw(t, "call"),
			Result: checker.Result(text.Draw(t, "result")), Error: text.Draw(t, "error"), Token: number.Draw(t, "token"),
			Until: time.Duration(number.Draw(t, "until")), Accepted: rapid.Bool().Draw(t, "accepted"), Silent: rapid.Bool().Draw(t, "silent"),
		}
		var file bytes.Buffer
		if err := checker.Encode(&file, checker.History{Events: []checker.Event{event}}); err != nil {
			t.Fatal(err)
		}
		_, line, _ := bytes.Cut(file.Bytes(), []byte("\n"))
		if line = bytes.TrimSuffix(line, []byte("\n")); !agree(t, line) {
			t.Fatalf("not understood: %s", line)
		}
	})
}

func FuzzScan(f *testing.F) {
	f.Add([]byte(`{"i":0,"t":-12,"kind":"invoke","client":"A","op":"try","call":3,"accepted":true}`))
	f.Add([]byte(`{"t":1,"kind":"","key":"\u00e9"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.ContainsAny(line, "\n\r") {
			return // never part of a line
		}
		if agree(t, line) && !json.Valid(line) {
			t.Fatalf("%q is no JSON", line)
		}
	})
}

// A client may have calls under way on several locks; each is its own.
func TestOrderOnSeveralLocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		order := newOrder()
		under := map[string]bool{}
		for i := range rapid.IntRange(1, 80).Draw(t, "n") {
			client := rapid.SampledFrom([]string{"A", "B"}).Draw(t, "client")
			key := rapid.SampledFrom([]string{"", "k", "l"}).Draw(t, "key")
			name := client + "/" + key
			r := record{call: 1}
			r.Time, r.Client, r.Key, r.Op, r.Line = time.Duration(i), client, key, 1, i+1
			var want bool
			switch rapid.IntRange(0, 8).Draw(t, "what") {
			case 0:
				r.Phase, want = 5, true
				for _, k := range []string{"", "k", "l"} {
					delete(under, client+"/"+k)
				}
			case 1, 2, 3, 4:
				r.Phase, want = 1, !under[name]
				under[name] = true
			default:
				r.Phase, want = 2, under[name]
				delete(under, name)
			}
			if err := order.check(&r); (err == nil) != want {
				t.Fatalf("event %d of %s, phase %d: %v, want it to pass: %v", i, name, r.Phase, err, want)
			}
		}
		open := 0
		for _, c := range order.clients {
			if c.first.op != 0 {
				open++
			}
			open += len(c.more)
		}
		if open != len(under) {
			t.Fatal(fmt.Sprint(open, " calls are remembered, but ", len(under), " are under way"))
		}
	})
}
