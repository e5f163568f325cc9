package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/replace"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/version"
	"github.com/lockfault/lockfault/mapping"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/worlds"
)

type mapOptions struct {
	playOptions
	x, y   string
	of     []string
	plan   mapping.Plan
	jobs   int
	format string
	out    string

	file   string // of the script with params, and its text
	source []byte
	script *scenarios.Script
	axes   []scenarios.Param // one or two
	broken []checker.Anomaly
}

// The forms that a map is printed in.
const (
	formatCSV = "csv"
	formatSVG = "svg"
)

func mapForms() []string { return []string{formatTable, formatJSON, formatCSV, formatSVG} }

// mostSteps is how many steps an axis may have.
const mostSteps = 4096

func newMapCommand(a *app) *cobra.Command {
	var o mapOptions
	cmd := &cobra.Command{
		Use:   "map STRATEGY SCENARIO",
		Short: "Find where a lock's safety ends, along one or two values of a script",
		Long: `Play a scenario with many values of one or two of its params, and find where exclusion
breaks: at the points of a grid first, then ever closer wherever neighbours differ. A param
is a value that a script leaves open, as in

  param pause 0.1ttl..2ttl at 1.1ttl
  ...
  wait $pause

Scripts with params come with the program: ` + strings.Join(scenarios.MapNames(), ", ") + `.
In any other script a length of time is made one by the number of its line, and if there are
several on it, which of them: 12, or 12:2.

--x and --y take the name of a param, or such a number, and a range: "pause 0.1ttl..2ttl",
"12 0.5ttl..2ttl". A param's own range may be left out. Without them the first param of the
script goes along x, and the second along y.

What is broken is what shows an anomaly of --of. Each side of the boundary that was found is
a script, which --out keeps, beside the map's data (map.json, map.csv), its picture (map.svg)
and its page (index.html).

The exit status is 0 wherever the boundary is, 2 if the command line makes no sense, 3 if
points came to nothing, and 130 if it was interrupted.`,
		Example: `  lockfault map set-nx-px-lua pause-lease
  lockfault map redisson renewal-outage --out renewals
  lockfault map redlock roundtrip-lease --of unavailable
  lockfault map redlock gc-pause-holding --x '25 0.5ttl..2ttl' --squares 32
  lockfault map set-wait my-script.txt --x lag --y 'after 1ms..500ms' --format csv`,
		Args: cellArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, a, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.x, "x", "", "`PARAM [RANGE]` along x")
	flags.StringVar(&o.y, "y", "", "`PARAM [RANGE]` along y")
	flags.StringSliceVar(&o.of, "of", []string{string(checker.Overlap)}, "`anomalies` that break it, with commas between them; any for all")
	flags.IntVar(&o.plan.Squares, "squares", 16, "`number` of squares on a side at first")
	flags.IntVar(&o.plan.Halvings, "halvings", 3, "how often a square is halved where its corners differ")
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of points to play at a time, each in a worker process")
	flags.StringVar(&o.format, "format", formatTable, "`form` of what is printed: "+strings.Join(mapForms(), ", "))
	flags.StringVar(&o.out, "out", "", "`directory` to write the map to")
	o.failover = byReplicaOf
	o.addWorldFlags(cmd, "`name` of the world to play in: ")
	addNoSubjectFlag(cmd)
	return cmd
}

// anyAnomaly is the word for all of them.
const anyAnomaly = "any"

