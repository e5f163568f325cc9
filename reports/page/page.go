// Package page writes a report as one HTML file that needs nothing else: no network, no
// script of others, and to be read not even its own. What it shows it is given; it decides
// only how that looks.
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

// A Head is all but the stories.
type Head struct {
	Title      string
	Tally      string
	Warning    string      // that the run was interrupted, say
	Provenance [][2]string // what, and which
	Unexpected []Group     // the cells that are not as expected
	Better     []Group
	Ranking    []Rank
	Measured   bool // there are quantiles
	Worlds     []string
	Since      *Differences // nil if nothing was compared
	Agreement  []string
	Matrix     Matrix
	Anomalies  []Anomaly
	Faults     []string // the kinds of faults that there are scripts with
	Scripts    []Script
	Inherent   []Inherent
}

// A Group is the cells of which the same is said.
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
	Chance                           int // scenarios in which it is chance what it shows
	P50, P99                         string
	Advice                           string
	NodesSort, RecoveryNS, OverlapNS int64
	AcquireSort, ReleaseSort         int64
}

// A Matrix is the comparison.
type Matrix struct {
	Strategies []string
	Rows       []Row
}

// A Row is a scenario.
type Row struct {
	Scenario string
	Faults   string // their kinds, with spaces between them
	Squares  []Square
}

// A Square is a strategy under a scenario, in all worlds.
type Square struct {
	Part              // in the first world
	OtherParts []Part // in the others
	Class      string
	Anomalies  string // of all, with spaces between them
	Text       string
}

// A Part is what the comparison shows of a cell.
type Part struct {
	World string // empty for the first
	ID    string // of its story; empty if there is none
	Name  string // for who doesn't see where it stands
	Words []Word
	Marks string
}

// A Word is an anomaly in short.
type Word struct {
	Short     string
	Avoidable bool
}

// An Anomaly is explained by the legend.
type Anomaly struct{ Name, Short, Text string }

// A Script is a scenario's text.
type Script struct{ Name, Text, Hash string }

// An Inherent is an anomaly that all locks of a kind showed under a scenario.
type Inherent struct{ Anomaly, Class, Scenarios string }

// A Story is that of one cell.
type Story struct {
	ID, Name, World, Scenario, Verdict, Class string
	Difference                                string
	Proofs                                    []Proof
	Notes                                     []string
	Elsewhere                                 []Link        // the same cell in the other worlds
	Timeline, Sequence                        template.HTML // drawn here, and escaped there
	Mermaid                                   string
	Sentences                                 []Sentence
	Left                                      int
	Command, Trace                            string
	Same                                      string // the story that is the same, in place of all but the proofs
	HasScript                                 bool
	Script                                    string // in full, where the page has no part for scripts
}

// At is the story that has the events of this one.
func (s Story) At() string {
	if s.Same != "" {
		return s.Same
	}
	return s.ID
}

// A Proof is an anomaly and what proves it.
type Proof struct {
	Anomaly, Text, Avoided string
	Events                 []int
}

// A Sentence is a part of a story.
type Sentence struct {
	Event  int
	Text   string
	Proves bool
}

// brief escapes what has to be between tags.
var brief = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// HTML is the text, in which an apostrophe, of which there are thousands, is one.
func (s Sentence) HTML() template.HTML {
	return template.HTML(brief.Replace(s.Text))
}

// A Writer writes the file: the head first, then the stories one by one.
type Writer struct {
	w io.Writer
	t *template.Template
}

// parse parses what makes a file, and what begins each.
func parse(source string) (*template.Template, error) {
	return template.New("").Parse(top + differences + source)
}

// New begins a file.
func New(w io.Writer, h Head) (*Writer, error) {
	t, err := parse(source)
	if err != nil {
		return nil, err
	}
	p := &Writer{w, t}
	return p, t.ExecuteTemplate(w, "head", struct {
		Head
		Style    template.CSS
		Patterns template.HTML
	}{h, template.CSS(style + svg.Style), template.HTML(svg.Patterns)})
}

// Story writes a story.
func (p *Writer) Story(s Story) error { return p.t.ExecuteTemplate(p.w, "story", s) }

// Close writes the end.
func (p *Writer) Close() error {
	return p.t.ExecuteTemplate(p.w, "foot", code())
}

// code is the script of a file with stories.
// Only who reads the source needs its comments and how it is set.
func code() template.JS {
	var b strings.Builder
	for line := range strings.Lines(zoom + script) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			b.WriteString(line + "\n")
		}
	}
	return template.JS(b.String())
}
