package linear

import (
	"os"
	"strings"
	"testing"
)

// The words of docs/checker.md that say what a kind of lock is stand beside the model of it.
func TestWordsStandBesideModels(t *testing.T) {
	doc, err := os.ReadFile("../../docs/checker.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("models.go")
	if err != nil {
		t.Fatal(err)
	}
	var comments []string
	for line := range strings.Lines(string(code)) {
		if text, ok := strings.CutPrefix(line, "//"); ok {
			comments = append(comments, strings.Fields(text)...)
		}
	}
	words := strings.Join(comments, " ")
	_, section, _ := strings.Cut(string(doc), "## Specifications\n")
	section, _, _ = strings.Cut(section, "\n## ")
	seen := 0
	for paragraph := range strings.SplitSeq(section, "\n\n") {
		text, ok := strings.CutPrefix(paragraph, "**")
		if !ok || strings.HasPrefix(text, "Strict.") { // which is judged beside all of them
			continue
		}
		seen++
		if text = strings.Join(strings.Fields(strings.Replace(text, "**", "", 1)), " "); !strings.Contains(words, text) {
			t.Errorf("models.go does not say what docs/checker.md does:\n%s", text)
		}
	}
	if seen != 9 {
		t.Errorf("docs/checker.md has %d specifications", seen)
	}
}