func (o *mapOptions) check(cmd *cobra.Command) error {
	if err := o.playOptions.check(cmd); err != nil {
		return err
	}
	for _, word := range o.of {
		switch a := checker.Anomaly(word); {
		case word == anyAnomaly:
			o.broken = checker.Anomalies()
		case slices.Contains(checker.Anomalies(), a):
			o.broken = append(o.broken, a)
		default:
			var names []string
			for _, a := range checker.Anomalies() {
				names = append(names, string(a))
			}
			return unknown("anomaly", word, append(names, anyAnomaly), "there are "+strings.Join(names, ", ")+"; any is for all")
		}
	}
	switch {
	case len(o.worlds) > 1:
		return usage("--world %s: a map is of one world: two can be compared", strings.Join(o.worlds, ","))
	case len(o.broken) == 0:
		return usage("--of is empty: name anomalies, or any")
	case o.plan.Squares < 1 || o.plan.Halvings < 0 || o.plan.Halvings > 12 || o.plan.Squares > mostSteps>>o.plan.Halvings:
		return usage("--squares %d --halvings %d: an axis has 1 to %d steps, as many as squares when they were halved so often", o.plan.Squares, o.plan.Halvings, mostSteps)
	case o.jobs < 1:
		return usage("--jobs %d plays nothing: give 1 or more", o.jobs)
	case !slices.Contains(mapForms(), o.format):
		return unknown("format", o.format, mapForms(), "there are "+strings.Join(mapForms(), ", "))
	case cmd.Flags().Changed("out") && o.out == "":
		return usage("--out is empty: name a directory")
	}
	return nil
}

// open reads the script, and makes params of what is to be one.
func (o *mapOptions) open(ctx context.Context, word string) error {
	script, err := chooseScenario(ctx, word)
	if err != nil {
		return err
	}
	if o.file, o.source = script.file, script.source; o.source == nil {
		o.file, o.source = script.Name+scriptSuffix, scenarios.Source(script.Name)
	}
	var before []int // the line that was opened before, and which length of time on it
	for i, axis := range []struct{ flag, said string }{{"x", o.x}, {"y", o.y}} {
		name, text, _ := strings.Cut(strings.Replace(strings.TrimSpace(axis.said), "=", " ", 1), " ")
		number, nth, several := strings.Cut(name, ":")
		line, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		which := 1
		if several {
			if which, err = strconv.Atoi(nth); err != nil {
				return usage("--%s %q: give a line, and which length of time on it, as in 12:2", axis.flag, axis.said)
			}
		}
		r, err := scenarios.ParseRange(strings.TrimSpace(text))
		if err != nil {
			return usage("--%s %q: %v: give a range behind the line, as in \"12 0.5ttl..2ttl\"", axis.flag, axis.said, err)
		}
		given := []int{line, which}
		if before != nil {
			if line == before[0] && which > before[1] {
				which-- // that one is a param by now
			}
			line++ // a line with the param stands above
		}
		if before != nil && given[0] == before[0] && given[1] == before[1] {
			return usage("--x and --y are both of line %d: name two lengths of time", given[0])
		}
		param := fmt.Sprintf("line-%s", strings.ReplaceAll(name, ":", "-"))
		opened, err := scenarios.OpenSpan(o.file, o.source, line, which, param, r)
		if err != nil {
			return usage("--%s %q: %v", axis.flag, axis.said, err)
		}
		o.source, before = opened, given
		if i == 0 {
			o.x = param
		} else {
			o.y = param
		}
	}
	if o.script, err = scenarios.Parse(o.file, o.source); err != nil {
		return &statusError{ExitUsage, err}
	}
	return nil
}

