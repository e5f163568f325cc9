package cli

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/reports"
)

// TestProgressInALog sees that where there is no terminal a line is written once in a while, and
// nothing of what is over soon.
func TestProgressInALog(t *testing.T) {
	var b strings.Builder
	p := newProgress(&b, 40)
	p.had(10)
	cell := func() {
		p.finished(job{Strategy: "redlock", Scenario: "flush"}, reports.Cell{Verdict: reports.Held})
	}
	for range 15 {
		cell()
	}
	if b.Len() > 0 {
		t.Errorf("at once %q", b.String())
	}
	// As if it had begun three minutes ago.
	p.begun, p.last = p.begun.Add(-3*time.Minute), p.last.Add(-3*time.Minute)
	cell()
	cell()
	p.close()
	// 16 cells took 180 s, and 14 are left; on a machine that is busy some more.
	want := regexp.MustCompile(`^26 of 40 cells, about [2-9]m[0-9]+s left, last redlock under flush\n$`)
	if got := b.String(); !want.MatchString(got) {
		t.Errorf("got %q, want %v", got, want)
	}
}

// TestProgressSaysNothing sees that a quiet one doesn't.
func TestProgressSaysNothing(t *testing.T) {
	var b strings.Builder
	p := newProgress(&b, 40)
	p.w = nil
	p.begun, p.last = p.begun.Add(-3*time.Minute), p.last.Add(-3*time.Minute)
	p.finished(job{}, reports.Cell{})
	p.close()
	if b.Len() > 0 {
		t.Errorf("got %q", b.String())
	}
}
