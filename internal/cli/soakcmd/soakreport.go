package soakcmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/search"
	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/internal/soak"
	"github.com/lockfault/lockfault/internal/version"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

// soakFile is the name of the file with the results of a soak.
const soakFile = "soak.json"

// soakReport holds the results of a soak.
type soakReport struct {
	Tool        string        `json:"tool"`
	Version     string        `json:"version"`
	Plan        soakPlan      `json:"plan"`
	Interrupted bool          `json:"interrupted,omitempty"`
	Locks       []*lockSoaked `json:"locks"`
}

// readSoaked reads the results of a soak from dir. With an error it returns an empty report.
func readSoaked(dir string) (all soakReport, err error) {
	text, err := kit.ReadOut(dir, soakFile, input.Document)
	if err != nil {
		return all, err
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return soakReport{}, err
	}
	if all.Tool != reports.Tool || all.Plan.Windows == 0 {
		return soakReport{}, errors.New("it is of no soak")
	}
	return all, nil
}

// files returns the names of the scripts that the soak wrote.
func (s *soakReport) files() (names []string) {
	for _, l := range s.Locks {
		for _, i := range l.Incidents {
			if i.File == search.ScriptName(l.Strategy, i.Anomaly) {
				names = append(names, i.File)
			}
		}
	}
	return names
}

// soakPlan is the plan of a soak as written to soak.json.
type soakPlan struct {
	World   string `json:"world"`
	Windows int    `json:"windows"`
	soak.Plan
}

// lockSoaked holds the counts of one lock.
type lockSoaked struct {
	Strategy string `json:"strategy"`
	Nodes    int    `json:"nodes"`
	// Windows is the number of counted windows, Void the number of windows without a result, and
	// Why the reason of the first void window.
	Windows int    `json:"windows"`
	Void    int    `json:"windows_void"`
	Why     string `json:"why,omitempty"`

	Virtual  time.Duration `json:"virtual_ns"`
	Acquired int           `json:"acquired"`
	Failed   int           `json:"failed"`
	Unknown  int           `json:"unknown"`

	Overlaps    int       `json:"overlaps"`
	OverlapRate rate      `json:"overlaps_per_acquired"`
	Overlap     quantiles `json:"overlap_ns"`

	Updates  int  `json:"updates"`
	Refused  int  `json:"refused"`
	Lost     int  `json:"lost_updates"`
	LossRate rate `json:"lost_per_update"`

	Outages    int       `json:"outages"`
	OutageRate rate      `json:"outages_per_acquired"`
	Outage     quantiles `json:"outage_ns"`
	Recovery   quantiles `json:"recovery_ns"`

	Anomalies map[checker.Anomaly]int `json:"anomalies"`
	// Judged says what the anomalies mean for a lock of its class; it is absent for built-in locks.
	Judged    map[checker.Anomaly]*judged `json:"judged,omitempty"`
	Incidents []incident                  `json:"incidents,omitempty"`

	sum   soak.Sum
	first map[checker.Anomaly]firstSeen
	void  int // 1 + the number of the first void window; 0 if no window is void
}

// judged says what an anomaly of a lock means.
type judged struct {
	// Occurrences are those that were judged: at most 200 in a window.
	Occurrences map[leases.Outcome]int `json:"occurrences"`
	// Outcome is the worst one, Window the first window with it, and Reason that of its first occurrence.
	Outcome leases.Outcome `json:"outcome"`
	Window  int            `json:"window"`
	Reason  string         `json:"reason"`
}

// incident is the first window that showed an anomaly, with its script.
type incident struct {
	Anomaly checker.Anomaly `json:"anomaly"`
	Window  int             `json:"window"`
	Seed    uint64          `json:"seed"`
	File    string          `json:"file"`
	Steps   string          `json:"steps"`
	Command string          `json:"command"`
	script  string
}

type firstSeen struct {
	window int
	at     time.Duration
}

// rate is a rate with its 95 % confidence bounds; null means unbounded.
type rate struct {
	Of       *float64 `json:"rate"`
	Least    *float64 `json:"least"`
	Most     *float64 `json:"most"`
	lastRate soak.Rate
}

func rateOf(r soak.Rate) rate { return rate{finite(r.Of), finite(r.Least), finite(r.Most), r} }

// quantiles summarizes durations.
type quantiles struct {
	Count int           `json:"count"`
	Sum   time.Duration `json:"sum"`
	P50   time.Duration `json:"p50"`
	P90   time.Duration `json:"p90"`
	P99   time.Duration `json:"p99"`
	Most  time.Duration `json:"most"`
}

func quantilesOf(d *soak.Durations) quantiles {
	return quantiles{d.Count, d.Sum, d.Quantile(50), d.Quantile(90), d.Quantile(99), d.Quantile(100)}
}

func newLockSoaked(s strategies.Strategy) *lockSoaked {
	return &lockSoaked{Strategy: s.Name, Nodes: max(1, s.Nodes), first: map[checker.Anomaly]firstSeen{}}
}

