package checkcmd

import (
	"strconv"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/cli/kit"
)

// An estimate is told as one.
func TestLocksAreAbout(t *testing.T) {
	for want, c := range map[string]checked{"3000000": {Keys: 3000000}, "about 3000000": {Keys: 3000000, Estimated: true}} {
		var b strings.Builder
		if err := (&checkOptions{format: kit.FormatTable}).print(&b, []checked{c}); err != nil || !strings.HasSuffix(b.String(), "  "+want+"\n") {
			t.Errorf("%v, %s, want it to end in %s", err, &b, want)
		}
	}
}

func TestDistinct(t *testing.T) {
	for _, n := range []int{0, 1, 63, 1000} {
		d := distinct{}
		for i := range 2 * n {
			d.add(hash("lock" + strconv.Itoa(i%max(n, 1))))
		}
		if got := d.count(); got != n || d.estimated() {
			t.Errorf("%d different names are counted as %d", n, got)
		}
	}
	d, n := distinct{}, exactly*5/4
	for i := range n {
		d.add(hash("lock" + strconv.Itoa(i)))
	}
	if got := d.count(); got < n-n/100 || got > n+n/100 || !d.estimated() || len(d.table) > 2*exactly {
		t.Errorf("%d different names are counted as %d, in a table of %d", n, got, len(d.table))
	}
}