// choose finds the params of the axes.
func (o *mapOptions) choose() error {
	params := o.script.Params
	var names []string
	for _, p := range params {
		names = append(names, p.Name)
	}
	if len(params) == 0 {
		return usage("%s has no params: add a line such as param pause 0.1ttl..2ttl and write $pause, or give the number of a line with a length of time, as in --x \"12 0.5ttl..2ttl\"", o.file)
	}
	if o.x == "" && o.y == "" {
		o.axes = slices.Clone(params[:min(2, len(params))])
		return nil
	}
	if o.x == "" {
		return usage("--y without --x: give --x, or --x in place of it")
	}
	for _, axis := range []struct{ flag, said string }{{"x", o.x}, {"y", o.y}} {
		name, text, _ := strings.Cut(strings.Replace(strings.TrimSpace(axis.said), "=", " ", 1), " ")
		if name == "" {
			continue
		}
		i := slices.Index(names, name)
		if i < 0 {
			return unknown("param", name, names, "the script has "+strings.Join(names, ", "))
		}
		p := params[i]
		if text = strings.TrimSpace(text); text != "" {
			r, err := scenarios.ParseRange(text)
			switch {
			case err != nil:
				return usage("--%s %q: %v", axis.flag, axis.said, err)
			case r.Unit != p.Range.Unit:
				return usage("--%s %q: the script has it from %v: give a range in the same unit", axis.flag, axis.said, p.Range)
			}
			p.Range = r
		}
		if len(o.axes) > 0 && o.axes[0].Name == p.Name {
			return usage("--x and --y are both %s: name two", p.Name)
		}
		o.axes = append(o.axes, p)
	}
	return nil
}

// text returns the script at a point.
func (o *mapOptions) text(at mapping.Point) []byte {
	of := *o.script
	of.Params = slices.Clone(of.Params)
	values := map[string]string{}
	for i, p := range o.axes {
		values[p.Name] = o.value(i, at)
		for j := range of.Params {
			if of.Params[j].Name == p.Name {
				of.Params[j].Range = p.Range // which may be another than the script's
			}
		}
	}
	return of.With(values)
}

// value returns an axis's value at a point.
func (o *mapOptions) value(axis int, at mapping.Point) string {
	r, step := o.axes[axis].Range, at.X
	if axis == 1 {
		step = at.Y
	}
	return r.Text(r.Of(step, o.plan.Steps()))
}

func (o *mapOptions) run(cmd *cobra.Command, a *app, args []string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	list, err := chooseStrategies(a.registry, args[:1])
	if err != nil {
		return err
	}
	if len(list) > 1 {
		return usage("%q names %d strategies: a map is of one", args[0], len(list))
	}
	if list, err = o.on(list); err != nil {
		return err
	}
	s := list[0]
	if err := refuseProgram(cmd, s); err != nil {
		return err
	}
	if err := o.open(cmd.Context(), args[1]); err != nil {
		return err
	}
	if err := o.choose(); err != nil {
		return err
	}
	if o.ttl != 0 && o.script.OpenTTL() {
		return usage("--ttl %v: the lease is a param of the script, and would have another value than the map says: leave --ttl out", o.ttl)
	}
	for _, p := range o.axes {
		if !o.script.Uses(p.Name) {
			return usage("the param %s stands nowhere in %s: write $%s where it is to be, or name another with --x and --y", p.Name, o.file, p.Name)
		}
	}
	o.plan.Line, o.plan.Seed = len(o.axes) == 1, o.seed
	if err := o.prepare(cmd.Context(), a.registry, []chosen{{Script: o.script, file: o.file, source: o.source}}, list); err != nil {
		return err
	}
	if o.out != "" {
		if err := os.MkdirAll(o.out, 0o777); err != nil {
			return usage("--out: %v", brief(err))
		}
		if err := reports.CheckMap(o.out); err != nil {
			return usage("--out: %v", err)
		}
		if err := o.checkSides(s.Name); err != nil {
			return err
		}
		for _, name := range []string{reports.MapFile, reports.MapTable, reports.MapPicture, reports.HTMLFile} {
			if err := replace.CheckFile(filepath.Join(o.out, name)); err != nil {
				return usage("--out: %v", err)
			}
		}
	}
	progress := newProgress(cmd.ErrOrStderr(), 0)
	defer progress.close()
	cells := map[mapping.Point]reports.Cell{}
	drawn, err := mapping.Draw(cmd.Context(), o.plan, func(ctx context.Context, points []mapping.Point) ([]string, error) {
		progress.total += len(points)
		return o.ask(cmd, ctx, s, points, cells, progress)
	})
	progress.close()
	if errors.Is(err, context.Canceled) {
		return &statusError{ExitInterrupted, errors.New("interrupted: no map was drawn")}
	}
	if err != nil {
		return err
	}
	m := o.mapped(s, args[1], drawn, cells)
	return o.tell(cmd, m)
}

