package printable_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/lockfault/lockfault/internal/printable"
)

// Every character of Unicode that is a control character or that changes the direction of text is
// unprintable.
func TestUnprintable(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		want := unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.In(r, unicode.Zl, unicode.Zp)
		if got := printable.Unprintable(r); got != want {
			t.Errorf("Unprintable(%U) = %v", r, got)
		}
		if printable.Unprintable(printable.Rune(r)) {
			t.Errorf("Rune(%U) is unprintable", r)
		}
	}
}

const hostile = "\x1b[31mred\x1b]0;t\x07 \x00\r\x7f\u009b \u202eevil\u2066 \u200f \u2028 \xff\xfe \xc2\n\té ✓ 🔒"

func TestText(t *testing.T) {
	const line = "␛[31mred␛]0;t␇ ␀␍␡� �evil� � � �� �␊␉é ✓ 🔒"
	text := strings.NewReplacer("␊", "\n", "␉", "\t").Replace(line)
	if got := printable.Line(hostile); got != line {
		t.Errorf("Line: %q", got)
	}
	if got := printable.Text(hostile); got != text {
		t.Errorf("Text: %q", got)
	}
	if printable.IsLine(hostile) || printable.IsLine("a\nb") || printable.IsLine("\xff") || !printable.IsLine(line) {
		t.Error("IsLine is wrong")
	}
	for size := 1; size <= len(hostile); size++ {
		var b strings.Builder
		w := printable.NewWriter(&b)
		for rest := hostile; rest != ""; {
			part := rest[:min(size, len(rest))]
			rest = rest[len(part):]
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if b.String() != text {
			t.Errorf("written by %d bytes: %q", size, &b)
		}
	}
	var b strings.Builder
	w := printable.NewWriter(&b)
	if _, err := w.Write([]byte("é\xe2\x82")); err != nil || b.String() != "é" {
		t.Errorf("before the end of a character: %q, %v", &b, err)
	}
	if err := w.Flush(); err != nil || b.String() != "é��" {
		t.Errorf("at the end: %q, %v", &b, err)
	}
}

// JSON has the same strings afterwards.
func TestJSON(t *testing.T) {
	want := strings.ToValidUTF8(hostile, "?")
	document, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if _, err := printable.NewJSONWriter(&b).Write(document); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if !printable.IsLine(b.String()) {
		t.Errorf("it is not printable: %q", &b)
	}
}
