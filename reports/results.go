// Package reports turns results and histories into reports: the comparison as a terminal table,
// Markdown, HTML and JSON, and the story of one cell.
//
// Cells come in as they finish. A directory with results.json, report.md and index.html goes out,
// and everything in it can be drawn again from results.json and the histories alone. From this
// module the package imports only checker, its own sub-packages that draw, and a few packages of
// internal. The package never runs a cell and may not depend on a world.
//
// Files refer only to files of the same floor or a lower one, from bottom to top: text (text.go);
// results and histories (results.go, read.go, history.go); the journal of a run (journal.go, mark.go);
// the story of a cell as rows and as a diagram (story.go, diagram.go); comparisons of cells
// (matrix.go, aggregate.go, diff.go) and the input of a format (source.go); one file for each format,
// which refers to no other format (html.go, markdown.go, junit.go …); their list (formats.go); and the
// directory of a report (report.go, files.go).
package reports

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
)

// Tool is the value of the field "tool" of results.json.
const Tool = "lockfault"

// Names of the files and directories of a report. Histories are below [HistoryDir].
const (
	ResultsFile  = "results.json"
	MarkdownFile = "report.md"
	HTMLFile     = "index.html"
	HistoryDir   = "histories"
)

// A Verdict is the short answer of a [Cell].
type Verdict string

// The verdicts. Only Held means that no anomaly was found. An undecided cell (Unknown or Error)
// never counts as Held.
const (
	Held          Verdict = "held"
	Violated      Verdict = "violated"
	Unknown       Verdict = "unknown"
	Error         Verdict = "error"
	NotApplicable Verdict = "not-applicable"
)

// A Head holds the fields of results.json that describe the whole run.
type Head struct {
	Tool    string `json:"tool"` // always [Tool]
	Version string `json:"version"`
	// World names the worlds in which the cells ran, separated by commas.
	World string `json:"world"`
	Seed  uint64 `json:"seed"`
	// TTL is the lease that replaced the lease of every script. 0 means that no lease was replaced.
	TTL time.Duration `json:"ttl_ns,omitempty"`
	// Costs holds the costs of the strategies directly on real servers, if they were measured: see
	// [ReadCosts].
	Costs []Cost `json:"costs,omitempty"`
	// Interrupted reports whether the run was stopped, so that cells are missing.
	Interrupted bool `json:"interrupted,omitempty"`
	// Strategies and Scripts describe the strategies and scenarios of the run.
	Strategies []StrategyInfo `json:"strategies,omitempty"`
	Scripts    []Script       `json:"scripts,omitempty"`
	// Command is the command line that repeats the run, one word an element. Flags holds the flags
	// of Command that are also needed to repeat a single cell.
	Command []string `json:"command,omitempty"`
	Flags   []string `json:"flags,omitempty"`
	// Machine describes the machine on which the cells ran.
	Machine string `json:"machine,omitempty"`
}

// A StrategyInfo describes a strategy in results.json.
type StrategyInfo struct {
	Name    string `json:"name"`
	Summary string `json:"summary,omitempty"`
	Service string `json:"service,omitempty"` // service that the lock uses, if not Redis
	Nodes   int    `json:"nodes,omitempty"`
	Renews  bool   `json:"renews,omitempty"` // whether the lock renews its lease by itself
	// Flags holds the flags that select the strategy in a command, if it is a user's program.
	Flags []string `json:"flags,omitempty"`
}

// A Script holds the text of a scenario as it was run.
type Script struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"` // path of a user's script; empty for a built-in script
	Text string `json:"text"`
	Hash string `json:"hash"` // first 6 bytes of the SHA-256 of Text, in hexadecimal
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

