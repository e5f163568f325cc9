package reports_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	gfm "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"github.com/lockfault/lockfault/reports"
)

// A reader of Markdown finds in what is written what was meant: tables whose rows are as wide as their heads, as many
// headings as there are, and nothing that a name or a text brought along, such as an element, an image or a link.
func TestMarkdownParses(t *testing.T) {
	for what, dir := range map[string]string{"sample": write(t, sample(), order(len(sample()))), "hostile": hostileReport(t)} {
		results := filepath.Join(dir, reports.ResultsFile)
		now, err := reports.ReadResults(results)
		if err != nil {
			t.Fatal(err)
		}
		before, err := reports.ReadResults(results)
		if err != nil {
			t.Fatal(err)
		}
		diff, err := reports.NewDiff(before, now, nil)
		if err != nil {
			t.Fatal(err)
		}
		var compared strings.Builder
		if err := diff.Write(&compared, "markdown"); err != nil {
			t.Fatal(err)
		}
		tables := 0
		for form, source := range map[string]string{"markdown": read(t, dir, reports.MarkdownFile), "mermaid": formOf(t, "mermaid", dir), "compare": compared.String()} {
			tables += parsed(t, what+" "+form, source)
		}
		if tables == 0 {
			t.Errorf("%s: there is no table", what)
		}
	}
	// And it would find them.
	if n := broken("| a | b |\n|---|---|\n| one | two | three |\n"); n == "" {
		t.Error("a row that is too wide was not found")
	}
	if n := broken("text <b>bold</b>\n"); n == "" {
		t.Error("an element was not found")
	}
	if n := broken("see [this](http://example.com)\n"); n == "" {
		t.Error("a link was not found")
	}
}

// parsed reads Markdown, and returns how many tables it has.
func parsed(t *testing.T, what, source string) (tables int) {
	t.Helper()
	if wrong := broken(source); wrong != "" {
		t.Errorf("%s: %s", what, wrong)
	}
	_ = ast.Walk(document(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if _, ok := n.(*gfm.Table); ok && entering {
			tables++
		}
		return ast.WalkContinue, nil
	})
	return tables
}

func document(source string) ast.Node {
	return goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader([]byte(source)))
}

// separators are the lines below the heads of tables, and headings the lines that begin like one, outside of blocks of code.
var (
	separators = regexp.MustCompile(`(?m)^\|(?:-+:?\|)+$`)
	blocks     = regexp.MustCompile("(?ms)^```.*?^```$")
	headings   = regexp.MustCompile(`(?m)^#+ `)
	details    = regexp.MustCompile(`^</?(details|summary)>`)
)

// broken says what a reader of Markdown finds that is not meant; nothing if it is empty.
func broken(source string) (wrong string) {
	plain := blocks.ReplaceAllString(source, "")
	tables, heads := 0, 0
	_ = ast.Walk(document(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *gfm.Table:
			tables++
		case *ast.Heading:
			heads++
		case *ast.Link:
			if to := string(n.Destination); !strings.HasPrefix(to, "histories/") {
				wrong = "a link to " + clip(to)
			}
		case *ast.RawHTML, *ast.Image, *ast.AutoLink:
			wrong = n.Kind().String() + " in " + clip(string(n.Parent().Lines().Value([]byte(source))))
		case *ast.HTMLBlock:
			if line := string(n.Lines().Value([]byte(source))); !details.MatchString(line) {
				wrong = "an element: " + clip(line)
			}
		}
		return ast.WalkContinue, nil
	})
	if want := len(separators.FindAllString(plain, -1)); tables != want {
		wrong = "some tables are none"
	}
	if want := len(headings.FindAllString(plain, -1)); heads != want {
		wrong = "some headings are none, or some text is one"
	}
	// The reader drops cells that are too many.
	lines := strings.Split(plain, "\n")
	for i, line := range lines {
		if i > 0 && strings.HasPrefix(line, "|") && strings.HasPrefix(lines[i-1], "|") && bars(line) != bars(lines[i-1]) {
			wrong = "a row is not as wide as the one above: " + clip(line)
		}
	}
	return wrong
}

// bars counts the bars of a row that divide cells.
func bars(line string) int { return strings.Count(line, "|") - strings.Count(line, `\|`) }

func clip(s string) string { return s[:min(len(s), 120)] }
