// Package reports turns results and histories into something to read: the
// comparison as a table for the terminal, as Markdown and as JSON, and the
// story of one cell.
//
// Cells come in as they finish; a directory with results.json, report.md and index.html
// goes out, and everything here can be drawn again from results.json and the
// histories alone. Of this module the package imports checker, its own sub-packages that draw, and a few
// of internal: it never touches a world.
package reports

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
)

// Tool is the name under which results.json goes.
const Tool = "lockfault"

// The files of a report's directory, with histories below [HistoryDir].
const (
	ResultsFile  = "results.json"
	MarkdownFile = "report.md"
	HTMLFile     = "index.html"
	HistoryDir   = "histories"
)

// A Verdict is the short answer of a [Cell].
type Verdict string

// The verdicts. Only Held says that nothing was found wrong; a cell that was
// not decided never passes for held.
const (
	Held          Verdict = "held"
	Violated      Verdict = "violated"
	Unknown       Verdict = "unknown"
	Error         Verdict = "error"
	NotApplicable Verdict = "not-applicable"
)

// A Head is what results.json says about the whole run.
type Head struct {
	Tool    string `json:"tool"` // always [Tool]
	Version string `json:"version"`
	// World is where the cells were played: one name, or several with commas
	// between them.
	World string `json:"world"`
	Seed  uint64 `json:"seed"`
	// TTL replaced the lease of every script; 0 means that it did not.
	TTL time.Duration `json:"ttl_ns,omitempty"`
	// Costs are what the strategies cost straight on real servers, if that was
	// measured: see [ReadCosts].
	Costs []Cost `json:"costs,omitempty"`
	// Interrupted says that the run was stopped: cells are missing.
	Interrupted bool `json:"interrupted,omitempty"`
	// Strategies and Scripts are what was played.
	Strategies []StrategyInfo `json:"strategies,omitempty"`
	Scripts    []Script       `json:"scripts,omitempty"`
	// Command is what to type to have it all played again, in words, and Flags are
	// those of its flags that each single cell needs for that.
	Command []string `json:"command,omitempty"`
	Flags   []string `json:"flags,omitempty"`
	// Machine is what it was played on.
	Machine string `json:"machine,omitempty"`
}

// A StrategyInfo is what results.json says of a strategy.
type StrategyInfo struct {
	Name    string `json:"name"`
	Summary string `json:"summary,omitempty"`
	Service string `json:"service,omitempty"` // that it runs on, if not Redis
	Nodes   int    `json:"nodes,omitempty"`
	Renews  bool   `json:"renews,omitempty"` // its lease is renewed without its user
	// Flags name it to a command, if it is a program of the user's.
	Flags []string `json:"flags,omitempty"`
}

// A Script is the text of a scenario, as it was played.
type Script struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"` // of a user's own
	Text string `json:"text"`
	Hash string `json:"hash"` // the beginning of its SHA-256
}

// NewScript returns a script with its hash.
func NewScript(name, file, text string) Script {
	return Script{name, file, text, fmt.Sprintf("%.6x", sha256.Sum256([]byte(text)))}
}

// hashOf returns a hash of several scripts.
func hashOf(list []Script) string {
	sum := sha256.New()
	for _, s := range list {
		fmt.Fprintf(sum, "%d %s\n%s", len(s.Text), s.Name, s.Text)
	}
	return fmt.Sprintf("%.6x", sum.Sum(nil))
}

