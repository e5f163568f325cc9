package history

import (
	"strconv"
	"testing"
)

// Processes that were over long ago are still known to be, if only without the
// line; others are not taken for them.
func TestCrashes(t *testing.T) {
	var c endedProcesses
	if was, ok := c.of("0"); ok {
		t.Errorf("process 0 was over before any was%s", was)
	}
	const processes = 3 * mostNamed
	for i := range processes {
		c.add(strconv.Itoa(2*i), i+1)
	}
	for i := range processes {
		if _, ok := c.of(strconv.Itoa(2 * i)); !ok {
			t.Fatalf("process %d is not over any more", 2*i)
		}
		if _, ok := c.of(strconv.Itoa(2*i + 1)); ok {
			t.Fatalf("process %d is over", 2*i+1)
		}
	}
	c.add("worker", 9)
	c.add("-3", 10)
	for name, want := range map[string]string{"worker": " of line 9", "-3": " of line 10", "0": ""} {
		if was, ok := c.of(name); !ok || was != want {
			t.Errorf("%s: %q, %v, want %q", name, was, ok, want)
		}
	}
	if _, ok := c.of("3"); ok {
		t.Error("3 was taken for -3")
	}
}
