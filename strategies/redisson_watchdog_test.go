package strategies

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchdog(t *testing.T) {
	broken := errors.New("connection reset")
	for _, c := range []struct {
		name  string
		renew func(n int) (bool, error) // the n-th renewal, from 1
		then  func(w *watchdog)         // after two and a half periods
		want  int                       // renewals after five and a half
	}{
		{"runs on", func(int) (bool, error) { return true, nil }, func(*watchdog) {}, 5},
		{"runs on through errors", func(n int) (bool, error) { return n != 2, broken }, func(*watchdog) {}, 5},
		{"ends when the lock isn't ours", func(n int) (bool, error) { return n < 3, nil }, func(*watchdog) {}, 3},
		{"ends when stopped", func(int) (bool, error) { return true, nil }, func(w *watchdog) { w.stop(); w.stop() }, 2},
		{"is started once", func(int) (bool, error) { return true, nil }, func(w *watchdog) { w.start() }, 5},
		// A new one counts its periods from its start.
		{"can be started anew", func(int) (bool, error) { return true, nil }, func(w *watchdog) { w.stop(); w.start() }, 4},
		{"starts anew after its end", func(n int) (bool, error) { return n != 2, nil }, func(w *watchdog) { w.start() }, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				renewals := 0
				w := watchdog{period: time.Second, renew: func(context.Context) (bool, error) {
					renewals++
					return c.renew(renewals)
				}}
				w.start()
				time.Sleep(2500 * time.Millisecond)
				synctest.Wait()
				c.then(&w)
				time.Sleep(2900 * time.Millisecond)
				synctest.Wait()
				w.close()
				if renewals != c.want {
					t.Errorf("%d renewals, want %d", renewals, c.want)
				}
			})
		})
	}
}

func TestWatchdogCloseWaitsForTheRenewalOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := false
		w := watchdog{period: time.Second, renew: func(context.Context) (bool, error) {
			time.Sleep(time.Minute)
			over = true
			return true, nil
		}}
		w.start()
		time.Sleep(2 * time.Second)
		start := time.Now()
		w.stop()
		if took := time.Since(start); took != 0 {
			t.Errorf("stop took %s, want no waiting", took)
		}
		w.close()
		if !over {
			t.Error("close did not wait")
		}
	})
}

func TestWheelPeriod(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, lease := range []time.Duration{time.Millisecond, time.Second, 30 * time.Second, time.Hour} {
		for range 100 {
			late := wheelPeriod(lease, random) - lease/3
			if late < 0 || late >= 100*time.Millisecond || late > lease/100 {
				t.Fatalf("a lease of %s is renewed %s late", lease, late)
			}
		}
	}
}
