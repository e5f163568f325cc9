package sim

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// A string of the greatest length takes no letter more. In the table of cases it
// would have to be replicated and looked at, too, which takes gigabytes.
func TestAppendBeyondTheLimit(t *testing.T) {
	w, err := New(Config{Nodes: 1, Lock: faults.SingleKeyLock("lock"), TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s := w.servers[0]
	s.mini.Set("s", strings.Repeat("x", longestString-1))
	for _, c := range []struct{ letters, want string }{
		{"ab", "-" + tooLong + "\r\n"},
		{"", ":536870911\r\n"},
	} {
		var out bytes.Buffer
		peer := newPeer(&out)
		s.execute(peer, "APPEND", []string{"APPEND", "s", c.letters})
		peer.Flush()
		if out.String() != c.want {
			t.Errorf("APPEND of %q is answered %q, not %q", c.letters, out.String(), c.want)
		}
	}
}
