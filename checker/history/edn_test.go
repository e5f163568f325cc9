package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"olympos.io/encoding/edn"

	"github.com/lockfault/lockfault/checker/linear"
)

// decodeEDN has the library read one value, to which nothing but space and
// comments may be added.
func decodeEDN(text []byte) (value any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the library panics: %v", r)
		}
	}()
	d := edn.NewDecoder(bufio.NewReader(bytes.NewReader(text)))
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	var more any
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one value")
	}
	return value, nil
}

// oracle fails the test if the library reads a map and scan another one, or none.
// It returns whether the library understood it.
func oracle(t *testing.T, text []byte) bool {
	// The library takes all that Unicode calls space for space, Clojure what
	// ASCII does.
	for _, c := range string(text) {
		if c >= utf8.RuneSelf && unicode.IsSpace(c) || c == utf8.RuneError {
			return false
		}
	}
	if clean(text) != nil || len(text) == 0 || space(text[0]) || text[0] == ';' || bytes.HasPrefix(text, []byte("#_")) {
		return false // no piece that a splitter makes begins so
	}
	value, err := decodeEDN(text)
	if err != nil {
		return false
	}
	for {
		tag, ok := value.(edn.Tag)
		if !ok {
			break
		}
		value = tag.Value
	}
	want, ok := value.(map[any]any)
	var op operation
	n, err := op.scan(text)
	if !ok {
		if err == nil {
			t.Fatalf("%q was taken for a map; it is %v", text, value)
		}
		return true
	}
	if err != nil {
		if errors.Is(err, faultDeep) || strings.Contains(err.Error(), " twice") || strings.Contains(err.Error(), "no map") && text[0] == '#' {
			return false // what the library allows; or a tag beyond ASCII
		}
		t.Fatalf("%q: %v, but the library reads %v", text, err, want)
	}
	if rest, err := ednNext(text, n, 0); err != nil || rest != len(text) {
		t.Fatalf("%q: over at %d, %v", text, n, err)
	}
	for name, got := range map[string][]byte{"f": op.f, "type": op.kind, "time": op.time, "index": op.index, "value": op.value, "process": op.process} {
		value, there := want[edn.Keyword(name)]
		if there != (got != nil) {
			t.Fatalf("%q: :%s is %q, the library says %v", text, name, got, value)
		}
		if got == nil {
			continue
		}
		alone, err := decodeEDN(got)
		if err != nil || fmt.Sprintf("%#v", alone) != fmt.Sprintf("%#v", value) && !reflect.DeepEqual(alone, value) && !hasPointers(value) {
			t.Fatalf("%q: :%s is %q, which is %#v (%v); the library says %#v", text, name, got, alone, err, value)
		}
		sameValue(t, got, value)
	}
	return true
}

// hasPointers reports whether a value can't be compared: sets and maps may have
// keys that are pointers.
func hasPointers(value any) bool {
	return strings.Contains(fmt.Sprintf("%#v", value), "0x") || strings.Contains(fmt.Sprint(value), "NaN")
}

// sameValue fails the test if what is made of a value alone is not what the library
// makes of it.
func sameValue(t *testing.T, text []byte, value any) {
	number, isNumber := ednNumber(text)
	name, isText := ednText(text)
	keyword, isKeyword := ednKeyword(text)
	symbol := ednSymbol(text)
	switch value := value.(type) {
	case int64:
		if !isNumber || number != value {
			t.Fatalf("%q is read as %d, %v, the library says %d", text, number, isNumber, value)
		}
	case big.Int:
		if isNumber != value.IsInt64() || isNumber && number != value.Int64() {
			t.Fatalf("%q is read as %d, %v, the library says %s", text, number, isNumber, &value)
		}
	case string:
		if !isText || string(name) != value {
			t.Fatalf("%q is read as %q, %v, the library says %q", text, name, isText, value)
		}
	case edn.Keyword:
		if !isKeyword || string(keyword) != string(value) {
			t.Fatalf("%q is read as %q, %v, the library says %q", text, keyword, isKeyword, value)
		}
	case edn.Symbol:
		if !symbol || string(text) != string(value) {
			t.Fatalf("%q is no symbol, the library says %q", text, value)
		}
	case nil:
		if !ednNil(text) {
			t.Fatalf("%q is not nil", text)
		}
	default:
		if isNumber || isText || isKeyword || symbol {
			t.Fatalf("%q is read as a number %v, text %v, keyword %v, symbol %v; the library says %#v", text, isNumber, isText, isKeyword, symbol, value)
		}
	}
}

