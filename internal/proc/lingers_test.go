package proc

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Nobody waits for ever for a killed process that the system doesn't end.
func TestKillWaitsNoLongerThanItsPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Proc{pid: 7, ended: make(chan struct{}), reaped: true}
		begun := time.Now()
		err := p.Kill()
		var lingers *StillRunningError
		if took := time.Since(begun); !errors.As(err, &lingers) || lingers.PID != 7 || !lingers.Timeout() || took != Patience {
			t.Errorf("Kill returned %v after %v; want that process 7 lingers after %v", err, took, Patience)
		}
		go func() {
			time.Sleep(Patience / 2)
			close(p.ended)
		}()
		begun = time.Now()
		if err := p.Kill(); err != nil || time.Since(begun) != Patience/2 {
			t.Errorf("Kill returned %v after %v; want nil when the process had ended", err, time.Since(begun))
		}
	})
}