// add adds the result of a window. Windows may be added in any order.
func (l *lockSoaked) add(window int, p cells.Played) {
	if p.Counts == nil {
		l.Void++
		if l.void == 0 || window < l.void-1 {
			l.void, l.Why = window+1, fmt.Sprintf("window %d: %s: %s", window, p.Cell.Verdict, p.Cell.Reason)
		}
		return
	}
	l.sum.Add(*p.Counts)
	for a, at := range p.Counts.First {
		if f, ok := l.first[a]; l.Judged[a] == nil && (!ok || window < f.window) {
			l.first[a] = firstSeen{window, at}
		}
	}
	for a, of := range p.Counts.Judged {
		l.judge(a, window, of)
	}
}

// judge adds the judgement on an anomaly in a window. The window of the anomaly is the first with its worst
// outcome.
func (l *lockSoaked) judge(a checker.Anomaly, window int, of soak.Judged) {
	if l.Judged == nil {
		l.Judged = map[checker.Anomaly]*judged{}
	}
	all := l.Judged[a]
	if all == nil {
		all = &judged{Occurrences: map[leases.Outcome]int{}}
		l.Judged[a] = all
	}
	for outcome, n := range of.Occurrences {
		all.Occurrences[outcome] += n
	}
	if of.Outcome.Worse(all.Outcome) || of.Outcome == all.Outcome && window < all.Window {
		all.Outcome, all.Window, all.Reason = of.Outcome, window, of.Reason
		l.first[a] = firstSeen{window, of.At}
	}
}

// buggy reports whether an anomaly is a bug.
func (l *lockSoaked) buggy() bool {
	for _, of := range l.Judged {
		if of.Outcome == leases.Bug {
			return true
		}
	}
	return false
}

// settle computes the exported fields from the sums.
func (l *lockSoaked) settle() {
	s := &l.sum
	l.Windows, l.Virtual, l.Acquired, l.Failed, l.Unknown = s.Windows, s.Virtual, s.Acquired, s.Failed, s.Unknown
	l.Overlaps, l.OverlapRate, l.Overlap = s.Overlap.Count, rateOf(s.Overlaps()), quantilesOf(&s.Overlap)
	l.Updates, l.Refused, l.Lost, l.LossRate = s.Updates, s.Refused, s.Lost, rateOf(s.Losses())
	l.Outages, l.OutageRate, l.Outage, l.Recovery = s.Outage.Count, rateOf(s.Outages()), quantilesOf(&s.Outage), quantilesOf(&s.Recovery)
	l.Anomalies = s.Anomalies
	if l.Anomalies == nil {
		l.Anomalies = map[checker.Anomaly]int{}
	}
}

// print prints the results, and first writes them into --out if that is set.
func (o *soakOptions) print(cmd *cobra.Command, all *soakReport) error {
	all.Version = version.Of()
	void, bugs := 0, false
	for _, l := range all.Locks {
		l.settle()
		void += l.Void
		bugs = bugs || l.buggy()
	}
	var text bytes.Buffer
	e := json.NewEncoder(printable.NewJSONWriter(&text))
	e.SetIndent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	former, err := readSoaked(o.out)
	if all.Interrupted && err == nil && o.out != "" {
		defer fmt.Fprintf(cmd.ErrOrStderr(), "what is in %s is still the soak before\n", o.out)
	} else if o.out != "" {
		for _, name := range former.files() {
			if !slices.Contains(all.files(), name) {
				kit.RemoveOut(o.out, name) // not part of the new report
			}
		}
		for _, l := range all.Locks {
			for _, i := range l.Incidents {
				if err := kit.WriteOut(o.out, i.File, []byte(i.script)); err != nil {
					return fmt.Errorf("write the script: %w: name another directory with --out", err)
				}
			}
		}
		if err := kit.WriteOut(o.out, soakFile, text.Bytes()); err != nil {
			return fmt.Errorf("write what was counted: %w: name another directory with --out", err)
		}
	}
	if o.format == kit.FormatTable {
		text.Reset()
		all.table(&text)
	}
	if _, err := text.WriteTo(cmd.OutOrStdout()); err != nil {
		return err
	}
	switch {
	case all.Interrupted:
		return kit.Exit(kit.ExitInterrupted, errors.New("interrupted: what was counted by then is above"))
	case void > 0:
		return kit.Exit(kit.ExitUndecided, nil)
	case bugs:
		return kit.Exit(kit.ExitDiffers, nil)
	}
	return nil
}

