package reports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/jsonscan"
	"github.com/lockfault/lockfault/internal/printable"
)

// A Cost is the measured cost of a strategy with a number of contenders for one lock, on one path
// from clients to servers.
type Cost struct {
	Strategy   string `json:"strategy"`
	Contenders int    `json:"contenders"`
	// Path is one of the Path constants.
	Path string `json:"path"`
	// PairsPerSecond is the rate at which all contenders together acquired and released the lock.
	// P50 and P99 are quantiles of the duration of such a pair, waiting included.
	PairsPerSecond float64       `json:"pairs_per_second"`
	P50            time.Duration `json:"p50_ns"`
	P99            time.Duration `json:"p99_ns"`
	// The following fields hold the smallest and the largest value of each quantile over the time
	// slices of the measurement. They are 0 if unknown.
	P50Least time.Duration `json:"p50_least_ns,omitempty"`
	P50Most  time.Duration `json:"p50_most_ns,omitempty"`
	P99Least time.Duration `json:"p99_least_ns,omitempty"`
	P99Most  time.Duration `json:"p99_most_ns,omitempty"`
	// Pairs counts the measured pairs, and Failures those that failed.
	Pairs    int `json:"pairs"`
	Failures int `json:"failures"`
	// Busiest is the share of pairs, from 0 to 1, of the contender with the most pairs.
	Busiest float64 `json:"busiest"`
	// OverDirect and OverHop are the ratios of the pairs on [PathDirect] and [PathHop] to the pairs
	// on this path, in the same rounds. They are 0 if unknown.
	OverDirect float64 `json:"over_direct,omitempty"`
	OverHop    float64 `json:"over_hop,omitempty"`
}

// The paths, in their order.
const (
	PathDirect   = "direct"   // the strategy alone, directly to the server
	PathHop      = "hop"      // through a link that does not inspect messages
	PathGate     = "gate"     // through the gate before a script has begun
	PathRecorded = "recorded" // through the gate of a script that has begun
)

func paths() []string { return []string{PathDirect, PathHop, PathGate, PathRecorded} }

// GateGoal is the largest acceptable factor by which the gate reduces the number of pairs.
const GateGoal = 1.3

// Costs holds the measurements of one run.
type Costs struct {
	Tool    string `json:"tool"` // always [Tool]
	Version string `json:"version"`
	// Server is the server's name and version. Platform describes the machine.
	Server   string `json:"server"`
	Platform string `json:"platform"`
	// Time is how long each cost was measured.
	Time     time.Duration `json:"time_ns"`
	Replicas int           `json:"replicas,omitempty"`
	// Interrupted reports whether the run was stopped, so that costs are missing.
	Interrupted bool   `json:"interrupted,omitempty"`
	List        []Cost `json:"costs"`
}

// ReadCosts reads the output of [Costs.JSON], and returns the costs on [PathDirect], which are
// those of the locks alone. A file without such costs is an error.
func ReadCosts(path string) ([]Cost, error) {
	text, err := input.Read(path, input.Costs)
	if err != nil {
		return nil, fmt.Errorf("reports: %w", err)
	}
	var all Costs
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("reports: %s: not what lockfault bench --format json writes: %w", path, jsonscan.Reason(err))
	}
	direct := slices.DeleteFunc(all.List, func(c Cost) bool { return c.Path != PathDirect })
	if all.Tool != Tool || len(direct) == 0 {
		return nil, fmt.Errorf("reports: %s: there are no costs in it: write it with lockfault bench --format json", path)
	}
	return direct, nil
}

// JSON writes the costs as JSON.
func (c Costs) JSON(w io.Writer) error {
	c.Tool = Tool
	e := json.NewEncoder(printable.NewJSONWriter(w))
	e.SetIndent("", "  ")
	return e.Encode(c)
}

// measurements holds the costs of a strategy with one number of contenders, by path.
type measurements struct {
	strategy string
	of       map[string]Cost
}

// panel holds all measurements with one number of contenders.
type panel struct {
	contenders int
	lots       []measurements
}

func (c Costs) panels() (list []panel) {
	for _, cost := range c.List {
		p := placed(&list, func(p panel) bool { return p.contenders == cost.Contenders }, panel{contenders: cost.Contenders})
		l := placed(&p.lots, func(l measurements) bool { return l.strategy == cost.Strategy }, measurements{cost.Strategy, map[string]Cost{}})
		l.of[cost.Path] = cost
	}
	return list
}

// head returns the headings of the columns of row.
func (p panel) head() []string {
	head := append([]string{count(p.contenders, "contender")}, paths()...)
	head = append(head, "p50", "p99", "gate p50", "gate p99", "gate × hop", "gate × direct", "recorded × direct")
	if p.contenders > 1 {
		head = append(head, "busiest")
	}
	return append(head, "failed")
}

// row returns a row of the table.
func (p panel) row(l measurements) []string {
	row := []string{l.strategy}
	failed := 0
	for _, path := range paths() {
		row = append(row, fmt.Sprintf("%.0f", l.of[path].PairsPerSecond))
		failed += l.of[path].Failures
	}
	direct, gate := l.of[PathDirect], l.of[PathGate]
	row = append(row, brief(direct.P50), brief(direct.P99), brief(gate.P50), brief(gate.P99),
		times(gate.OverHop), times(gate.OverDirect), times(l.of[PathRecorded].OverDirect))
	if p.contenders > 1 {
		row = append(row, fmt.Sprintf("%.0f %%", 100*direct.Busiest))
	}
	return append(row, fmt.Sprint(failed))
}

