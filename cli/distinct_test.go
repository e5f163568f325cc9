package cli

import (
	"strconv"
	"testing"
)

func TestDistinct(t *testing.T) {
	for _, n := range []int{0, 1, 63, 1000} {
		d := distinct{}
		for i := range 2 * n {
			d.add(hash("lock" + strconv.Itoa(i%max(n, 1))))
		}
		if got := d.count(); got != n {
			t.Errorf("%d different names are counted as %d", n, got)
		}
	}
	d, n := distinct{}, exactly*5/4
	for i := range n {
		d.add(hash("lock" + strconv.Itoa(i)))
	}
	if got := d.count(); got < n-n/100 || got > n+n/100 || len(d.table) > 2*exactly {
		t.Errorf("%d different names are counted as %d, in a table of %d", n, got, len(d.table))
	}
}