// ask plays points.
func (o *mapOptions) ask(cmd *cobra.Command, ctx context.Context, s strategies.Strategy, points []mapping.Point, cells map[mapping.Point]reports.Cell, progress *progress) ([]string, error) {
	if len(points) == 0 {
		return nil, nil
	}
	world := o.worlds[0]
	workers := o.jobs
	if !cmd.Flags().Changed("jobs") {
		workers *= o.at(world).Crowd()
	}
	answers := make([]string, len(points))
	first := map[string]int{} // of those whose values are written alike
	jobs := func(yield func(job) bool) {
		for i, at := range points {
			if _, known := first[o.where(at)]; known {
				continue
			}
			first[o.where(at)] = i
			j := job{
				Number: i, Strategy: s.Name, Scenario: o.script.Name, File: o.file, Source: o.text(at),
				Place: o.at(world), Seed: o.seed, TTL: o.ttl, Nodes: o.nodesOf(s), Alone: o.alone(s),
			}
			if script, err := scenarios.Parse(o.file, j.Source); err == nil && o.varies() {
				j.TTL, j.Fixed = script.TTL, true // in real time, too, where another lease is taken
			}
			if !yield(j) {
				return
			}
		}
	}
	err := o.play(ctx, world, min(workers, len(points)), jobs, func(j job, p played) error {
		cells[points[j.Number]], answers[j.Number] = p.Cell, o.answer(p.Cell)
		if progress.done++; progress.due() {
			progress.say(fmt.Sprintf("%d points; %d more are known to be asked", progress.done, progress.total-progress.done))
		}
		return nil
	})
	for i, at := range points {
		cells[at], answers[i] = cells[points[first[o.where(at)]]], answers[first[o.where(at)]]
	}
	return answers, err
}

// varies reports whether the lease is another one at each point.
func (o *mapOptions) varies() bool { return o.ttl == 0 && o.script.OpenTTL() }

// answer says what a point came to.
func (o *mapOptions) answer(c reports.Cell) string {
	if !c.Decided() || c.Verdict == reports.NotApplicable {
		return reports.MapVoid
	}
	var shown []string
	for _, a := range o.broken {
		if slices.Contains(c.Anomalies, a) {
			shown = append(shown, string(a))
		}
	}
	if len(shown) == 0 {
		return reports.MapHeld
	}
	return strings.Join(shown, ", ")
}

// ticks is how many values stand at an axis.
const ticks = 5

func (o *mapOptions) axis(i int) reports.MapAxis {
	a := reports.MapAxis{Name: o.axes[i].Name, Steps: o.plan.Steps()}
	for tick := range ticks {
		r := o.axes[i].Range
		a.Ticks = append(a.Ticks, r.Text(r.Of(tick, ticks-1)))
	}
	return a
}