// A Cell holds the result of one strategy under one scenario in one world, as in results.json.
type Cell struct {
	World    string  `json:"world"`
	Strategy string  `json:"strategy"`
	Scenario string  `json:"scenario"`
	Verdict  Verdict `json:"verdict"`
	// Anomalies and Expected are in the order of [checker.Anomalies].
	Anomalies []checker.Anomaly `json:"anomalies"`
	Expected  []checker.Anomaly `json:"expected"`
	// AsExpected reports whether a decided cell showed exactly the Expected anomalies or, if AtMost
	// is true, a subset of them. [Cell.Settle] sets AsExpected. A not-applicable cell is always as
	// expected, and an undecided one never is.
	AsExpected bool `json:"as_expected"`
	// AtMost reports whether the cell may show fewer anomalies than Expected.
	AtMost bool `json:"at_most,omitempty"`
	// ExpectedBy names the source of Expected: [ByStrategy], [ByFile], [ByClass], or empty for the
	// script.
	ExpectedBy string `json:"expected_by,omitempty"`
	// Drawn holds the anomalies that the cell shows or not by chance, whether they are expected or
	// not. Chance is the reason that the strategy gives, as a clause that follows "since".
	Drawn  []checker.Anomaly `json:"drawn,omitempty"`
	Chance string            `json:"chance,omitempty"`
	// Varies is the strategy's reason why another run with the same seed may order the events of
	// one instant differently. The verdict is the same then, but the history may differ. Empty
	// means that the strategy gives no such reason.
	Varies string `json:"varies,omitempty"`
	// Better holds the Expected anomalies, without the Drawn ones, that the cell did not show
	// although AtMost makes their absence as expected, and although its lock did all that the
	// Reference did.
	Better []checker.Anomaly `json:"better,omitempty"`
	// NotBetter holds those that a cell did not show whose lock did less. NotBetter is nil for a
	// cell that is better or as expected.
	NotBetter *NotBetter `json:"not_better,omitempty"`
	// Reference is what the reference lock of the class did under the scenario; nil if it was not
	// played, as for a cell that shows all that is expected.
	Reference *ReferenceLock `json:"reference,omitempty"`
	// AgreesWithSim reports whether the cell showed the same anomalies as in [Reference].
	// AgreesWithSim is nil if the cell did not run there, or if either of the two cells is not
	// decided.
	AgreesWithSim *bool `json:"agrees_with_sim,omitempty"`
	// Linearizable reports whether the history has a legal order under a lock with the guarantees
	// of this one. Linearizable is false if the cell was not decided.
	Linearizable bool `json:"linearizable"`
	// Conflict explains why the history of a decided cell has no legal order. Conflict is nil if
	// the history has a legal order.
	Conflict  *checker.Conflict `json:"conflict,omitempty"`
	Witnesses []checker.Witness `json:"witnesses"`
	// Findings holds the outcome of each anomaly of a decided cell, in the order of Anomalies: a known
	// limitation of the lock's class, an avoidable weakness or a bug.
	Findings []leases.Finding `json:"findings,omitempty"`
	// Class is the class of locks by which Findings judges.
	Class leases.Class `json:"class,omitempty"`
	// Unjudged explains why the server-side anomalies were not checked: the keys do not show which
	// client owns the lock. Unjudged is nil if they were checked.
	Unjudged *checker.Ambiguity `json:"unjudged,omitempty"`
	// Virtual is the time that passed in the world; Elapsed is the time that passed outside it.
	Virtual time.Duration `json:"virtual_ns"`
	Elapsed time.Duration `json:"elapsed_ns"`
	// RoundTrips holds the smallest number of round trips of a successful operation.
	RoundTrips map[checker.Op]int `json:"round_trips"`
	// Commands holds the smallest number of commands that a successful operation sent and that
	// servers executed.
	Commands map[checker.Op]int `json:"commands,omitempty"`
	// Measures holds the readings of the script's stopwatches, in nanoseconds.
	Measures map[string]time.Duration `json:"measures,omitempty"`
	// MetNothing holds the lines of the script whose gate command matched no message or whose
	// cancel matched no operation, in the order of execution. Such a line had no effect, so the
	// verdict does not cover it. Only cells that held or were violated keep the list.
	MetNothing []MetNothing `json:"met_nothing,omitempty"`
	// Reason explains the verdicts not-applicable, unknown and error. The reason of an error may
	// end with a stack trace.
	Reason string `json:"reason,omitempty"`
	// History is the path of the cell's history, relative to the report's directory. History is
	// empty if the cell has no history.
	History string `json:"history,omitempty"`
	// Lease is the lease of the cell. Reruns counts the earlier runs of the cell on which the
	// machine was too slow for a verdict.
	Lease  time.Duration `json:"lease_ns,omitempty"`
	Reruns int           `json:"reruns,omitempty"`
	Late   []string      `json:"late,omitempty"` // why, for each rerun
	// Nodes is the number of nodes that the lock used. Validity and Tokens report whether the lock
	// returned the end of a hold's validity, and fencing tokens.
	Nodes    int  `json:"nodes,omitempty"`
	Validity bool `json:"validity,omitempty"`
	Tokens   bool `json:"tokens,omitempty"`
	// Leak is a goroutine of the lock that still ran after its client had ended: where it waits, and
	// which function started it. Leaks are seen in virtual time only.
	Leak string `json:"leak,omitempty"`
	// Together is how long two clients believed at the same time that they held the lock.
	Together time.Duration `json:"together_ns,omitempty"`
	Acquires
	// FreeWaits says how long clients waited although the lock was free; nil if no client did.
	FreeWaits *FreeWaits `json:"free_waits,omitempty"`
	// Twin is the result of the cell in [Reference] at the cell's Lease, if that lease is longer
	// than the run's. AgreesWithSim compares the cell with Twin then.
	Twin *ReferenceCell `json:"twin,omitempty"`
}

