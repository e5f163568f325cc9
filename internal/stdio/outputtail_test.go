package stdio_test

import (
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/stdio"
)

func TestPrinted(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "",
		" \n\n":                               "",
		"one\ntwo ":                           "\n\nit printed:\none\ntwo",
		strings.Repeat("line\n", 30) + "last": "\n\nit printed:\n…\n" + strings.Repeat("line\n", 9) + "last",
	} {
		if said := stdio.LastLineOfTail("it failed" + stdio.OutputTail("it", text) + "\n\nB printed:\nmore"); want == "" && said != "more" || want != "" && !strings.HasSuffix(want, "\n"+said) {
			t.Errorf("the last line of %q is %q", want, said)
		}
		if got := stdio.OutputTail("it", text); got != want {
			t.Errorf("of %q it returns %q, want %q", text, got, want)
		}
	}
}
