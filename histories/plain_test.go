package histories

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker/linear"
)

// samePlain fails the test if the quick way reads a map otherwise than the
// library, and returns whether it understood it.
func samePlain(t *testing.T, text []byte) bool {
	fields := map[any]any{}
	if !plainMap(text, fields) {
		return false
	}
	want, err := newJepsen().unmarshal(text)
	if err != nil || !reflect.DeepEqual(want, any(fields)) {
		t.Fatalf("%q is %v, the library says %v, %v", text, fields, want, err)
	}
	return true
}

func TestPlainMap(t *testing.T) {
	for text, want := range map[string]bool{
		`{:index 0, :time 1000, :type :invoke, :process 0, :f :acquire, :value nil}`: true,
		`{:process "a b", :value -7,:f :try-acquire }`:                               true,
		`{}`:                         true,
		`{:time 1.5}`:                false,
		`{:time 007}`:                false,
		`{:time 1N}`:                 false,
		`{:time 1 :time 2}`:          false,
		`{:value nill}`:              false,
		`{:value :a/b}`:              false,
		`{:value {:key 1}}`:          false,
		`{:value [1 2]}`:             false,
		`{:value "\n"}`:              false,
		`{:value true}`:              false,
		`{:value`:                    false,
		`{:value 1`:                  false,
		`{:value 1} 2`:               false,
		`{:value}`:                   false,
		`{: 1}`:                      false,
		`{"value" 1}`:                false,
		`#jepsen.history.Op{:f :ok}`: false,
	} {
		if got := samePlain(t, []byte(text)); got != want {
			t.Errorf("%s: understood %v, want %v", text, got, want)
		}
	}
}

func FuzzPlainMap(f *testing.F) {
	f.Add([]byte(`{:index 0, :time -1, :type :invoke, :process "a", :f :acquire, :value nil}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		samePlain(t, text)
	})
}

// A map that fills its line is split off the quick way; a comment behind it
// prevents that, and changes nothing else.
func TestWholeLines(t *testing.T) {
	read := func(text string) (events []linear.Event, err error) {
		for e, failure := range New(strings.NewReader(text), Options{}).Events() {
			if failure != nil {
				return events, failure
			}
			events = append(events, e)
		}
		return events, nil
	}
	for _, lines := range []string{
		"{:time 1, :type :invoke, :process 0, :f :acquire}\n{:time 2, :type :ok, :process 0, :f :acquire, :value 7}\r\n",
		"{:time 1, :type :invoke, :process 0, :f :acquire}\n{:time 2, :type :ok, :process 0, :f :acquire, :value {:token 7}}\n",
		"[{:time 1, :type :invoke, :process 0, :f :acquire}\n {:time 2, :type :ok, :process 0, :f :acquire}\n]\n",
		"{:time 1, :type :invoke, :process 0, :f :acquire}\n{:time 2, :type :ok\n{:time 3, :type :ok, :process 0, :f :acquire}\n",
		"{:time 1, :type :invoke, :process 0, :f :acquire}\n{}\n",
		"{:time 1, :type :invoke, :process 0, :f :acquire} {:time 2, :type :ok, :process 0, :f :acquire}\n",
	} {
		quick, err := read(lines)
		slow, slowErr := read(strings.ReplaceAll(strings.ReplaceAll(lines, "\r\n", "\n"), "\n", " ; slowly\n"))
		if !reflect.DeepEqual(quick, slow) || fmt.Sprint(err) != fmt.Sprint(slowErr) || len(quick) == 0 {
			t.Errorf("%q: %v, %v, not %v, %v", lines, quick, err, slow, slowErr)
		}
	}
}
