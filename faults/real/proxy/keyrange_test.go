package proxy_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// Two spans meet if there is a name in both.
func TestSpansMeet(t *testing.T) {
	names := []string{"", "a", "a\x00", "aa", "ab", "a\xff", "a\xff\xff", "b", "\xff", "\xff\xff"}
	span := rapid.Custom(func(t *rapid.T) proxy.KeyRange {
		name := rapid.SampledFrom(names).Draw(t, "name")
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return proxy.Only(name)
		case 1:
			return proxy.Below(name)
		}
		return proxy.KeyRange{From: name, To: rapid.SampledFrom(names).Filter(func(to string) bool { return to == "" || to > name }).Draw(t, "to")}
	})
	in := func(s proxy.KeyRange, name string) bool { return name >= s.From && (s.To == "" || name < s.To) }
	rapid.Check(t, func(t *rapid.T) {
		a, b := span.Draw(t, "a"), span.Draw(t, "b")
		want := in(a, b.From) || in(b, a.From)
		if a.Overlaps(b) != want || b.Overlaps(a) != want || a.Meeting([]proxy.KeyRange{b}) != want {
			t.Errorf("%q and %q: %t, %t, want %t", a, b, a.Overlaps(b), b.Overlaps(a), want)
		}
	})
	for _, c := range []struct {
		prefix, name string
		want         bool
	}{{"a", "a", true}, {"a", "a\xff\xff", true}, {"a", "b", false}, {"a\xff", "a\xff\xff", true}, {"a\xff", "b", false}, {"\xff", "\xff\xff", true}, {"", "x", true}, {"ab", "a", false}} {
		if got := in(proxy.Below(c.prefix), c.name); got != c.want {
			t.Errorf("%q is below %q: %t", c.name, c.prefix, got)
		}
	}
}
