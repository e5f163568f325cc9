package daemon_test

import (
	"errors"
	"net"
	"testing"

	"github.com/lockfault/lockfault/faults/real/daemon"
)

// It is made once, when it is asked for, and ended once.
func TestKept(t *testing.T) {
	var k daemon.Lazy[int]
	made, refused := 0, errors.New("not now")
	get := func(err error) (int, error) {
		return k.Get(func() (int, error) { made++; return made, err })
	}
	if _, err := get(refused); !errors.Is(err, refused) {
		t.Errorf("what can't be made: %v", err)
	}
	for range 2 {
		if v, err := get(nil); v != 2 || err != nil {
			t.Errorf("it is %d, %v; want the second that was made", v, err)
		}
	}
	var ended []int
	for range 2 {
		if err := k.Close(func(v int) error { ended = append(ended, v); return nil }); err != nil {
			t.Error(err)
		}
	}
	if len(ended) != 1 || ended[0] != 2 {
		t.Errorf("ended %v", ended)
	}
	if _, err := get(nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	if err := new(daemon.Lazy[int]).Close(func(int) error { return refused }); err != nil {
		t.Errorf("ended what there never was: %v", err)
	}
}
