package reports_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/reports/svg"
)

// TestUntil checks that a context stops the drawing, and that the old report stays.
func TestUntil(t *testing.T) {
	dir := write(t, sample(), []int{0, 1, 2, 3, 4, 5, 6, 7})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before, err := os.ReadFile(filepath.Join(dir, reports.HTMLFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := reports.Rebuild(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("Rebuild returns %v", err)
	}
	if _, err := reports.RecheckDir(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("RecheckDir returns %v", err)
	}
	for _, f := range reports.Forms() {
		if f.Name == "json" || f.Name == "github" {
			continue // formats that read no histories
		}
		path := filepath.Join(t.TempDir(), f.Name)
		if err := f.WriteFile(path, reports.Source{Results: filepath.Join(dir, reports.ResultsFile), Err: ctx.Err}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", f.Name, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: half a file", f.Name)
		}
	}
	after, err := os.ReadFile(filepath.Join(dir, reports.HTMLFile))
	if err != nil || string(after) != string(before) {
		t.Errorf("the page is another: %v", err)
	}
}

// TestManySpans checks that a picture with too many spans states how many are left out.
func TestManySpans(t *testing.T) {
	h := checker.History{Meta: checker.Meta{Format: 1, Clients: []string{"A"}, Nodes: []string{"n1"}, TTL: time.Second}}
	for i := range 2000 {
		h.Events = append(h.Events, checker.Event{Index: i, Time: time.Duration(i) * time.Millisecond, Kind: checker.Fault, Node: "n1", Text: "partition A from n1"})
	}
	pic := reports.Picture(reports.Cell{Verdict: reports.Violated, Witnesses: []checker.Witness{{Anomaly: checker.Overlap, Events: []int{1999}}}}, h, 60)
	var b bytes.Buffer
	if err := svg.Timeline(&b, pic, true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "bars left out") || pic.Left.Spans == 0 || b.Len() > 200_000 {
		t.Errorf("%d bytes, %d spans, %d left out", b.Len(), len(pic.Spans), pic.Left.Spans)
	}
}