// ratios summarizes a ratio over all strategies that have it.
func (p panel) ratios(of func(measurements) float64) string {
	lots := slices.DeleteFunc(slices.Clone(p.lots), func(l measurements) bool { return of(l) == 0 })
	if len(lots) == 0 {
		return "nothing to compare"
	}
	slices.SortFunc(lots, func(a, b measurements) int { return cmp.Compare(of(a), of(b)) })
	worst := lots[len(lots)-1]
	within := 0
	for _, l := range lots {
		if of(l) <= GateGoal {
			within++
		}
	}
	return fmt.Sprintf("median %s, at most %s (%s), within %.1f in %d of %d",
		times(of(lots[(len(lots)-1)/2])), times(of(worst)), worst.strategy, GateGoal, within, len(lots))
}

// sums returns the summary of a panel, as lines.
func (p panel) sums() []string {
	who := "with " + count(p.contenders, "contender")
	return []string{
		who + ", the hop's pairs per second by the gate's: " + p.ratios(func(l measurements) float64 { return l.of[PathGate].OverHop }),
		who + ", the bare strategy's by the hop's: " + p.ratios(func(l measurements) float64 { return l.of[PathHop].OverDirect }),
		who + ", the bare strategy's by the gate's: " + p.ratios(func(l measurements) float64 { return l.of[PathGate].OverDirect }),
		who + ", the bare strategy's by those of a script that has begun: " + p.ratios(func(l measurements) float64 { return l.of[PathRecorded].OverDirect }),
	}
}

// Table writes a table for each number of contenders, for a terminal.
func (c Costs) Table(w io.Writer) error {
	b := newText(w)
	for _, p := range c.panels() {
		t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
		rows := [][]string{p.head()}
		for _, l := range p.lots {
			rows = append(rows, p.row(l))
		}
		for _, row := range rows {
			// All columns but the first are right-aligned.
			fmt.Fprintf(t, "%-*s\t%s\t\n", c.widest(), row[0], strings.Join(row[1:], "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		b.WriteByte('\n')
	}
	if c.Interrupted {
		b.WriteString("interrupted: not all is measured\n")
	}
	for _, p := range c.panels() {
		for _, line := range p.sums() {
			fmt.Fprintln(b, line)
		}
	}
	return b.Flush()
}

// widest returns the length of the longest name.
func (c Costs) widest() int {
	n := len("88 contenders")
	for _, cost := range c.List {
		n = max(n, len(cost.Strategy))
	}
	return n
}

// Markdown writes the costs as a Markdown page. The plot is the path of the plot's file, relative
// to the page; empty means no plot.
func (c Costs) Markdown(w io.Writer, plot string) error {
	b := newText(w)
	b.WriteString("# What the locks cost on real servers\n\n")
	fmt.Fprintf(b, "Written by `lockfault bench`, one run: %s, %s, %v for each path, in rounds in which each path gets its turn", escape(c.Server), escape(c.Platform), c.Time)
	if c.Replicas > 0 {
		fmt.Fprintf(b, "; each node has %s", count(c.Replicas, "replica"))
	}
	b.WriteString(".")
	if c.Interrupted {
		b.WriteString(" The run was interrupted: not all is measured.")
	}
	b.WriteString("\n\n")
	fmt.Fprintf(b, `A number under a path is how many times a second all contenders together acquired and released the one lock that they want; p50 and p99 are how long that
took each time, waiting included, without lockfault and through the gate. A ratio is by how many times fewer pairs there were in the same rounds.

- *%s*: the strategy as it is, straight to the server.
- *%s*: through a link that nobody looks into: another process that reads from one socket and writes to another. No toxics are in the way, here and below: a link gets
  them when a script asks for latency, bandwidth and the like.
- *%s*: through the same link with the gate in it, before a script has begun: each message is decided on, one request at a time is let into a server, nothing is recorded.
- *%s*: through the gate of a script that has begun, which is how scripts are played: each message is recorded too, and after each command that may have changed the lock's key,
  and before its answer goes on, the key is read, or a server of another kind asked whose the lock is: one more command of the server for each such command.
`, PathDirect, PathHop, PathGate, PathRecorded)
	for _, p := range c.panels() {
		fmt.Fprintf(b, "\n## %s\n\n", count(p.contenders, "contender"))
		if p.contenders > 1 {
			fmt.Fprintf(b, `Whoever has released the lock asks for it again at once, while with most strategies the others sleep between two attempts: the lock mostly
stays where it is. *busiest* is the share of the contender that got most pairs in a slice of time, straight to the server; %.0f %% would be fair. A strategy
that hands the lock over pays for each time.

`, 100/float64(p.contenders))
		}
		head := p.head()
		head[0] = "strategy"
		fmt.Fprintf(b, "| %s |\n|---|%s\n", strings.Join(head, " | "), strings.Repeat("---:|", len(head)-1))
		for _, l := range p.lots {
			fmt.Fprintf(b, "| %s |\n", strings.Join(each(p.row(l), escape), " | "))
		}
	}
	if plot != "" {
		fmt.Fprintf(b, "\n![pairs per second of each strategy on each path](%s)\n", (&url.URL{Path: plot}).EscapedPath())
	}
	b.WriteString("\n## What it comes to\n\n")
	for _, p := range c.panels() {
		for _, line := range p.sums() {
			fmt.Fprintf(b, "- %s\n", escape(line))
		}
	}
	return b.Flush()
}

// brief formats a duration with about 3 digits, and 0 as "-".
func brief(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= 100*time.Millisecond:
		return fmt.Sprintf("%.0f ms", float64(d)/1e6)
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d == 0:
		return "-"
	}
	return fmt.Sprintf("%.0f µs", float64(d)/1e3)
}

// times formats a ratio, and 0 as "-".
func times(ratio float64) string {
	if ratio == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", ratio)
}
