package harness_test

import (
	"reflect"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Who says what is expected of a cell, and whether less will do.
func TestExpectation(t *testing.T) {
	const text = `clients A

A acquire

expect overlap stale-write
expect @fenced: overlap
expect red*: ghost
expect named fenced: lost-lock
expect unlike: none
`
	script, err := scenarios.Parse("some/where/mine.txt", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	file, err := scenarios.ParseExpectations("x.expect", []byte(`
both:
  mine.txt: unavailable
  flush: overlap
redlock:
  mine.txt: none
named:
  mine: starvation
`))
	if err != nil {
		t.Fatal(err)
	}
	build := func(strategies.Env) (strategies.Lock, error) { return nil, nil }
	may := map[string][]string{"mine.txt": {"stale-write", "overlap"}, "mine": {"starvation"}}
	registry, err := strategies.Builtin().With(
		strategies.Strategy{Name: "plain", New: build},
		strategies.Strategy{Name: "tagged", New: build, Tags: []string{"fenced"}},
		strategies.Strategy{Name: "red-mine", New: build},
		strategies.Strategy{Name: "named", New: build},
		strategies.Strategy{Name: "may", New: build, Expected: may},
		strategies.Strategy{Name: "chance", New: build, Expected: may, Nondeterministic: map[string]string{"mine.txt": "it draws lots"}},
		strategies.Strategy{Name: "nothing", New: build, Expected: map[string][]string{"mine.txt": nil}},
		strategies.Strategy{Name: "both", New: build, Expected: may, Nondeterministic: map[string]string{"mine.txt": "it draws lots"}},
		strategies.Strategy{Name: "unlike", New: build, Expected: map[string][]string{"mine": {"starvation"}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	type list = []checker.Anomaly
	for name, want := range map[string]harness.Expectation{
		"set-wait": {Anomalies: list{checker.Overlap, checker.StaleWrite}},
		"fenced":   {Anomalies: list{checker.LostLock}},
		"redisson": {Anomalies: list{checker.Ghost}},
		"redlock":  {AtMost: true, By: harness.ByFile},
		"plain":    {Anomalies: list{checker.Overlap, checker.StaleWrite}, AtMost: true},
		"tagged":   {Anomalies: list{checker.Overlap}, AtMost: true},
		"red-mine": {Anomalies: list{checker.Ghost}, AtMost: true},
		"named":    {Anomalies: list{checker.LostLock}},
		"may":      {Anomalies: list{checker.Overlap, checker.StaleWrite}, AtMost: true, By: harness.ByStrategy},
		"chance":   {Anomalies: list{checker.Overlap, checker.StaleWrite}, AtMost: true, By: harness.ByStrategy, Drawn: list{checker.Overlap, checker.StaleWrite}, Chance: "it draws lots"},
		"nothing":  {AtMost: true, By: harness.ByStrategy},
		"both":     {Anomalies: list{checker.Unavailable}, AtMost: true, By: harness.ByFile, Drawn: list{checker.Overlap, checker.StaleWrite}, Chance: "it draws lots"},
		"unlike":   {},
	} {
		strategy, ok := registry.Lookup(name)
		if !ok {
			t.Fatal(name)
		}
		cell := harness.Cell{Strategy: strategy, Script: script}
		if got := cell.Expectation(file); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	both, _ := registry.Lookup("both")
	want := harness.Expectation{Anomalies: list{checker.Overlap, checker.StaleWrite}, AtMost: true, By: harness.ByStrategy, Drawn: list{checker.Overlap, checker.StaleWrite}, Chance: "it draws lots"}
	if got := (harness.Cell{Strategy: both, Script: script}).Expectation(nil); !reflect.DeepEqual(got, want) {
		t.Errorf("without a file: %+v, want %+v", got, want)
	}
}
