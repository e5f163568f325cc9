package process

import (
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/ports"
)

// listen takes a port and returns it.
func listen(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ports.Loopback, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// TestPortTakenMeanwhile checks that a server whose port is taken at the last moment is started on
// another port.
func TestPortTakenMeanwhile(t *testing.T) {
	h, err := New(Options{Dir: t.TempDir()})
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	taken, told := listen(t), false
	s := &server{host: h, spec: real.ServerSpec{Name: "n1", Password: "p"}}
	program := s.program()
	program.Command = func(port int) (*exec.Cmd, error) {
		if !told {
			port, told = taken, true
		}
		return s.command(port)
	}
	if s.Daemon, err = h.Add("n1", program); err != nil {
		t.Fatal(err)
	}
	if err := s.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Addr() == ports.Address(taken) {
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
