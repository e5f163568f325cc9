package kit

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestProgressInALog sees that where there is no terminal a line is written once in a while, and
// nothing of what is over soon.
func TestProgressInALog(t *testing.T) {
	var b strings.Builder
	p := NewProgress(&b, 40)
	p.Had(10)
	cell := func() {
		if p.Done++; p.Due() {
			p.Say(fmt.Sprintf("%d of %d cells%s", p.Done, p.Total, p.Left()))
		}
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
	p.Close()
	// 16 cells took 180 s, and 14 are left; on a machine that is busy some more.
	want := regexp.MustCompile(`^26 of 40 cells, about [2-9]m[0-9]+s left\n$`)
	if got := b.String(); !want.MatchString(got) {
		t.Errorf("got %q, want %v", got, want)
	}
}

// TestProgressBegin checks that a terminal shows a line before the first cell has ended.
func TestProgressBegin(t *testing.T) {
	var b strings.Builder
	p := NewProgress(&b, 40)
	p.Begin()
	if b.Len() > 0 {
		t.Errorf("in a log: %q", b.String())
	}
	p.clear = func(sequence string) { b.WriteString(sequence) }
	p.Had(10)
	p.Begin()
	if want := clearLine + "10 of 40 cells"; b.String() != want {
		t.Errorf("on a terminal: %q, want %q", b.String(), want)
	}
}

// TestProgressSaysNothing sees that a quiet one doesn't.
func TestProgressSaysNothing(t *testing.T) {
	var b strings.Builder
	p := NewProgress(&b, 40)
	p.Out, p.clear = nil, func(sequence string) { b.WriteString(sequence) }
	p.Begin()
	p.clear = nil
	p.begun, p.last = p.begun.Add(-3*time.Minute), p.last.Add(-3*time.Minute)
	if p.Due() {
		p.Say("something")
	}
	p.Close()
	if b.Len() > 0 {
		t.Errorf("got %q", b.String())
	}
}