// mapped puts a map into the words of a report.
func (o *mapOptions) mapped(s strategies.Strategy, scenario string, drawn *mapping.Map, cells map[mapping.Point]reports.Cell) *reports.Mapped {
	steps := o.plan.Steps()
	m := &reports.Mapped{
		Tool: reports.Tool, Version: version.Of(), Strategy: s.Name, Scenario: o.script.Name, World: o.worlds[0], Seed: o.seed, Nodes: o.nodesOf(s),
		Command: o.command(s, scenario), Of: o.broken, X: o.axis(0), Grid: steps + 1, Loose: drawn.Loose,
		Inside: o.plan.Halvings > 0, Sides: []reports.MapScript{}, Lines: []reports.MapLine{}, Counts: []reports.MapCount{},
	}
	first := 1 << o.plan.Halvings
	m.LooseX = span(o.axes[0].Range, first, steps)
	if !o.plan.Line {
		y := o.axis(1)
		m.Y, m.Grid, m.LooseY = &y, (steps+1)*(steps+1), span(o.axes[1].Range, first, steps)
	}
	for at, c := range cells {
		p := reports.MapProbe{I: at.X, J: at.Y, X: o.value(0, at), Verdict: c.Verdict, Anomalies: c.Anomalies}
		if !o.plan.Line {
			p.Y = o.value(1, at)
		}
		if p.Anomalies == nil {
			p.Anomalies = []checker.Anomaly{}
		}
		m.Probes = append(m.Probes, p)
	}
	slices.SortFunc(m.Probes, func(a, b reports.MapProbe) int { return (a.J-b.J)*(steps+1) + a.I - b.I })
	rows := map[string]bool{} // of values that are written alike there are several rows
	m.Probes = slices.DeleteFunc(m.Probes, func(p reports.MapProbe) bool {
		at := p.X + " " + p.Y
		known := rows[at]
		rows[at] = true
		return known
	})
	for _, p := range m.Probes {
		at := mapping.Point{X: p.I, Y: p.J}
		c := cells[at]
		answer := o.answer(c)
		if answer == reports.MapHeld {
			continue
		}
		if answer == reports.MapVoid {
			if m.Void++; m.Void == 1 {
				m.Why = fmt.Sprintf("%s: %s: %s", o.where(at), c.Verdict, c.Reason)
			}
		}
		i := slices.IndexFunc(m.Counts, func(n reports.MapCount) bool { return n.Answer == answer })
		if i < 0 {
			i = len(m.Counts)
			m.Counts = append(m.Counts, reports.MapCount{Answer: answer, X: p.X, Y: p.Y})
		}
		m.Counts[i].Points++
	}
	for _, q := range drawn.Squares {
		m.Squares = append(m.Squares, reports.MapSquare{I: q.At.X, J: q.At.Y, Side: q.Side, Answer: q.Answer, Mixed: q.Mixed})
	}
	o.lines(m, drawn, cells)
	return m
}

// span says how long so many steps of a range are, and no less than is written apart.
func span(r scenarios.Range, n, steps int) string {
	length := (r.To - r.From) * float64(n) / float64(steps)
	if r.Whole {
		length = max(1, length)
	}
	return r.Text(length)
}

// where says where a point is.
func (o *mapOptions) where(at mapping.Point) string {
	text := o.axes[0].Name + " " + o.value(0, at)
	if !o.plan.Line {
		text += ", " + o.axes[1].Name + " " + o.value(1, at)
	}
	return text
}

