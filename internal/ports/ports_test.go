package ports

import (
	"net"
	"strconv"
	"strings"
	"testing"
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
	l, err := net.Listen("tcp", net.JoinHostPort(Loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func TestNoPortIsFree(t *testing.T) {
	port := listen(t)
	p := Ports{low: port, high: port, taken: map[int]bool{}}
	if _, err := p.Take(); err == nil || !strings.Contains(err.Error(), strconv.Itoa(port)) {
		t.Error(err)
	}
}