// FreeWaits summarizes the times in which a client waited for a lock that was free. Undisturbed is the longest
// in which no fault lasted.
type FreeWaits struct {
	Count       int           `json:"count"`
	Half        time.Duration `json:"half_ns"`        // half of them are not longer
	NineTenths  time.Duration `json:"nine_tenths_ns"` // nine tenths are not longer
	Most        time.Duration `json:"most_ns"`
	Undisturbed time.Duration `json:"undisturbed_ns"`
}

func freeWaits(h checker.History) *FreeWaits {
	var list []time.Duration
	for _, w := range checker.FreeWaits(h) {
		list = append(list, w.To-w.From)
	}
	if len(list) == 0 {
		return nil
	}
	slices.Sort(list)
	longest := leases.LongestWait(h)
	at := func(tenths int) time.Duration { return list[(len(list)*tenths+9)/10-1] }
	return &FreeWaits{Count: len(list), Half: at(5), NineTenths: at(9), Most: at(10), Undisturbed: longest.To - longest.From}
}

// LongWait returns a clause about the longest time in which a client waited for a free lock without any fault, if
// that is more than a third of the lease; otherwise "".
func (c Cell) LongWait() string {
	if c.FreeWaits == nil || c.FreeWaits.Undisturbed <= c.Lease/3 {
		return ""
	}
	return fmt.Sprintf("a client waited %v for a free lock, of a lease of %v, and no fault lasted: ask more often, or let the release notify who waits", c.FreeWaits.Undisturbed.Round(time.Millisecond), c.Lease)
}

// LeakRemedy says what to do about a [Cell.Leak].
const LeakRemedy = "let it end at the release and, for a client that leaves while it holds, in the lock's Close method (locktest: Funcs.Close)"

// leakText returns a clause about the cell's leak; empty if it has none.
func (c Cell) leakText() string {
	if c.Leak == "" {
		return ""
	}
	return "a goroutine outlives its client: " + c.Leak
}

// Sources of the expectation of a cell, other than its script.
const (
	ByStrategy = "strategy" // the strategy itself
	ByFile     = "file"     // a user's file
	ByClass    = "class"    // the class of the lock: see Findings
)

// MetNothing describes a line of a script whose gate command matched no message, or whose cancel
// matched no operation.
type MetNothing struct {
	Line int    `json:"line"`
	Text string `json:"text"`
	// OrNone reports whether the script allows the line to match nothing. The verdict covers the
	// whole script then.
	OrNone bool `json:"or_none,omitempty"`
}

// text returns a sentence about the line, which may be followed by a colon. The caller formats the
// order.
func (m MetNothing) text(order string) string {
	text := fmt.Sprintf("line %d, %s, met nothing", m.Line, order)
	if m.OrNone {
		text += ", as it may"
	}
	return text
}

// A ReferenceCell holds the result of a cell in [Reference].
type ReferenceCell struct {
	Verdict   Verdict           `json:"verdict"`
	Anomalies []checker.Anomaly `json:"anomalies"`
}

