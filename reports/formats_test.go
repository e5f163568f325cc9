package reports_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/reports"
)

// form returns the report of the cells in the named format.
func form(t *testing.T, name string, cells []reports.Cell) string {
	t.Helper()
	return formOf(t, name, write(t, cells, order(len(cells))))
}

func formOf(t *testing.T, name, dir string) string {
	t.Helper()
	for _, f := range reports.Forms() {
		if f.Name == name {
			var b strings.Builder
			if err := f.Write(&b, reports.Source{Results: filepath.Join(dir, reports.ResultsFile)}); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
	}
	t.Fatalf("there is no form %s", name)
	return ""
}

func TestForms(t *testing.T) {
	for _, name := range []string{"junit", "csv", "mermaid", "github"} {
		matches(t, "report."+name, form(t, name, sample()))
	}
}

// TestFormsEscape checks that every format escapes the texts of a report.
func TestFormsEscape(t *testing.T) {
	dir := hostileReport(t)
	cells := 0
	if _, err := reports.Scan(filepath.Join(dir, reports.ResultsFile), func(c reports.Cell) error {
		if c.Difference() != "" {
			cells++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(formOf(t, "github", dir), "\n"); got != cells+1 {
		t.Errorf("github has %d lines, want one for each of %d cells and one for all", got, cells)
	}
	for _, name := range []string{"junit", "csv", "mermaid", "github"} {
		text := formOf(t, name, dir)
		if strings.ContainsAny(text, "\x1b\x00\r") {
			t.Errorf("%s has control characters", name)
		}
		if strings.Contains(text, strings.Repeat("long", 500)) {
			t.Errorf("%s has all of a long name", name)
		}
		if name == "junit" && strings.Contains(text, "<script>") {
			t.Errorf("%s has an element of a cell's", name)
		}
	}
}

// TestJUnitIsValid checks the JUnit output against the schema of its readers.
func TestJUnitIsValid(t *testing.T) {
	program, err := exec.LookPath("xmllint")
	if err != nil {
		t.Skip("there is no xmllint: install it (apt-get install libxml2-utils), .ci/viewers does")
	}
	valid := func(text string) (string, bool) {
		cmd := exec.Command(program, "--noout", "--nonet", "--schema", filepath.Join("testdata", "junit.xsd"), "-")
		cmd.Stdin = strings.NewReader(text)
		said, err := cmd.CombinedOutput()
		return string(said), err == nil
	}
	for name, text := range map[string]string{
		"sample": form(t, "junit", sample()), "later": form(t, "junit", later()), "one": form(t, "junit", sample()[:1]),
		"hostile": formOf(t, "junit", hostileReport(t)),
	} {
		if said, ok := valid(text); !ok {
			t.Errorf("%s: %.500s", name, said)
		}
	}
	good := form(t, "junit", sample())
	for _, wrong := range [][2]string{{` name="gc-pause"`, ` nome="gc-pause"`}, {`tests="`, `tests="many`}, {"<failure", "<failed"}} {
		text := strings.ReplaceAll(good, wrong[0], wrong[1])
		if _, ok := valid(text); ok || text == good {
			t.Errorf("with %s in place of %s it is as good", wrong[1], wrong[0])
		}
	}
}

// TestJUnitCounts checks that the counts of suites match their contents.
func TestJUnitCounts(t *testing.T) {
	text := form(t, "junit", sample())
	suites := strings.Split(text, "<testsuite ")[1:]
	if len(suites) != 2 {
		t.Fatalf("%d suites, want one for each strategy:\n%s", len(suites), text)
	}
	for _, suite := range suites {
		for attribute, element := range map[string]string{"tests": "<testcase ", "failures": "<failure ", "errors": "<error ", "skipped": "<skipped "} {
			want := regexp.MustCompile(` ` + attribute + `="(\d+)"`).FindStringSubmatch(suite)[1]
			if got := strings.Count(suite, element); want != string(rune('0'+got)) {
				t.Errorf("%s=%s, and there are %d", attribute, want, got)
			}
		}
	}
}
