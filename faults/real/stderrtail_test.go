package real

import (
	"fmt"
	"strings"
	"testing"
)

// TestTail checks that everything written before a call of String is in the result, at once and
// after Close.
func TestTail(t *testing.T) {
	for range 200 {
		tail, to, err := newTail()
		if err != nil {
			t.Fatal(err)
		}
		for n := range 20 {
			fmt.Fprintln(to, "line", n)
			if text := tail.String(); !strings.HasSuffix(text, fmt.Sprint("line ", n)) {
				t.Fatalf("after line %d it has %q", n, text)
			}
		}
		fmt.Fprintln(to, "the last")
		if err := tail.Close(); err != nil {
			t.Fatal(err)
		}
		if text := tail.String(); !strings.HasSuffix(text, "\nthe last") {
			t.Fatalf("once it is closed it has %q", text)
		}
		to.Close()
	}
}

// TestTailOfALot checks that no writer waits for room in the pipe, and that only the end is kept.
func TestTailOfALot(t *testing.T) {
	tail, to, err := newTail()
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	line := strings.Repeat("x", 99) + "\n"
	for range 50_000 {
		if _, err := to.WriteString(line); err != nil {
			t.Fatal(err)
		}
	}
	to.WriteString("the end\xff\n")
	if text := tail.String(); len(text) > tailLimit+10 || !strings.HasSuffix(text, "x\nthe end\uFFFD") {
		t.Errorf("it has %d bytes, the last %q", len(text), text[max(0, len(text)-20):])
	}
	to.Close()
}