// Derive sets the fields that follow from the cell's history, from the checker's verdict on it and
// from what is declared of the lock. The cell's Verdict must be set before: only for a decided cell
// does Derive compute Findings, Linearizable and Conflict. The witness of a bug is that of the
// occurrence that no fault excuses.
func (c *Cell) Derive(v checker.Verdict, h checker.History, lock leases.Lock) {
	c.Anomalies, c.Witnesses, c.Unjudged = v.Anomalies(), slices.Clone(v.Witnesses), v.Unjudged
	c.Findings, c.Class = nil, ""
	if len(v.Witnesses) > 0 && (c.Verdict == Held || c.Verdict == Violated) {
		c.Findings = leases.Judge(h, lock)
		c.Class, _ = leases.ClassOf(h, lock)
		for i, f := range c.Findings { // in the order of the witnesses
			if f.Outcome == leases.Bug {
				c.Witnesses[i] = f.Witness
			}
		}
	}
	holds := checker.Holds(h)
	c.FreeWaits, c.Acquires = freeWaits(h), acquiresOf(h, holds)
	c.Nodes, c.Lease, c.Together = len(h.Meta.Nodes), h.Meta.TTL, Together(holds)
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

// Settle orders the cell's lists, and sets AsExpected, Better and NotBetter from the lists, AtMost,
// the Reference and the verdict. Settle removes MetNothing from a cell that neither held nor was violated.
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
	c.Better, c.NotBetter = nil, nil
	if c.Verdict != Held && c.Verdict != Violated {
		c.MetNothing = nil
	}
	switch c.Verdict {
	case Held, Violated:
		missing, extra := c.missing(), c.Extra()
		c.AsExpected = len(extra) == 0 && (len(missing) == 0 || c.AtMost)
		if missing = without(missing, c.Drawn); c.AsExpected && len(missing) > 0 {
			if c.NotBetter = c.notBetter(missing); c.NotBetter == nil {
				c.Better = missing
			}
		}
	case NotApplicable:
		c.AsExpected = true
	default:
		c.AsExpected = false
	}
}

// ordered returns the anomalies without repetition in the order of [checker.Anomalies]. The result
// is never nil, since JSON would show nil as null.
func ordered(list []checker.Anomaly) []checker.Anomaly {
	sorted := []checker.Anomaly{}
	for _, a := range checker.Anomalies() {
		if slices.Contains(list, a) {
			sorted = append(sorted, a)
		}
	}
	return sorted
}

// Decided reports whether the verdict is neither [Unknown] nor [Error]. A not-applicable cell
// counts as decided.
func (c Cell) Decided() bool { return c.Verdict != Unknown && c.Verdict != Error }

// Untested reports whether a line of the script that must have an effect matched nothing.
func (c Cell) Untested() bool {
	return slices.ContainsFunc(c.MetNothing, func(m MetNothing) bool { return !m.OrNone })
}

// limited reports whether an anomaly of a cell that is judged by its class is a known limitation.
func (c Cell) limited(a checker.Anomaly) bool {
	return c.ExpectedBy == ByClass && slices.ContainsFunc(c.Findings, func(f leases.Finding) bool { return f.Anomaly == a && f.Outcome == leases.Limitation })
}

// judgement returns the outcome of an anomaly with its reason, as in "Known limitation: A paused for
// longer than the TTL."; empty if the cell has no such finding.
func (c Cell) judgement(a checker.Anomaly) string {
	for _, f := range c.Findings {
		if f.Anomaly == a && f.Outcome.Valid() {
			words := f.Outcome.Words()
			return strings.ToUpper(words[:1]) + words[1:] + ": " + f.Reason + "."
		}
	}
	return ""
}

// Difference describes in a few words, without a stack trace, how the cell differs from its
// expectation. Difference returns "" for a cell that is as expected.
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
	extra := c.Extra()
	for i, f := range c.Findings {
		if c.ExpectedBy != ByClass || f.Outcome != leases.Bug || !slices.Contains(extra, f.Anomaly) {
			continue
		}
		same := []checker.Anomaly{f.Anomaly} // one reason is told once
		for _, other := range c.Findings[i+1:] {
			if other.Outcome == f.Outcome && other.Reason == f.Reason && slices.Contains(extra, other.Anomaly) {
				same = append(same, other.Anomaly)
			}
		}
		parts = append(parts, fmt.Sprintf("%s: %s: %s", f.Outcome.Words(), names(same), f.Reason))
		extra = without(extra, same)
	}
	if len(extra) > 0 {
		parts = append(parts, "not expected: "+names(extra))
	}
	return strings.Join(parts, "; ")
}

// missing returns the expected anomalies that were checked but not found.
func (c Cell) missing() []checker.Anomaly {
	missing := without(c.Expected, c.Anomalies)
	if c.Unjudged != nil {
		missing = without(missing, checker.ServerSide())
	}
	return missing
}

