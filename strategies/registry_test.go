package strategies_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/strategies"
)

// A strategy on several nodes of ours takes any number, and the others have their own.
func TestOn(t *testing.T) {
	for _, s := range strategies.Builtin().All() {
		several := slices.Contains(s.Tags, strategies.TagMulti)
		for _, nodes := range []int{-1, 0, 1, 3, 5} {
			on, err := s.On(nodes)
			want := nodes > 0 && (several || nodes == 1)
			if (err == nil) != want || want && on.Nodes != nodes {
				t.Errorf("%s on %d nodes: %d, %v", s.Name, nodes, on.Nodes, err)
			}
		}
	}
	_, err := strategies.Strategy{Name: "my-lock", Nodes: 2}.On(3)
	if want := "strategies: my-lock runs on a number of nodes of its own, which is 2, and not on 3"; err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

func nothing(strategies.Env) (strategies.Lock, error) { return nil, nil }

func TestBuiltinNamesAndTags(t *testing.T) {
	want := map[string][]string{
		"setnx-expire":            {"single", "plain-del"},
		"setnx-expire-repair":     {"single", "plain-del"},
		"getset-timestamp":        {"single", "plain-del"},
		"set-nx-px-del":           {"single", "plain-del"},
		"set-nx-px-get-del":       {"single", "plain-del"},
		"set-nx-px-lua":           {"single", "extending"},
		"set-nx-px-lua-thread-id": {"single"},
		"redisson":                {"single", "redisson", "renewing"},
		"redisson-multilock":      {"multi", "redisson", "renewing"},
		"redisson-redlock":        {"multi", "quorum", "redisson", "renewing"},
		"redlock":                 {"multi", "quorum", "extending"},
		"set-wait":                {"single", "replicas"},
		"fenced":                  {"single", "extending", "fenced"},
	}
	got := map[string][]string{}
	for _, s := range strategies.Builtin().All() {
		got[s.Name] = s.Tags
		if wanted := map[bool]int{true: 5, false: 0}[slices.Contains(s.Tags, "multi")]; s.Nodes != wanted {
			t.Errorf("%s runs on %d nodes, want %d", s.Name, s.Nodes, wanted)
		}
		if s.Summary == "" || s.Source == "" || strings.Contains(s.Summary, "\n") {
			t.Errorf("%s: summary %q, source %q: want one line each", s.Name, s.Summary, s.Source)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := len(strategies.Builtin().Names()), len(slices.Collect(maps.Keys(want))); got != want {
		t.Errorf("there are %d strategies, want %d", got, want)
	}
}

func TestRegistryWithRefuses(t *testing.T) {
	for _, c := range []struct {
		strategy strategies.Strategy
		want     string // part of the error; empty means accepted
	}{
		{strategies.Strategy{Name: "my-lock-2", New: nothing}, ""},
		{strategies.Strategy{Name: "redlock", New: nothing}, "two strategies named"},
		{strategies.Strategy{Name: "", New: nothing}, "is not made of"},
		{strategies.Strategy{Name: "My", New: nothing}, "is not made of"},
		{strategies.Strategy{Name: "my lock", New: nothing}, "is not made of"},
		{strategies.Strategy{Name: "set-*", New: nothing}, "is not made of"},
		{strategies.Strategy{Name: "-my", New: nothing}, "is not made of"},
		{strategies.Strategy{Name: "my"}, "has no New"},
		{strategies.Strategy{Name: "my", New: nothing, Nodes: -1}, "asks for -1 nodes"},
		{strategies.Strategy{Name: "my", New: nothing, Query: "SELECT 1"}, "has a Query, but no Service"},
		{strategies.Strategy{Name: "my", New: nothing, Nondeterministic: map[string]string{"flush": "it draws lots"}}, "leaves to chance what it shows under flush, and its May names nothing"},
		{strategies.Strategy{Name: "my", New: nothing, Expected: map[string][]string{"flush": {"overlap"}}, Nondeterministic: map[string]string{"flush": "a\nb"}}, `under flush since "a\nb": say why, in one line`},
		{strategies.Strategy{Name: "my", New: nothing, Expected: map[string][]string{"flush": {"overlap"}}, Nondeterministic: map[string]string{"flush": ""}}, `under flush since "": say why`},
		{strategies.Strategy{Name: "my", New: nothing, Service: "postgres", Query: "SELECT 1"}, ""},
		{strategies.Strategy{Name: "my", New: nothing, Tags: []string{"@x"}}, `the tag "@x"`},
	} {
		_, err := strategies.Builtin().With(c.strategy)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v: %v", c.strategy, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %v, want an error with %q", c.strategy, err, c.want)
		}
	}
	if _, err := strategies.Builtin().With(
		strategies.Strategy{Name: "twin", New: nothing}, strategies.Strategy{Name: "twin", New: nothing},
	); err == nil {
		t.Error("two new strategies may have one name")
	}
}

func TestRegistryIsNeverChanged(t *testing.T) {
	var empty strategies.Registry
	tags := []string{"mine"}
	may := map[string][]string{"flush": {"overlap"}}
	chance := map[string]string{"flush": "it draws lots"}
	one, err := empty.With(strategies.Strategy{Name: "one", New: nothing, Tags: tags, Expected: may, Nondeterministic: chance})
	if err != nil {
		t.Fatal(err)
	}
	two, err := one.With(strategies.Strategy{Name: "two", New: nothing})
	if err != nil {
		t.Fatal(err)
	}
	three, err := one.With(strategies.Strategy{Name: "three", New: nothing})
	if err != nil {
		t.Fatal(err)
	}
	tags[0] = "yours"
	may["flush"][0] = "ghost"
	may["contention"] = nil
	chance["flush"] = "it does not"
	one.All()[0].Name = "changed"
	for _, c := range []struct {
		registry strategies.Registry
		want     []string
	}{
		{empty, []string{}},
		{one, []string{"one"}},
		{two, []string{"one", "two"}},
		{three, []string{"one", "three"}},
	} {
		if got := c.registry.Names(); !slices.Equal(got, c.want) {
			t.Errorf("got %v, want %v", got, c.want)
		}
	}
	if s, _ := two.Lookup("one"); !s.Matches("@mine") {
		t.Error("the tags changed with their caller's slice")
	}
	if s, _ := two.Lookup("one"); s.Nondeterministic["flush"] != "it draws lots" {
		t.Errorf("why it is chance changed with its caller's map: %q", s.Nondeterministic)
	}
	if s, _ := two.Lookup("one"); len(s.Expected) != 1 || s.Expected["flush"][0] != "overlap" {
		t.Errorf("what it may show changed with its caller's map: %v", s.Expected)
	}
	if _, ok := one.Lookup("two"); ok {
		t.Error("a strategy was added to the registry that it extends")
	}
}

// What a user brings is not built in, whatever it is made of.
func TestBuiltin(t *testing.T) {
	copied, _ := strategies.Builtin().Lookup("redlock")
	copied.Name = "my-redlock"
	mine, err := strategies.Builtin().With(copied, strategies.Strategy{Name: "mine", New: nothing})
	if err != nil {
		t.Fatal(err)
	}
	if mine, err = mine.WithBuiltin(strategies.Strategy{Name: "theirs", New: nothing}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"redlock": true, "fenced": true, "my-redlock": false, "mine": false, "theirs": true} {
		if s, ok := mine.Lookup(name); !ok || s.Builtin() != want {
			t.Errorf("%s: built in: %v, want %v", name, s.Builtin(), want)
		}
	}
}

func TestRegistrySelect(t *testing.T) {
	for _, c := range []struct {
		selectors string
		want      string // names, or part of the error after "!"
	}{
		{"redlock", "redlock"},
		{"set-nx-px-lua*", "set-nx-px-lua set-nx-px-lua-thread-id"},
		{"@fenced", "fenced"},
		{"@quorum", "redisson-redlock redlock"},
		{"redlock @fenced redlock getset-timestamp", "getset-timestamp redlock fenced"},
		{"@nope", "!@nope"},
		{"redlock redloch", "!redloch"},
		{"[", "!["},
	} {
		selected, err := strategies.Builtin().Select(strings.Fields(c.selectors)...)
		var got []string
		for _, s := range selected {
			got = append(got, s.Name)
		}
		if part, fails := strings.CutPrefix(c.want, "!"); fails {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want an error with %q", c.selectors, err, part)
			}
			continue
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v %v, want %s", c.selectors, got, err, c.want)
		}
	}
	all, err := strategies.Builtin().Select()
	if err != nil || len(all) != len(strategies.Builtin().Names()) {
		t.Errorf("no selectors: %d strategies, %v; want all", len(all), err)
	}
}