// lines says what is along lines through the map, at its sides and through its middle, and
// chooses a boundary whose sides are kept: one through the middle, if there is one.
func (o *mapOptions) lines(m *reports.Mapped, drawn *mapping.Map, cells map[mapping.Point]reports.Cell) {
	steps, first := o.plan.Steps(), 1<<o.plan.Halvings
	middle := o.plan.Squares / 2 * first
	var boundary []mapping.Run
	along := func(runs []mapping.Run, axis int, where string) {
		var parts []string
		for _, r := range runs {
			from, to := o.value(axis, r.From), o.value(axis, r.To)
			switch {
			case len(runs) == 1:
				parts = append(parts, r.Answer+" throughout")
			case r.From == r.To:
				parts = append(parts, r.Answer+" at "+from)
			case len(parts) == 0:
				parts = append(parts, r.Answer+" up to "+to)
			case len(parts) == len(runs)-1:
				parts = append(parts, r.Answer+" from "+from)
			default:
				parts = append(parts, r.Answer+" from "+from+" to "+to)
			}
		}
		const most = 8
		if n := len(parts) - most; n > 0 {
			parts = append(parts[:most], fmt.Sprintf("and %d changes more", n))
		}
		m.Lines = append(m.Lines, reports.MapLine{Where: where + "along " + o.axes[axis].Name, Says: strings.Join(parts, ", ")})
		for i := 1; i < len(runs); i++ {
			a, b := runs[i-1].Answer, runs[i].Answer
			if boundary == nil && a != reports.MapVoid && b != reports.MapVoid && (a == reports.MapHeld || b == reports.MapHeld) {
				boundary = runs[i-1 : i+1]
			}
		}
	}
	if o.plan.Line {
		along(drawn.Row(0), 0, "")
	} else {
		for _, at := range []int{middle, 0, steps} {
			along(drawn.Row(at), 0, "with "+o.axes[1].Name+" "+o.value(1, mapping.Point{Y: at})+", ")
		}
		for _, at := range []int{middle, 0, steps} {
			along(drawn.Column(at), 1, "with "+o.axes[0].Name+" "+o.value(0, mapping.Point{X: at})+", ")
		}
	}
	for _, c := range m.Counts {
		if boundary != nil || o.plan.Line || c.Answer == reports.MapVoid {
			continue
		}
		// What is broken is an island between these lines.
		i := slices.IndexFunc(m.Probes, func(p reports.MapProbe) bool { return p.X == c.X && p.Y == c.Y })
		at := mapping.Point{X: m.Probes[i].I, Y: m.Probes[i].J}
		along(drawn.Row(at.Y), 0, "with "+o.axes[1].Name+" "+c.Y+", ")
		along(drawn.Column(at.X), 1, "with "+o.axes[0].Name+" "+c.X+", ")
	}
	if boundary == nil {
		return
	}
	for i, at := range []mapping.Point{boundary[0].To, boundary[1].From} {
		answer := boundary[i].Answer
		script := *o.script
		script.Expects = []scenarios.Expect{{Anomalies: cells[at].Anomalies}}
		of := *o
		of.script = &script
		side := reports.MapScript{Answer: answer, X: o.value(0, at), File: sideFile(m.Strategy, m.Scenario, answer), Text: string(of.text(at))}
		if !o.plan.Line {
			side.Y = o.value(1, at)
		}
		side.Command = fmt.Sprintf("%s trace %s %s", product, shell.Quote(m.Strategy), shell.Quote(o.beside(side.File))) + o.flags()
		if script, err := scenarios.Parse(side.File, []byte(side.Text)); err == nil && o.varies() && o.worlds[0] != worlds.Sim {
			side.Command += fmt.Sprintf(" --ttl %v", script.TTL)
		}
		if o.out == "" {
			side.Command = fmt.Sprintf("at %s; --out keeps its script", o.where(at))
		}
		m.Sides = append(m.Sides, side)
	}
}

// beside returns the path of a file in the directory, which no command takes for a flag.
func (o *mapOptions) beside(file string) string {
	path := filepath.Join(o.out, file)
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return path
}

// sideFile is the name of the file for the script of one side.
func sideFile(strategy, scenario, answer string) string {
	words := strings.FieldsFunc(answer, func(r rune) bool { return r == ' ' || r == ',' })
	return strings.Join(append([]string{strategy, scenario}, words...), "-") + scriptSuffix
}

// checkSides says which script in the directory would be lost that no map wrote.
func (o *mapOptions) checkSides(strategy string) error {
	former, err := reports.ReadMap(o.out)
	if err != nil {
		former = &reports.Mapped{}
	}
	for _, side := range former.Sides {
		mine, err := os.Stat(o.file)
		other, missing := os.Stat(filepath.Join(o.out, filepath.Base(side.File)))
		if err == nil && missing == nil && os.SameFile(mine, other) {
			return usage("--out: %s is of the map in that directory, and would be lost with it: name another directory, or copy the script", o.file)
		}
	}
	files, err := os.ReadDir(o.out)
	if err != nil {
		return usage("--out: %v", brief(err))
	}
	for _, f := range files {
		ours := slices.ContainsFunc(former.Sides, func(s reports.MapScript) bool { return s.File == f.Name() })
		if !ours && strings.HasPrefix(f.Name(), strategy+"-"+o.script.Name+"-") && strings.HasSuffix(f.Name(), scriptSuffix) {
			return usage("--out: %s is none of what was written there, and may be lost: name another directory, or remove it", filepath.Join(o.out, f.Name()))
		}
	}
	return nil
}

