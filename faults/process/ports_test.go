package process

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/faults/real"
)

func TestPortRange(t *testing.T) {
	for _, c := range []struct {
		ephemeral string
		low, high int
	}{
		{"32768\t60999\n", 10000, 32767},
		{"", 10000, 32767},
		{"nonsense", 10000, 32767},
		{"1024 60999", 61000, 65535},
		{"10500 64000", 64001, 65535},
		{"1024 65535", 10000, 65535},
	} {
		if low, high := portRange(c.ephemeral); low != c.low || high != c.high {
			t.Errorf("%q: from %d to %d, want from %d to %d", c.ephemeral, low, high, c.low, c.high)
		}
	}
}

// listen takes a port and returns it.
func listen(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func TestNoPortIsFree(t *testing.T) {
	port := listen(t)
	p := ports{low: port, high: port, taken: map[int]bool{}}
	if _, err := p.take(); err == nil || !strings.Contains(err.Error(), strconv.Itoa(port)) {
		t.Error(err)
	}
}

// A port that somebody takes at the last moment costs a server its start, and
// it is started on another one.
func TestPortTakenMeanwhile(t *testing.T) {
	h, err := New(Options{Dir: t.TempDir()})
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s := &server{host: h, spec: real.ServerSpec{Name: "n1", Password: "p"}, dir: h.dir.Path() + "/n1"}
	taken := listen(t)
	s.port.Store(int32(taken))
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if s.Addr() == address(taken) {
		t.Error("it has a port that is another's")
	}
	// So it goes with a restart.
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	before := s.Addr()
	l, err := net.Listen("tcp", before)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := s.Restart(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if s.Addr() == before {
		t.Error("it has a port that is another's")
	}
}