// A Cell is what results.json says about one strategy under one scenario in one
// world.
type Cell struct {
	World    string  `json:"world"`
	Strategy string  `json:"strategy"`
	Scenario string  `json:"scenario"`
	Verdict  Verdict `json:"verdict"`
	// Anomalies and Expected are in the order of [checker.Anomalies].
	Anomalies []checker.Anomaly `json:"anomalies"`
	Expected  []checker.Anomaly `json:"expected"`
	// AsExpected is whether the cell was decided and Anomalies and Expected are
	// the same, or if AtMost says so, Anomalies are among Expected.
	AsExpected bool `json:"as_expected"`
	// AtMost says that the cell may show fewer anomalies than Expected.
	AtMost bool `json:"at_most,omitempty"`
	// ExpectedBy is who says what is expected: nobody but the script if it is
	// empty, [ByStrategy] or [ByFile].
	ExpectedBy string `json:"expected_by,omitempty"`
	// Drawn are those of which it is chance whether the cell shows them, whatever is expected, and Chance says why, after
	// "since", where the strategy says so.
	Drawn  []checker.Anomaly `json:"drawn,omitempty"`
	Chance string            `json:"chance,omitempty"`
	// Varies says why another run of the same seed may differ in the order of what
	// happens at one instant, where the strategy says so: the verdict is the same
	// then, and the history need not be.
	Varies string `json:"varies,omitempty"`
	// Better are the anomalies among Expected, and not Drawn, that did not show, where AtMost
	// says that this is as expected.
	Better []checker.Anomaly `json:"better,omitempty"`
	// AgreesWithSim is whether the cell showed the same anomalies as in
	// [Reference]; nil where that was not played, or one of the two has no
	// answer.
	AgreesWithSim *bool `json:"agrees_with_sim,omitempty"`
	// Linearizable is whether what clients were told has a legal order under a lock that
	// does what this one promises; false where the cell was not decided.
	Linearizable bool `json:"linearizable"`
	// Conflict is why they have no legal order, in a cell that was decided.
	Conflict  *checker.Conflict `json:"conflict,omitempty"`
	Witnesses []checker.Witness `json:"witnesses"`
	// Unjudged says why the anomalies that are read off servers were not looked
	// for, where the keys don't tell whose the lock is.
	Unjudged *checker.Ambiguity `json:"unjudged,omitempty"`
	// Virtual is the time that passed in the world, Elapsed outside.
	Virtual time.Duration `json:"virtual_ns"`
	Elapsed time.Duration `json:"elapsed_ns"`
	// RoundTrips is the smallest number of round trips that a success of the
	// operation took.
	RoundTrips map[checker.Op]int `json:"round_trips"`
	// Commands is the smallest number of commands that a success of the operation sent, and servers executed.
	Commands map[checker.Op]int `json:"commands,omitempty"`
	// Measures are the readings of the script's stopwatches, in nanoseconds.
	Measures map[string]time.Duration `json:"measures,omitempty"`
	// MetNothing are the lines of the script whose order to the gate met no
	// message, or whose cancel met no operation, in the order in which they were played: what they were to do was
	// not done, and the verdict says nothing about it. Only where there is one.
	MetNothing []MetNothing `json:"met_nothing,omitempty"`
	// Reason says why, where the verdict is not-applicable, unknown or error;
	// for an error it may go on with a stack.
	Reason string `json:"reason,omitempty"`
	// History is the path of the cell's history below the report's
	// directory; empty if there is none.
	History string `json:"history,omitempty"`
	// Lease is how long the lease was, Reruns how often the cell was played
	// before, when the machine was too slow for a verdict.
	Lease  time.Duration `json:"lease_ns,omitempty"`
	Reruns int           `json:"reruns,omitempty"`
	Late   []string      `json:"late,omitempty"` // why, each time
	// Nodes is on how many nodes the lock was. Validity and Tokens are whether it said
	// until when a hold is valid, and handed out fencing tokens.
	Nodes    int  `json:"nodes,omitempty"`
	Validity bool `json:"validity,omitempty"`
	Tokens   bool `json:"tokens,omitempty"`
	// Together is how long two clients believed at once that they held the lock.
	Together time.Duration `json:"together_ns,omitempty"`
	// Twin is what the cell showed in [Reference] at that lease, where it is
	// a longer one than the run's: AgreesWithSim is about that then.
	Twin *ReferenceCell `json:"twin,omitempty"`
}

// Who says what is expected of a cell, in place of the script.
const (
	ByStrategy = "strategy" // the strategy, of itself
	ByFile     = "file"     // a user's file
)

// MetNothing is a line of a script whose order to the gate met no message, or whose
// cancel met no operation.
type MetNothing struct {
	Line int    `json:"line"`
	Text string `json:"text"`
	// OrNone is whether the script says that there may be none: the verdict is
	// about the whole script then.
	OrNone bool `json:"or_none,omitempty"`
}

// text tells it, the order in the form that is given. What follows can be joined
// by a colon.
func (m MetNothing) text(order string) string {
	text := fmt.Sprintf("line %d, %s, met nothing", m.Line, order)
	if m.OrNone {
		text += ", as it may"
	}
	return text
}

// A ReferenceCell is a cell as it was played in [Reference].
type ReferenceCell struct {
	Verdict   Verdict           `json:"verdict"`
	Anomalies []checker.Anomaly `json:"anomalies"`
}

// Derive puts into the cell what its history tells, and what the checker says of that: all but
// whether it was decided, which its verdict says before.
func (c *Cell) Derive(v checker.Verdict, h checker.History) {
	c.Anomalies, c.Witnesses, c.Unjudged = v.Anomalies(), v.Witnesses, v.Unjudged
	c.Nodes, c.Lease, c.Together = len(h.Meta.Nodes), h.Meta.TTL, Together(h)
	c.Commands = commands(h)
	c.Validity, c.Tokens = false, false
	for _, e := range h.Events {
		c.Validity = c.Validity || e.Kind == checker.Return && e.Until > 0
		c.Tokens = c.Tokens || e.Kind == checker.Return && e.Token != 0
	}
	c.Conflict, c.Linearizable = nil, false
	if decided(c.Verdict) {
		c.Conflict = checker.Linearize(h)
		c.Linearizable = c.Conflict == nil
	}
}