// flags are what a command needs to play the same again.
func (o *mapOptions) flags() string {
	text := ""
	if o.worlds[0] != worlds.Sim {
		text += " --world " + o.worlds[0]
	}
	if o.seed != defaultSeed {
		text += fmt.Sprintf(" --seed %d", o.seed)
	}
	if o.ttl != 0 {
		text += fmt.Sprintf(" --ttl %v", o.ttl)
	}
	if o.nodes != 0 {
		text += fmt.Sprintf(" --nodes %d", o.nodes)
	}
	return text
}

// command returns what draws the map again.
func (o *mapOptions) command(s strategies.Strategy, scenario string) string {
	text := fmt.Sprintf("%s map %s %s", product, shell.Quote(s.Name), shell.Quote(scenario))
	for i, p := range o.axes {
		name := p.Name
		if number, ok := strings.CutPrefix(name, "line-"); ok {
			name = strings.ReplaceAll(number, "-", ":")
		}
		text += fmt.Sprintf(" --%c %s", 'x'+rune(i), shell.Quote(name+" "+p.Range.String()))
	}
	if len(o.of) != 1 || o.of[0] != string(checker.Overlap) {
		text += " --of " + strings.Join(o.of, ",")
	}
	if o.plan.Squares != 16 {
		text += fmt.Sprintf(" --squares %d", o.plan.Squares)
	}
	if o.plan.Halvings != 3 {
		text += fmt.Sprintf(" --halvings %d", o.plan.Halvings)
	}
	return text + o.flags()
}

// tell prints the map, and writes it if it is to be kept.
func (o *mapOptions) tell(cmd *cobra.Command, m *reports.Mapped) error {
	if o.out != "" {
		if err := o.write(m); err != nil {
			return fmt.Errorf("write the map: %w: name another directory with --out", err)
		}
	}
	var text bytes.Buffer
	var err error
	switch o.format {
	case formatJSON:
		err = m.JSON(&text)
	case formatCSV:
		err = m.CSV(&text)
	case formatSVG:
		err = m.SVG(&text, true)
	default:
		err = m.Table(&text)
	}
	if err != nil {
		return err
	}
	if _, err := text.WriteTo(cmd.OutOrStdout()); err != nil {
		return err
	}
	if m.Void > 0 {
		return &statusError{code: ExitUndecided}
	}
	return nil
}

// write writes the map's files; those with its data last, which say what the others are of.
func (o *mapOptions) write(m *reports.Mapped) error {
	former, err := reports.ReadMap(o.out)
	if err == nil {
		for _, s := range former.Sides {
			if s.File == filepath.Base(s.File) && strings.HasPrefix(s.File, former.Strategy+"-") && !slices.ContainsFunc(m.Sides, func(x reports.MapScript) bool { return x.File == s.File }) {
				_ = os.Remove(filepath.Join(o.out, s.File)) // of what is not there any more
			}
		}
	}
	for _, s := range m.Sides {
		if err := replace.File(filepath.Join(o.out, s.File), []byte(s.Text)); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name  string
		write func(b *bytes.Buffer) error
	}{
		{reports.MapTable, func(b *bytes.Buffer) error { return m.CSV(b) }},
		{reports.MapPicture, func(b *bytes.Buffer) error { return m.SVG(b, true) }},
		{reports.HTMLFile, func(b *bytes.Buffer) error { return m.Page(b) }},
		{reports.MapFile, func(b *bytes.Buffer) error { return m.JSON(b) }},
	} {
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return err
		}
		if err := replace.File(filepath.Join(o.out, f.name), b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