func (s *soakReport) table(w io.Writer) {
	p := s.Plan
	fmt.Fprintf(w, "%s of world %s, lease %v; %s, each thinks %v and updates for %v; seed %d\n", kit.Count(p.Windows, "window", "windows")+" of "+p.Window.String(), p.World, p.TTL, kit.Count(p.Clients, "client", "clients"), p.Think, p.Hold, p.Seed)
	nemeses := kit.Each(p.Nemeses, soak.Nemesis.String)
	fmt.Fprintf(w, "nemeses: %s\n", cmp.Or(strings.Join(nemeses, ", "), "none"))
	for _, l := range s.Locks {
		l.table(w)
	}
	if p.Windows < soak.FewWindows {
		fmt.Fprintf(w, "\nbounds of %s are rough, and often too narrow: give a longer --for or a shorter --window, for %d or more\n", kit.Count(p.Windows, "window", "windows"), soak.FewWindows)
	}
}

// million is the number of acquires that rates refer to.
const million = 1e6

func (l *lockSoaked) table(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %s, %s acquired, %s not", l.Strategy, hours(l.Virtual), reports.Thousands(l.Acquired), reports.Thousands(l.Failed))
	if l.Unknown > 0 {
		fmt.Fprintf(w, ", %s ended otherwise", reports.Thousands(l.Unknown))
	}
	fmt.Fprintln(w)
	line := func(what, n, rate, of string, q quantiles) {
		text := fmt.Sprintf("  %-13s %9s  %-38s", what, n, rate)
		if q.Count > 0 {
			text += fmt.Sprintf("  %s: half %v, nine tenths %v, all %v", of, q.P50.Round(time.Millisecond), q.P90.Round(time.Millisecond), q.Most.Round(time.Millisecond))
		}
		fmt.Fprintln(w, strings.TrimRight(text, " "))
	}
	line("overlaps", reports.Thousands(l.Overlaps), perMillion(l.OverlapRate.lastRate), "within", l.Overlap)
	line("lost updates", reports.Thousands(l.Lost), percent(l.LossRate.lastRate), "", quantiles{})
	if l.Refused > 0 {
		line("refused", reports.Thousands(l.Refused), "", "", quantiles{})
	}
	line("outages", reports.Thousands(l.Outages), perMillion(l.OutageRate.lastRate), "within", l.Outage)
	if l.Recovery.Count > 0 {
		line("recoveries", reports.Thousands(l.Recovery.Count), "", "within", l.Recovery)
	}
	var names []string
	for _, a := range checker.Anomalies() {
		if n := l.Anomalies[a]; n > 0 {
			names = append(names, fmt.Sprintf("%s %s", a, reports.Thousands(n)))
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(w, "  anomalies: %s\n", strings.Join(names, ", "))
	}
	for _, outcome := range []leases.Outcome{leases.Bug, leases.Weakness, leases.Limitation} {
		for _, a := range checker.Anomalies() {
			of := l.Judged[a]
			if of == nil || of.Occurrences[outcome] == 0 {
				continue
			}
			fmt.Fprintf(w, "  %s: %s, %s of %s judged", outcome.Words(), a, reports.Thousands(of.Occurrences[outcome]), reports.Thousands(of.total()))
			if of.Outcome == outcome {
				fmt.Fprintf(w, ", first in window %d: %s", of.Window, of.Reason)
			}
			fmt.Fprintln(w)
		}
	}
	for _, i := range l.Incidents {
		fmt.Fprintf(w, "  %s, window %d, %s: %s\n", i.Anomaly, i.Window, i.Steps, i.Command)
	}
	if l.Void > 0 {
		why, _, _ := strings.Cut(l.Why, "\n")
		fmt.Fprintf(w, "  %s had no verdict; %s\n", kit.Count(l.Void, "window", "windows"), why)
	}
}

func (j *judged) total() (n int) {
	for _, x := range j.Occurrences {
		n += x
	}
	return n
}

// perMillion returns a rate and its bounds per million acquires.
func perMillion(r soak.Rate) string { return scaled(r, million, "per million") }

// percent returns a rate and its bounds in percent.
func percent(r soak.Rate) string {
	if !math.IsInf(r.Most, 1) {
		r.Most = min(1, r.Most)
	}
	return scaled(r, 100, "%")
}

// scaled returns a rate and its bounds times a factor, with the unit that this gives.
func scaled(r soak.Rate, factor float64, unit string) string {
	switch {
	case math.IsInf(r.Most, 1) && r.Of > 0:
		return figure(r.Of*factor) + " " + unit + ", without bounds"
	case math.IsInf(r.Most, 1):
		return "of none"
	}
	return fmt.Sprintf("%s %s (%s to %s)", figure(r.Of*factor), unit, figure(r.Least*factor), figure(r.Most*factor))
}

// figure returns a number with three significant digits.
func figure(x float64) string {
	if x >= 1000 {
		return reports.Thousands(int(x + 0.5))
	}
	return fmt.Sprintf("%.3g", x)
}

// hours returns a duration, from 2 h on in whole hours.
func hours(d time.Duration) string {
	if d < 2*time.Hour {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%s h", reports.Thousands(int(d.Round(time.Hour).Hours())))
}
