package daemon

import (
	"errors"
	"net"
	"os"
	"testing"
)

// TestDialler checks that the owner of a connection is found by both addresses, over IPv4 and over
// IPv6 sockets, and that no other process is taken for it.
func TestDialler(t *testing.T) {
	if !CanFindSocketOwner() {
		t.Skip("this system doesn't tell")
	}
	for _, listens := range []string{"127.0.0.1:0", "[::ffff:127.0.0.1]:0", "[::1]:0"} {
		l, err := net.Listen("tcp", listens)
		if err != nil {
			t.Log(err) // no IPv6
			continue
		}
		dialled, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		accepted.Close() // this process has the other end alone
		pids := map[int]int{1: os.Getppid(), 2: os.Getpid()}
		if member, err := dialler(accepted.(*net.TCPConn), pids); member != 2 || err != nil {
			t.Errorf("%s: %d, %v; want 2", listens, member, err)
		}
		delete(pids, 2)
		if member, err := dialler(accepted.(*net.TCPConn), pids); !errors.Is(err, errNobody) {
			t.Errorf("%s: %d, %v; want no member", listens, member, err)
		}
		dialled.Close()
		l.Close()
	}
}
