package sim

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// TestAppendBeyondTheLimit checks that a string of the maximum length cannot grow. As a case in the
// table, the string would also have to be replicated and compared, which takes gigabytes.
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
