package reports_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker/linear"
	"github.com/lockfault/lockfault/reports"
)

// judgedHistory returns a history in which clients a and b hold the lock of that key at the same
// time.
func judgedHistory(a, b, key string) reports.Checked {
	var events []linear.Event
	tell := func(ms int, client string, phase linear.Phase, op linear.Op) {
		events = append(events, linear.Event{Time: time.Duration(ms) * time.Millisecond, Client: client, Key: key, Phase: phase, Op: op, Line: len(events) + 1})
	}
	tell(0, a, linear.Invoke, linear.Acquire)
	tell(10, a, linear.ReturnOK, linear.Acquire)
	tell(30, b, linear.Invoke, linear.TryAcquire)
	tell(35, b, linear.ReturnOK, linear.TryAcquire)
	tell(60, a, linear.Invoke, linear.Release)
	tell(62, a, linear.ReturnOK, linear.Release)
	tell(80, b, linear.Invoke, linear.Release)
	tell(90, "", linear.Crash, 0)
	events[7].Client = b
	d := reports.Drawn{Events: events}
	c := linear.New(linear.Mutex(), linear.Options{All: true, Held: func(h linear.Held) { d.Held = append(d.Held, h) }})
	for _, e := range events {
		if err := c.Add(e); err != nil {
			panic(err)
		}
	}
	r := c.Result()
	h := reports.Checked{Name: key + ".csv", Verdict: string(r.Verdict), Spec: "mutex", Notes: []string{"4 operations of " + a}}
	for _, v := range r.Violations {
		d.Violation = v
		h.Violations = append(h.Violations, d)
	}
	return h
}

func TestWriteChecked(t *testing.T) {
	var b bytes.Buffer
	if err := reports.WriteCheckPage(&b, []reports.Checked{judgedHistory("A", "B", "orders"), {Name: "fine.csv", Verdict: "valid", Spec: "mutex"}}); err != nil {
		t.Fatal(err)
	}
	matches(t, "checked.html", b.String())
}

// TestWriteCheckedEscapes checks that any name of a client or lock is escaped.
func TestWriteCheckedEscapes(t *testing.T) {
	var list []reports.Checked
	for _, name := range hostile() {
		list = append(list, judgedHistory(name, name+"2", name))
	}
	var b bytes.Buffer
	if err := reports.WriteCheckPage(&b, list); err != nil {
		t.Fatal(err)
	}
	for _, never := range []string{"<script", "<img", "\x1b", "]]></svg>"} {
		if strings.Contains(b.String(), never) {
			t.Errorf("%q came through", never)
		}
	}
	if b.Len() > 1<<20 {
		t.Errorf("the page has %d bytes", b.Len())
	}
}

// TestPictureOfALongHistoryOfOthers checks that the picture of a long history is limited.
func TestPictureOfALongHistoryOfOthers(t *testing.T) {
	h := judgedHistory("A", "B", "orders")
	d := h.Violations[0]
	last := d.Events[len(d.Events)-1]
	for i := range 10_000 {
		last.Line, last.Time = last.Line+1, last.Time+time.Duration(i)
		d.Events = append(d.Events, last)
	}
	pic := d.Picture(reports.MostMoments)
	if len(pic.Points) != reports.MostMoments || pic.Left.All() != len(d.Events)-reports.MostMoments {
		t.Errorf("%d moments, %+v are left out of %d", len(pic.Points), pic.Left, len(d.Events))
	}
	for _, line := range []int{2, 4} {
		found := false
		for _, m := range pic.Points {
			found = found || m.Event == line && m.Proves()
		}
		if !found {
			t.Errorf("line %d, which proves it, is left out", line)
		}
	}
}
