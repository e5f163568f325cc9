package locktest

import (
	"log"
	"strings"
	"testing"
	"testing/synctest"
)

// TestOutsideBubbles checks that go-redis's lines are discarded in virtual time, and nowhere else.
func TestOutsideBubbles(t *testing.T) {
	var out strings.Builder
	logger := outsideBubbles{log.New(&out, "", 0)}
	synctest.Test(t, func(t *testing.T) { logger.Printf(t.Context(), "dial %d", 1) })
	logger.Printf(t.Context(), "dial %d", 2)
	if out.String() != "dial 2\n" {
		t.Errorf("logged %q, want only what was logged outside of a bubble", out.String())
	}
}
