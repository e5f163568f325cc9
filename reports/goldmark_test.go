package reports_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	gfm "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/reports"
)

// TestMarkdownParses checks with a Markdown parser that tables have rows as wide as their heads,
// that the number of headings is right, and that no name or text becomes an element, an image or a
// link.
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
	// The check itself must find errors.
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

// parsed parses Markdown and returns the number of its tables.
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

// separators matches the lines below the heads of tables, blocks matches blocks of code, and
// headings matches the beginnings of headings.
var (
	separators = regexp.MustCompile(`(?m)^\|(?:-+:?\|)+$`)
	blocks     = regexp.MustCompile("(?ms)^```.*?^```$")
	headings   = regexp.MustCompile(`(?m)^#+ `)
	details    = regexp.MustCompile(`^</?(details|summary)>`)
)

// broken describes an unintended element that a Markdown parser finds. It returns "" if there is
// none.
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
	// The parser drops surplus cells.
	lines := strings.Split(plain, "\n")
	for i, line := range lines {
		if i > 0 && strings.HasPrefix(line, "|") && strings.HasPrefix(lines[i-1], "|") && bars(line) != bars(lines[i-1]) {
			wrong = "a row is not as wide as the one above: " + clip(line)
		}
	}
	return wrong
}

// bars counts the bars that separate cells in a row.
func bars(line string) int { return strings.Count(line, "|") - strings.Count(line, `\|`) }

func clip(s string) string { return s[:min(len(s), 120)] }

// evil returns texts that could break out of their context.
func evil() []string {
	return []string{"a\nb", "| c | d |", "`", "](http://x.example) [y](", "<b>", "\x1b[31m", "\u202e\u2066\u200f\u009b", "# h", "![i](j)", "//x.example/(y)", "::error::z\r\n::error::z", "=1+1"}
}

// evilText returns another evil text on each call. Every second text has no backtick, since text
// between two backticks has no special meaning.
func evilText(n *int) string {
	*n++
	text := evil()[*n%len(evil())] + strings.Join(evil(), fmt.Sprint(*n))
	if *n%2 == 0 {
		return strings.ReplaceAll(text, "`", "")
	}
	return text
}

// fillStrings sets each string in v to an evil text, and adds an element to each list. It leaves
// out the fields that the reader depends on.
func fillStrings(v reflect.Value, n *int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(evilText(n))
		if v.Type() == reflect.TypeFor[checker.Anomaly]() {
			v.SetString(string(checker.Overlap))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillStrings(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillStrings(v.Index(0), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillStrings(key, n)
		fillStrings(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "Tool" && f.Name != "Verdict" {
				fillStrings(v.Field(i), n)
			}
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	}
}

// evilResults writes a results.json in which each string is evil, with cells of these verdicts, and
// returns its directory.
func evilResults(t *testing.T, verdicts ...reports.Verdict) string {
	t.Helper()
	n := 0
	var results struct {
		reports.Head
		Cells []reports.Cell `json:"cells"`
	}
	results.Tool = reports.Tool
	fillStrings(reflect.ValueOf(&results.Head).Elem(), &n)
	for _, verdict := range verdicts {
		for _, asExpected := range []bool{false, true} {
			var c reports.Cell
			fillStrings(reflect.ValueOf(&c).Elem(), &n)
			c.Verdict, c.AsExpected = verdict, asExpected
			if asExpected { // two worlds, with and without a backtick
				c.World = results.World
			} else {
				c.World = strings.ReplaceAll(results.World, "`", "")
			}
			c.History = "histories/" + strings.ReplaceAll(c.History, "..", "")
			if verdict == reports.Held {
				c.Anomalies = nil
			}
			results.Cells = append(results.Cells, c)
		}
	}
	text, err := json.Marshal(results)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, reports.ResultsFile), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFormsAreSafe checks that, for any strings in results.json, each format of a report is a valid
// document without characters that act on a terminal.
func TestFormsAreSafe(t *testing.T) {
	dir := evilResults(t, reports.Held, reports.Violated, reports.Unknown, reports.Error, reports.NotApplicable)
	results := filepath.Join(dir, reports.ResultsFile)
	read := func(dir string) *reports.Results {
		r, err := reports.ReadResults(filepath.Join(dir, reports.ResultsFile))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	diff, err := reports.NewDiff(read(evilResults(t, reports.Held, reports.Held, reports.Held, reports.Violated, reports.Violated)), read(dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what, form, text string) {
		t.Helper()
		if !utf8.ValidString(text) || printable.Text(text) != text {
			t.Errorf("%s as %s has unprintable characters", what, form)
		}
		switch form {
		case "markdown", "mermaid":
			parsed(t, what+" as "+form, text)
		case "junit":
			wellFormed(t, text)
		case "json":
			if !json.Valid([]byte(text)) {
				t.Errorf("%s is no JSON", what)
			}
		case "github":
			for line := range strings.Lines(text) {
				if n := strings.Count(line, "::"); !regexp.MustCompile(`^::(error|warning|notice) [^:]*::`).MatchString(line) {
					t.Errorf("%s has an annotation with %d colons: %s", what, n, line)
				}
			}
		}
	}
	for _, form := range reports.Forms() {
		check("a report", form.Name, formOf(t, form.Name, dir))
		var b strings.Builder
		if err := form.Write(&b, reports.Source{Results: results, Since: diff}); err != nil {
			t.Fatal(err)
		}
		check("a report with differences", form.Name, b.String())
	}
	for _, form := range reports.DiffFormats() {
		var b strings.Builder
		if err := diff.Write(&b, form); err != nil {
			t.Fatal(err)
		}
		check("a comparison", form, b.String())
	}
	var costs reports.Costs
	n := 0
	fillStrings(reflect.ValueOf(&costs).Elem(), &n)
	var b strings.Builder
	if err := costs.Markdown(&b, ""); err != nil {
		t.Fatal(err)
	}
	check("costs", "markdown", b.String())
	for _, write := range []func(io.Writer) error{costs.Table, costs.Plot, costs.JSON} {
		b.Reset()
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		check("costs", "", b.String())
	}
}