// Extra returns the anomalies that were found but not expected. In an unjudged cell an expected
// ghost or stuck-lock also excuses unavailable: a client that is blocked by its own leftover key
// shows as nothing else if the key's owner is unknown.
func (c Cell) Extra() []checker.Anomaly {
	extra := without(c.Anomalies, c.Expected)
	if c.Unjudged != nil && (slices.Contains(c.Expected, checker.Ghost) || slices.Contains(c.Expected, checker.StuckLock)) {
		extra = without(extra, []checker.Anomaly{checker.Unavailable})
	}
	return extra
}

// Reservation describes what the cell's verdict does not cover, and why. Reservation returns "" if
// the verdict covers everything or the cell is undecided.
func (c Cell) Reservation() string {
	if c.Unjudged == nil || !c.Decided() {
		return ""
	}
	return "judged by what clients were told alone: " + c.Unjudged.Message
}

// Improvement lists in a few words the allowed anomalies that the cell did not show. Improvement
// returns "" if all of them showed.
func (c Cell) Improvement() string {
	return improvement(c) + lesser(c)
}

func improvement(c Cell) string {
	if len(c.Better) == 0 {
		return ""
	}
	return "better: no " + names(c.Better)
}

func lesser(c Cell) string {
	if c.NotBetter == nil {
		return ""
	}
	return fmt.Sprintf("%s: no %s, but %s", c.NotBetter.Outcome, names(c.NotBetter.Anomalies), c.NotBetter.Reason)
}

// ByChance lists the expected anomalies that the cell shows only by chance, with the reason.
// ByChance returns "" if the cell has none, is not applicable or differs from its expectation.
func (c Cell) ByChance() string {
	drawn := both(c.Drawn, c.Expected)
	if len(drawn) == 0 || !c.Decided() || c.Verdict == NotApplicable || !c.AsExpected {
		return ""
	}
	return fmt.Sprintf("by chance: at most %s, since %s", names(drawn), c.Chance)
}

// Unordered explains why the acquires and releases of the cell have no legal order, if no overlap
// explains it. A lock that held may also leave clients with a hold that they know has ended.
// Unordered returns "" for a cell without a conflict and for a cell that shows an overlap.
func (c Cell) Unordered() string {
	if c.Conflict == nil || slices.Contains(c.Anomalies, checker.Overlap) {
		return ""
	}
	return c.Conflict.Message
}

// both returns the elements of a that are also in b, in the order of a.
func both(a, b []checker.Anomaly) []checker.Anomaly { return without(a, without(a, b)) }

// without returns the elements of a that are not in b.
func without(a, b []checker.Anomaly) []checker.Anomaly {
	return slices.DeleteFunc(slices.Clone(a), func(x checker.Anomaly) bool { return slices.Contains(b, x) })
}

// names lists anomalies for a sentence.
func names(list []checker.Anomaly) string {
	return strings.Join(each(list, func(a checker.Anomaly) string { return string(a) }), ", ")
}

func decided(v Verdict) bool { return v == Held || v == Violated }

// Reference is the world with which the other worlds are compared. Reference is fast and
// repeatable, but accurate only as far as the other worlds agree with it.
const Reference = "sim"

// cellSays describes the result of a cell.
func cellSays(c Cell) string {
	switch {
	case !c.Decided():
		return c.Difference()
	case len(c.Anomalies) == 0:
		return string(Held)
	default:
		return names(c.Anomalies)
	}
}

// A CellName holds the names that identify a cell in a report.
type CellName struct{ World, Strategy, Scenario string }

func (n CellName) String() string {
	return fmt.Sprintf("%q under %q in %q", n.Strategy, n.Scenario, n.World)
}

// WorkDir is the directory, inside the report's, where a run keeps its finished cells. The
// directory exists until the run is complete.
const WorkDir = ".lockfault"

// Together returns the total time in which at least two of the holds, given by their begin, lasted.
func Together(holds []checker.Hold) (all time.Duration) {
	end := time.Duration(0)     // end of the counted time
	longest := time.Duration(0) // latest end of a hold so far
	for i, b := range holds {   // by start; holds of a client are disjoint
		if from, to := max(b.Start, end), min(b.End, longest); i > 0 && to > from { // count overlaps of 3 once
			all += to - from
			end = to
		}
		longest = max(longest, b.End)
	}
	return all
}

// in names the world of a cell. in returns "" if there is only one world.
func in(c Cell, worlds []string) string {
	if len(worlds) < 2 {
		return ""
	}
	return " in " + c.World
}

// generator is a tag near the beginning of every page that lockfault writes.
const generator = `<meta name="generator" content="lockfault">`