// What the library reads is read alike.
func TestOracle(t *testing.T) {
	for text, want := range map[string]bool{
		`{:index 0, :time 1000, :type :invoke, :process 0, :f :acquire, :value nil}`: true,
		`{:process "a b", :value -7,:f :try-acquire }`:                               true,
		`#jepsen.history.Op{:f :acquire}`:                                            true,
		`#jepsen.history.Op {:f :acquire} ; done`:                                    true,
		`#a #b{:f :acquire}`:                                                         true,
		`{}`:                                                                         true,
		`{:error {:a [1 {:f :b}] :c #{1 2} :d (1 2)} :f :acquire}`:                   true,
		`{:error "a \"}\" \\" :f :acquire}`:                                          true,
		`{:error "\u00e9\b\f\/" :value "\u00e9\n\b\f\/\r\t\"\\"}`:                    true,
		`{:error \} :f \{ :value \newline :time \u0041}`:                             true,
		`{#_ :f #_ :release :f #_ #_ 1 2 :acquire #_}` + `}`:                         false,
		`{:f #_ #_ 1 2 :acquire #_ {:f :release}}`:                                   true,
		"{:f ; :release\n :acquire ; }\n}":                                           true,
		`{:time 5N :index +5 :value 1.5M :process -0}`:                               true,
		`{:time 12345678901234567890N}`:                                              true,
		`{:time 007}`:                                                                false,
		`{:value 1/2}`:                                                               false,
		`{:value :a/b :f a/b}`:                                                       true,
		`{:f:acquire}`:                                                               false,
		`{:f"acquire":value[1]}`:                                                     true,
		`{:value [k #_ 5 {:permits 2}]}`:                                             true,
		`{:value #jepsen.independent/tuple [9 nil]}`:                                 true,
		`{:value #inst "2026-01-01T00:00:00Z"}`:                                      true,
		`{[1] 2 {:f 1} 3 "f" 4 f 5 nil 6}`:                                           true,
		`{"f" 4 f 5 nil 6 1 7}`:                                                      true,
		`{:value true :f false :time nil :process truely}`:                           true,
		`{:f :a {:b}}`:                                                               false,
		`{:f [}`:                                                                     false,
		`{:f}`:                                                                       false,
		`{:f 1`:                                                                      false,
		`{:f 1} 2`:                                                                   false,
		`[{:f 1}]`:                                                                   true,
		`#{:f 1}`:                                                                    true,
		`{:f ##NaN}`:                                                                 false,
	} {
		if got := oracle(t, []byte(text)); got != want {
			t.Errorf("%s: understood by the library: %v, want %v", text, got, want)
		}
	}
}

