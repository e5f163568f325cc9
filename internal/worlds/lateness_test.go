package worlds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/proc"
)

// Who plays a cell again has a lease that is twice as long, bears what was late, and
// is a multiple of the first.
func TestLonger(t *testing.T) {
	for late, want := range map[time.Duration]time.Duration{
		60 * time.Millisecond:  4 * time.Second,
		201 * time.Millisecond: 5 * time.Second,
		time.Second:            20 * time.Second,
	} {
		if got := RetryLease(time.Second, 2*time.Second, late); got != want {
			t.Errorf("%v late: %v; want %v", late, got, want)
		}
	}
}

// Of a cell that never began nothing is known if something took too long, and
// something is wrong if not.
func TestUnbegun(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, waited := conn.Read(make([]byte, 1))
	for err, want := range map[error]harness.Status{
		fmt.Errorf("real: n1/0: [INFO replication]: %w", waited):                    harness.Unknown,
		errors.Join(errors.New("real: no link"), context.DeadlineExceeded):          harness.Unknown,
		fmt.Errorf("real: n1/0: [INFO replication]: %w", io.ErrUnexpectedEOF):       harness.Error,
		fmt.Errorf("real: n1/0: %w", errors.New("NOAUTH Authentication required.")): harness.Error,
	} {
		var none *harness.UndecidedError
		if !errors.As(unopened(err), &none) || none.Status != want || none.Late == 0 {
			t.Errorf("%v: %+v; want %s, and to be played again", err, none, want)
		}
	}
}

// A killed process that the system doesn't end is the machine's lateness,
// wherever it is met, and never the lock's or the world's error.
func TestLingers(t *testing.T) {
	lingers := fmt.Errorf("real: client A: %w", &proc.StillRunningError{PID: 7})
	for name, err := range map[string]error{
		"while the world is made":  unopened(lingers),
		"when the world is closed": closed(errors.Join(lingers, errors.New("its directory is not empty"))),
	} {
		var none *harness.UndecidedError
		if !errors.As(err, &none) || none.Status != harness.Unknown || none.Late == 0 {
			t.Errorf("%s: %+v; want unknown, and to be played again", name, none)
		}
	}
	if err := errors.New("its directory is not empty"); closed(err) != err || closed(nil) != nil {
		t.Error("closing says lateness although nothing lingers")
	}
}