// Settle puts the cell's lists into order, and decides AsExpected and Better from
// them, AtMost and the verdict.
func (c *Cell) Settle() {
	c.Anomalies, c.Expected = ordered(c.Anomalies), ordered(c.Expected)
	if c.Twin != nil {
		c.Twin.Anomalies = ordered(c.Twin.Anomalies)
	}
	if c.Witnesses == nil {
		c.Witnesses = []checker.Witness{}
	}
	if c.RoundTrips == nil {
		c.RoundTrips = map[checker.Op]int{}
	}
	c.Better = nil
	if c.Verdict != Held && c.Verdict != Violated {
		c.MetNothing = nil
	}
	switch c.Verdict {
	case Held, Violated:
		missing, extra := c.missing(), c.Extra()
		c.AsExpected = len(extra) == 0 && (len(missing) == 0 || c.AtMost)
		if missing = without(missing, c.Drawn); c.AsExpected && len(missing) > 0 {
			c.Better = missing
		}
	case NotApplicable:
		c.AsExpected = true
	default:
		c.AsExpected = false
	}
}

// ordered returns the anomalies without repetition in the order of
// [checker.Anomalies], and never nil, which JSON would show as null.
func ordered(list []checker.Anomaly) []checker.Anomaly {
	sorted := []checker.Anomaly{}
	for _, a := range checker.Anomalies() {
		if slices.Contains(list, a) {
			sorted = append(sorted, a)
		}
	}
	return sorted
}

// Decided reports whether the cell has an answer.
func (c Cell) Decided() bool { return c.Verdict != Unknown && c.Verdict != Error }

// Untested reports whether something that the script meant to be done was not,
// because nothing came that it could be done to.
func (c Cell) Untested() bool {
	return slices.ContainsFunc(c.MetNothing, func(m MetNothing) bool { return !m.OrNone })
}

// Difference says in a few words, without a stack, how the cell differs from
// what was expected of it; it is empty if it does not.
func (c Cell) Difference() string {
	if c.AsExpected {
		return ""
	}
	if !c.Decided() {
		reason, _, _ := strings.Cut(c.Reason, "\n")
		return fmt.Sprintf("%s: %s", c.Verdict, reason)
	}
	var parts []string
	if missing := c.missing(); len(missing) > 0 && !c.AtMost {
		parts = append(parts, "missing: "+names(missing))
	}
	if extra := c.Extra(); len(extra) > 0 {
		parts = append(parts, "not expected: "+names(extra))
	}
	return strings.Join(parts, "; ")
}

// missing returns the anomalies that were looked for, expected and not found.
func (c Cell) missing() []checker.Anomaly {
	missing := without(c.Expected, c.Anomalies)
	if c.Unjudged != nil {
		missing = without(missing, checker.ServerSide())
	}
	return missing
}

// Extra returns the anomalies that were found and not expected. A client that its own
// key keeps from the lock leaves a ghost or a stuck-lock behind, and where nobody can
// tell whose the key is all that shows of either is that the lock was unavailable.
func (c Cell) Extra() []checker.Anomaly {
	extra := without(c.Anomalies, c.Expected)
	if c.Unjudged != nil && (slices.Contains(c.Expected, checker.Ghost) || slices.Contains(c.Expected, checker.StuckLock)) {
		extra = without(extra, []checker.Anomaly{checker.Unavailable})
	}
	return extra
}

// Reservation says what the cell's verdict leaves out, and why; it is empty if
// that is nothing.
func (c Cell) Reservation() string {
	if c.Unjudged == nil || !c.Decided() {
		return ""
	}
	return "judged by what clients were told alone: " + c.Unjudged.Message
}

// Improvement says in a few words what the cell did not show although it might
// have; it is empty if there is nothing.
func (c Cell) Improvement() string {
	if len(c.Better) == 0 {
		return ""
	}
	return "better: no " + names(c.Better)
}

// ByChance says what of that which is expected it is chance whether the cell shows, and why; it is empty where that is nothing,
// or something shows that is not expected.
func (c Cell) ByChance() string {
	drawn := both(c.Drawn, c.Expected)
	if len(drawn) == 0 || !c.Decided() || c.Verdict == NotApplicable || !c.AsExpected {
		return ""
	}
	return fmt.Sprintf("by chance: at most %s, since %s", names(drawn), c.Chance)
}

// Unordered says why the acquires and releases of the cell have no legal order,
// where no overlap says it: a lock that held, too, may leave clients with a hold
// that they know to be over. It is empty where there is nothing to explain.
func (c Cell) Unordered() string {
	if c.Conflict == nil || slices.Contains(c.Anomalies, checker.Overlap) {
		return ""
	}
	return c.Conflict.Message
}

// both returns those of a that are in b, too, in the order of a.
func both(a, b []checker.Anomaly) []checker.Anomaly { return without(a, without(a, b)) }

// without returns what is in a but not in b.
func without(a, b []checker.Anomaly) []checker.Anomaly {
	return slices.DeleteFunc(slices.Clone(a), func(x checker.Anomaly) bool { return slices.Contains(b, x) })
}

// names lists anomalies for a sentence.
func names(list []checker.Anomaly) string {
	words := make([]string, len(list))
	for i, a := range list {
		words[i] = string(a)
	}
	return strings.Join(words, ", ")
}
