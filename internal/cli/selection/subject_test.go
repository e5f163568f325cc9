package selection

import (
	"testing"
)

func TestNameOf(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"/bin/python3", "my_lock.py"}, "my-lock"},
		{[]string{"/bin/python3", "-u", "./x/My Lock.v2.py", "no-timeout"}, "my-lock-v2"},
		{[]string{"/opt/redis-lock"}, "redis-lock"},
		{[]string{"/opt/___"}, "subject"},
	} {
		if got := nameOf(c.words); got != c.want {
			t.Errorf("%q goes by %q, want %q", c.words, got, c.want)
		}
	}
}
