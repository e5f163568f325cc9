package mermaid_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/reports/mermaid"
)

// hostile returns texts that are special in Mermaid, in HTML, or on a terminal.
func hostile() []string {
	return []string{"A", "<script>alert(1)</script>", "a|b", "`x`", "line\nline", "\x1b[31mred", "a;b#c:d", "end", "END", " ", "", "%%{init}%%", "p0->>p1: x",
		`"quoted" \ back`, "é → ü", strings.Repeat("x", 10_000), "&lt;", "\u2028"}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	d := mermaid.Diagram{Participants: hostile()}
	for i, text := range hostile() {
		d.Lines = append(d.Lines,
			mermaid.Line{Arrow: mermaid.Asks, From: 0, To: i, Text: text},
			mermaid.Line{Arrow: mermaid.Answers, From: i, To: 1, Text: text},
			mermaid.Line{Arrow: mermaid.Lost, From: 2, To: i, Text: text},
			mermaid.Line{From: i, To: i, Text: text},
			mermaid.Line{From: 0, To: 2, Text: text})
	}
	var b strings.Builder
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := parse(b.String())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, d) {
		t.Errorf("read back\n%+v\nwant\n%+v", got, d)
	}
	if lines := strings.Count(b.String(), "\n"); lines != 1+len(d.Participants)+len(d.Lines) {
		t.Errorf("%d lines: a text has broken one", lines)
	}
	if found := regexp.MustCompile(`[^0-9];`).FindString(b.String()); found != "" {
		t.Errorf("%q came through, which ends a line for Mermaid", found)
	}
	for _, never := range []string{"<", "\x1b", "`"} {
		if strings.Contains(b.String(), never) {
			t.Errorf("%q came through", never)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "graph TD\n", "sequenceDiagram\n    p0->>p1: x\n", "sequenceDiagram\n    participant p1 as A\n",
		"sequenceDiagram\n    participant p0 as A\n    loop x\n", "sequenceDiagram\n    participant p0 as a#b\n"} {
		if d, err := parse(text); err == nil {
			t.Errorf("%q was read as %+v", text, d)
		}
	}
}