// What Clojure prints and the library does not read is passed over.
func TestBeyondTheLibrary(t *testing.T) {
	for _, value := range []string{
		`##NaN`, `##Inf`, `1/2`, `1e999`, `\o101`, `"\101"`, `#"a \"}"`, `#:jepsen{:f :release}`, `#:a {:f 1}`,
		`#object[java.lang.Object 0x7b "java.lang.Object@7b"]`, `::f`, `#error {:cause "x" :via [{:type a.B$C :at [a b "c.java" 1]}]}`,
		`^x`, `'x`, `@x`, `{[1] 2}`, `#{[1] {:f :release}}`, "\\\u00e9", `16rFF`, `a.b.C$fn__12`, `nil`,
	} {
		text := `{:type :ok, :error ` + value + `, :f :acquire}`
		var op operation
		if n, err := op.scan([]byte(text)); err != nil || n != len(text) || string(op.f) != ":acquire" || string(op.kind) != ":ok" {
			t.Errorf("%s: %d of %d, %v; :f %q :type %q", text, n, len(text), err, op.f, op.kind)
		}
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 "it ends too soon",
		`#a`:                               "it ends too soon",
		`{`:                                "it ends too soon",
		`{:f`:                              "it ends too soon",
		`{:f 1`:                            "it ends too soon",
		`{:f "`:                            "it ends too soon",
		`{:f "\`:                           "it ends too soon",
		`{:f \`:                            "it ends too soon",
		`{:f #`:                            "it ends too soon",
		`{:f #_`:                           "it ends too soon",
		`{:f #a`:                           "it ends too soon",
		`{:f [1`:                           "it ends too soon",
		`{:f \ }`:                          "before a space",
		`{:f #a}`:                          "a value is missing before a }",
		`{:f [1)}`:                         "a value is missing before a )",
		`{:f #'a}`:                         "there is a # before",
		`{:f {1}}`:                         "a key without a value",
		`{:f}`:                             "a key without a value",
		`{:f 1 :f 1}`:                      "it has :f twice",
		`5`:                                "it is no map",
		`#{:f 1}`:                          "it is no map",
		`#:a{:f 1}`:                        "it is no map",
		`{:a ` + strings.Repeat("[", 99):   "too deep",
		`{:a ` + strings.Repeat("#_", 99):  "too deep",
		`{:a ` + strings.Repeat("#a ", 99): "too deep",
		strings.Repeat("#a ", 99):          "too deep",
	} {
		var op operation
		if _, err := op.scan([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", text, err, want)
		}
	}
}

func FuzzOracle(f *testing.F) {
	f.Add([]byte(`{:index 0, :time -1, :type :invoke, :process "a", :f :acquire, :value nil}`))
	f.Add([]byte(`#jepsen.history.Op{:f #_ #_ 1 2 :acquire :value [k {:permits 2N}] :error [\} "}" #{1.5M}]}`))
	f.Add([]byte("{:f ; }\n :a/b, :time +5}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		oracle(t, text)
		var op operation
		if n, err := op.scan(text); err == nil && (n <= 0 || n > len(text)) || err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("%q: %d, %v", text, n, err)
		}
	})
}

// Operations are read the quick way if one is whole on its line; a comment in it
// prevents that, and changes nothing else.
func TestQuickAndSlow(t *testing.T) {
	read := func(text string) (events []linear.Event, err error) {
		for e, failure := range New(strings.NewReader(text), Options{Format: EDN}).Events() {
			if failure != nil {
				return events, failure
			}
			events = append(events, e)
		}
		return events, nil
	}
	files, err := filepath.Glob("testdata/read/*.edn")
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{
		"{:time 1, :type :invoke, :process 0, :f :acquire}\n{:time 2, :type :ok, :process 0, :f :acquire, :value 7}\r\n",
		"[{:time 1, :type :invoke, :process 0, :f :acquire}\n {:time 2, :type :ok, :process 0, :f :acquire}\n]\n",
		"[{:time 1, :type :invoke, :process 0, :f :acquire} {:time 2, :type :ok, :process 0, :f :acquire}]",
		"{:time 1, :type :invoke, :process 0, :f :acquire}\n{:time 2, :type :ok\n{:time 3, :type :ok, :process 0, :f :acquire}\n",
		"{:time 1, :type :invoke, :process 0, :f :acquire}\n{}\n",
		"{:time 1, :type :invoke, :process 0, :f :acquire} {:time 2, :type :ok, :process 0, :f :acquire}\n",
		"{:time 1, :type :invoke, :process 0, :f :acquire}\n{:process \"\x00\"}\n{:time\n 2, :type :ok, :process 0, :f :acquire}\n",
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		quick, err := read(text)
		slow, slowErr := read(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "{", "{;\n"))
		for i := range slow {
			slow[i].Line = 0
		}
		for i := range quick {
			quick[i].Line = 0
		}
		if !reflect.DeepEqual(quick, slow) || (err == nil) != (slowErr == nil) {
			t.Errorf("%q: %v, %v, not %v, %v", text, quick, err, slow, slowErr)
		}
	}
}
