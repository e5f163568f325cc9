// Package page writes a report as one self-contained HTML file: it needs no network and no foreign
// script, and can be read without its own script. The input is the finished text and the drawings;
// the package only decides on their layout. The package may not be used to derive results.
package page

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/lockfault/lockfault/reports/svg"
)

// The parts of the file.
var (
	//go:embed page.html
	source string
	//go:embed top.html
	top string
	//go:embed differences.html
	differences string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
	//go:embed timeline.js
	zoom string
)

// pageStyle is a part of the pages with drawings: what their templates need for them.
type pageStyle struct{}

// Style returns the CSS of a page.
func (pageStyle) Style() template.CSS { return template.CSS(style + svg.Style) }

// Patterns returns the fill patterns of the drawings.
func (pageStyle) Patterns() template.HTML { return template.HTML(svg.Patterns) }

// Code returns the script of a page with stories, without comments and indentation.
func (pageStyle) Code() template.JS {
	var b strings.Builder
	for line := range strings.Lines(zoom + script) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			b.WriteString(line + "\n")
		}
	}
	return template.JS(b.String())
}

// A Head holds everything of a report except the stories.
type Head struct {
	pageStyle
	Title      string
	Tally      string
	Warning    string      // such as that the run was interrupted
	Provenance [][2]string // names and values
	Unexpected []Group     // cells that differ from their expectation
	Better     []Group
	Less       []Group // cells that show less, and grant less
	Ranking    []Rank
	Measured   bool // whether quantiles were measured
	Worlds     []string
	Since      *Differences // nil without a comparison
	Agreement  []string
	Matrix     Matrix
	Anomalies  []Anomaly
	Faults     []string // kinds of faults in the scripts
	Scripts    []Script
	Inherent   []Inherent
}

// A Group holds links to cells with the same text.
type Group struct {
	Summary string
	Links   []Link
}

// A Link leads to a story.
type Link struct{ ID, Text, Summary string }

// A Rank is a strategy in the summary.
type Rank struct {
	Place                            int
	Name, Summary, Class             string
	Survived, Played                 int
	Avoidable                        int
	Nodes                            int
	Acquire, Release                 string // round trips and commands
	Recovery, NodeDown, Overlap      string
	Stale                            int
	Chance                           int // number of scenarios whose result depends on chance
	P50, P99                         string
	Advice                           string
	NodesSort, RecoveryNS, OverlapNS int64
	AcquireSort, ReleaseSort         int64
}

// A Matrix is the comparison of strategies and scenarios.
type Matrix struct {
	Strategies []string
	Rows       []Row
}

// A Row is a scenario.
type Row struct {
	Scenario string
	Faults   string // kinds of faults, separated by spaces
	Squares  []Square
}

// A Square is the entry for a strategy under a scenario, in all worlds.
type Square struct {
	Part              // first world
	OtherParts []Part // other worlds
	Class      string
	Anomalies  string // anomalies in all worlds, separated by spaces
	Text       string
}

// A Part is the entry of a single cell.
type Part struct {
	World string // empty for the first world
	ID    string // ID of its story; empty without a story
	Name  string // full name, for screen readers
	Words []Word
	Marks string
}

// A Word is an abbreviated anomaly.
type Word struct {
	Short     string
	Avoidable bool
}

// An Anomaly is an entry of the legend.
type Anomaly struct{ Name, Short, Text string }

// A Script is the text of a scenario.
type Script struct{ Name, Text, Hash string }

// An Inherent is an anomaly that all locks of a class showed under a scenario.
type Inherent struct{ Anomaly, Class, Scenarios string }

// A Story is the story of one cell.
type Story struct {
	ID, Name, World, Scenario, Verdict, Class string
	Difference                                string
	Proofs                                    []Proof
	Notes                                     []string
	Elsewhere                                 []Link        // the cell in other worlds
	Timeline, Sequence                        template.HTML // SVG whose texts are already escaped
	Mermaid                                   string
	Sentences                                 []Sentence
	Left                                      int
	Command, Trace                            string
	Same                                      string // story with the same pictures; those here are empty
	HasScript                                 bool
	Script                                    string // for pages without a list of scripts
}

// At returns the ID of the story that shows the events of this story.
func (s Story) At() string {
	if s.Same != "" {
		return s.Same
	}
	return s.ID
}

// A Proof is an anomaly with its evidence.
type Proof struct {
	Anomaly, Text, Avoided string
	// Judged is a sentence: the outcome of the anomaly by the class of the lock, with its reason.
	Judged string
	Events []int
}

// A Sentence is a part of a story.
type Sentence struct {
	Event  int
	Text   string
	Proves bool
}

// brief escapes the characters that are special between tags.
var brief = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// HTML returns the escaped text. Unlike html/template it keeps apostrophes, which occur thousands
// of times.
func (s Sentence) HTML() template.HTML {
	return template.HTML(brief.Replace(s.Text))
}

// A Writer writes the file: the head first, then the stories one by one. The caller must call
// Close.
type Writer struct {
	w io.Writer
	t *template.Template
}

// parse parses a template, together with the parts that every file has.
func parse(source string) (*template.Template, error) {
	return template.New("").Parse(top + differences + source)
}

// write writes a whole file from a template.
func write(w io.Writer, source, name string, content any) error {
	t, err := parse(source)
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, name, content)
}

// New writes the head of a file, and returns a Writer for the rest.
func New(w io.Writer, h Head) (*Writer, error) {
	t, err := parse(source)
	if err != nil {
		return nil, err
	}
	p := &Writer{w, t}
	return p, t.ExecuteTemplate(w, "head", h)
}

// Story writes a story.
func (p *Writer) Story(s Story) error { return p.t.ExecuteTemplate(p.w, "story", s) }

// Close writes the end of the file. Close does not close the underlying writer.
func (p *Writer) Close() error {
	return p.t.ExecuteTemplate(p.w, "foot", pageStyle{}.Code())
}
