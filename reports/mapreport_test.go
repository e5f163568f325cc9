package reports_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/reports"
)

// mapped returns a small map: held except in a corner, with a point without a verdict.
func mapped(name string) *reports.MapReport {
	m := &reports.MapReport{
		Tool: reports.Tool, Version: "v0", Strategy: name, Scenario: "s", World: "sim", Seed: 1, Command: "lockfault map " + name, Of: []checker.Anomaly{checker.Overlap},
		X: reports.MapAxis{Name: "pause", Steps: 2, Ticks: []string{"0.5ttl", "1ttl", "1.5ttl"}}, Y: &reports.MapAxis{Name: "lag", Steps: 2, Ticks: []string{"1ms", "2ms", "3ms"}},
		Grid: 9, Loose: 3, LooseX: "0.5ttl", LooseY: "1ms", Void: 1, Why: name + ": it went wrong",
		Lines: []reports.MapLine{{Where: "with lag 2ms, along pause", Text: "held up to 1ttl, overlap from 1.5ttl"}},
		Sides: []reports.MapScript{{Answer: "held", X: "1ttl", Y: "2ms", File: name + "-s-held.txt", Command: "lockfault trace " + name, Text: "clients A\n" + name}},
	}
	for j := range 2 {
		for i := range 2 {
			m.Squares = append(m.Squares, reports.MapSquare{I: i, J: j, Side: 1, Answer: []string{reports.MapHeld, "overlap", reports.MapVoid, reports.MapHeld}[2*j+i], Mixed: i == 1 && j == 1})
		}
	}
	m.Probes = []reports.MapProbe{{X: "0.5ttl", Y: "1ms", Verdict: reports.Held, Anomalies: []checker.Anomaly{}}, {I: 2, X: "1.5ttl", Y: "1ms", Verdict: reports.Violated, Anomalies: []checker.Anomaly{checker.Overlap, checker.StaleWrite}}}
	return m
}

// TestMapped checks all formats of a map with any names: the picture is XML, the page has no
// foreign tags, and the data can be read back.
func TestMapped(t *testing.T) {
	evil := `<script>"x"</script>&` + "\x1b[31m" + strings.Repeat("y", 500)
	for _, name := range []string{"set-nx-px-lua", evil} {
		m := mapped(name)
		var drawn, page, table, data, sheet bytes.Buffer
		for _, err := range []error{m.SVG(&drawn, true), m.Page(&page), m.Table(&table), m.JSON(&data), m.CSV(&sheet)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for d := xml.NewDecoder(bytes.NewReader(drawn.Bytes())); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v\n%s", err, drawn.String())
			}
		}
		for form, text := range map[string]string{"svg": drawn.String(), "html": page.String(), "table": table.String()} {
			if strings.Contains(text, "\x1b") || form != "table" && strings.Contains(text, "<script>") {
				t.Errorf("%s has what a name has:\n%s", form, text)
			}
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, reports.MapFile), data.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		if again, err := reports.ReadMap(dir); err != nil || again.Strategy != name || len(again.Probes) != 2 {
			t.Errorf("%+v, %v", again, err)
		}
		if want := "pause,lag,verdict,anomalies\n0.5ttl,1ms,held,\n1.5ttl,1ms,violated,overlap stale-write\n"; sheet.String() != want {
			t.Errorf("the sheet is\n%s", sheet.String())
		}
	}
	var table bytes.Buffer
	if err := mapped("set-nx-px-lua").Table(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3ms |?+\n", "1ms |.#\n", ". held, # overlap, ? no verdict, + where it changes", "along pause: held up to 1ttl", "3 parts of 0.5ttl of pause × 1ms of lag", "1 point had no verdict; the first: set-nx-px-lua: it went wrong"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
}
