package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/sweep"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

type mapOptions struct {
	playOptions
	x, y   string
	of     []string
	plan   sweep.Plan
	jobs   int
	format string
	out    string

	chosen chosen            // the scenario as the user named it
	file   string            // file name of the script that is played
	script *scenarios.Script // the script, with lines of --x and --y made params
	axes   []scenarios.Param // 1 or 2
	broken []checker.Anomaly
}

// Output formats of a map in addition to table and json.
const (
	formatCSV = "csv"
	formatSVG = "svg"
)

func mapForms() []string { return []string{formatTable, formatJSON, formatCSV, formatSVG} }

// mostSteps is the largest number of steps of an axis.
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
  lockfault map set-nx-px-lua work-exceeds-ttl --x '11 0.5ttl..2ttl' --squares 32
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
	o.queue.addFlags(flags, "on", onAbout)
	return cmd
}

// anyAnomaly is the value of --of that selects all anomalies.
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
			return unknown("anomaly", word, append(anomalyNames(), anyAnomaly), "there are "+strings.Join(anomalyNames(), ", ")+"; any is for all")
		}
	}
	switch {
	case len(o.worlds) > 1:
		return usage("--world %s: a map is of one world: two can be compared", strings.Join(o.worlds, ","))
	case len(o.broken) == 0:
		return usage("--of is empty: name anomalies, or any")
	case o.plan.Squares < 1 || o.plan.Halvings < 0 || o.plan.Halvings > 12 || o.plan.Squares > mostSteps>>o.plan.Halvings:
		return usage("--squares %d --halvings %d: an axis has 1 to %d steps, as many as squares when they were halved so often", o.plan.Squares, o.plan.Halvings, mostSteps)
	case o.jobs < 1 || o.jobs > mostWorkers:
		return between("jobs", o.jobs, 1, mostWorkers)
	case !slices.Contains(mapForms(), o.format):
		return unknown("format", o.format, mapForms(), "there are "+strings.Join(mapForms(), ", "))
	case cmd.Flags().Changed("out") && o.out == "":
		return usage("--out is empty: name a directory")
	}
	return nil
}

// axisFlag is the parsed value of --x or --y: the name of a param or a line number, and the text of
// a range.
type axisFlag struct{ flag, said, name, text string }

// flagged returns the parsed values of --x and --y.
func (o *mapOptions) flagged() []axisFlag {
	list := []axisFlag{{flag: "x", said: o.x}, {flag: "y", said: o.y}}
	for i, a := range list {
		name, text, _ := strings.Cut(strings.Replace(strings.TrimSpace(a.said), "=", " ", 1), " ")
		list[i].name, list[i].text = name, strings.TrimSpace(text)
	}
	return list
}

// open reads the script and turns the lengths of time that --x and --y name by line into params.
func (o *mapOptions) open(ctx context.Context, word string) (err error) {
	if o.chosen, err = chooseScenario(ctx, word); err != nil {
		return err
	}
	o.file = o.chosen.file
	source := o.chosen.source
	if source == nil {
		o.file, source = o.chosen.Name+scriptSuffix, scenarios.Source(o.chosen.Name)
	}
	var before *[2]int // line and index of the length of time that --x named
	added := 0         // lines added at the top of the script
	for i, axis := range o.flagged() {
		number, nth, several := strings.Cut(axis.name, ":")
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
		r, err := scenarios.ParseRange(axis.text)
		if err != nil {
			return usage("--%s %q: %v: give a range behind the line, as in \"12 0.5ttl..2ttl\"", axis.flag, axis.said, err)
		}
		given := [2]int{line, which}
		if before != nil && given == *before {
			return usage("--x and --y are both of line %d: name two lengths of time", line)
		}
		if before != nil && line == before[0] && which > before[1] {
			which-- // the first length of time is already a param
		}
		param := "line-" + strings.ReplaceAll(axis.name, ":", "-")
		if source, err = scenarios.OpenSpan(o.file, source, line+added, which, param, r); err != nil {
			return usage("--%s %q: %v", axis.flag, axis.said, err)
		}
		before = &given
		added++
		if i == 0 {
			o.x = param
		} else {
			o.y = param
		}
	}
	o.script, err = scenarios.Parse(o.file, source)
	var wrong *scenarios.SyntaxError
	if errors.As(err, &wrong) {
		wrong.Line -= added
	}
	if err != nil {
		return &statusError{ExitUsage, err}
	}
	return nil
}

// choose sets o.axes to the params that --x and --y name, by default the first two of the script.
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
	for _, axis := range o.flagged() {
		if axis.name == "" {
			continue
		}
		i := slices.Index(names, axis.name)
		if i < 0 {
			return unknown("param", axis.name, names, "the script has "+strings.Join(names, ", "))
		}
		p := params[i]
		if axis.text != "" {
			r, err := scenarios.ParseRange(axis.text)
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

// text returns the source of the script at a point.
func (o *mapOptions) text(at sweep.Point) []byte {
	of := *o.script
	of.Params = slices.Clone(of.Params)
	values := map[string]string{}
	for i, p := range o.axes {
		values[p.Name] = o.value(i, at)
		for j := range of.Params {
			if of.Params[j].Name == p.Name {
				of.Params[j].Range = p.Range // --x or --y may have changed the range
			}
		}
	}
	return of.With(values)
}

// value returns the value of an axis at a point, as written in the script.
func (o *mapOptions) value(axis int, at sweep.Point) string {
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
	registry := a.naming(args[:1])
	o.services = a.services
	list, err := chooseStrategies(registry, a.everything, args[:1])
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
	if err := o.prepare(cmd.Context(), registry, []chosen{o.chosen}, list); err != nil {
		return err
	}
	if o.out != "" {
		if err := makeOut(o.out); err != nil {
			return usage("--out: %v", pathErrorText(err))
		}
		if err := reports.CheckMap(o.out); err != nil {
			return usage("--out: %v", err)
		}
		if err := o.checkSides(s.Name); err != nil {
			return err
		}
		if err := makeOut(o.out, reports.MapFile, reports.MapTable, reports.MapPicture, reports.HTMLFile); err != nil {
			return usage("--out: %v", err)
		}
	}
	leave, err := o.share(cmd, a, args)
	if err != nil {
		return err
	}
	defer leave()
	progress := newProgress(cmd.ErrOrStderr(), 0)
	defer progress.close()
	cells := mapCells{}
	drawn, err := sweep.Draw(cmd.Context(), o.plan, func(ctx context.Context, points []sweep.Point) ([]string, error) {
		return o.ask(cmd, ctx, s, points, cells, progress)
	})
	progress.close()
	if errors.Is(err, context.Canceled) {
		return &statusError{ExitInterrupted, errors.New("interrupted: no map was drawn")}
	}
	if err != nil {
		return err
	}
	m := o.mapReport(s, args[1], drawn, cells)
	return o.print(cmd, m)
}

// mapCells holds the cell of each point by the text of where. Points with the same text share a
// cell.
type mapCells map[string]reports.Cell

// ask plays the points that are not in cells, stores their cells and returns the answers of all
// points.
func (o *mapOptions) ask(cmd *cobra.Command, ctx context.Context, s strategies.Strategy, points []sweep.Point, cells mapCells, progress *progress) ([]string, error) {
	world := o.worlds[0]
	workers := o.jobs
	if !cmd.Flags().Changed("jobs") {
		workers *= o.at(world).Crowd()
	}
	var asked []sweep.Point
	for _, at := range points {
		if _, known := cells[o.where(at)]; !known {
			cells[o.where(at)] = reports.Cell{}
			asked = append(asked, at)
		}
	}
	jobs := func(yield func(job) bool) {
		for i, at := range asked {
			if !yield(o.job(s, i, at)) {
				return
			}
		}
	}
	var err error
	if len(asked) > 0 {
		progress.total += len(asked)
		err = o.play(ctx, world, min(workers, len(asked)), jobs, func(j job, p played) error {
			cells[o.where(asked[j.Number])] = p.Cell
			if progress.done++; progress.due() {
				progress.say(fmt.Sprintf("%d points; %d more are known to be asked", progress.done, progress.total-progress.done))
			}
			return nil
		})
	}
	var answers []string
	for _, at := range points {
		answers = append(answers, o.answer(cells[o.where(at)]))
	}
	return answers, err
}

// job returns the job that plays the point at, with number n.
func (o *mapOptions) job(s strategies.Strategy, n int, at sweep.Point) job {
	j := job{
		Number: n, Strategy: s.Name, Scenario: o.script.Name, File: o.file, Source: o.text(at),
		Place: o.at(o.worlds[0]), Seed: o.seed, TTL: o.ttl, Limit: o.cellTimeout, Nodes: o.nodesOf(s), Isolated: o.isolated(s),
	}
	if o.varies() {
		if script, err := scenarios.Parse(o.file, j.Source); err == nil {
			j.TTL, j.Fixed = script.TTL, true // in real time too, where the default lease differs
		}
	}
	return j
}

// varies reports whether the lease is a param of the script, so that it differs from point to
// point.
func (o *mapOptions) varies() bool { return o.ttl == 0 && o.script.OpenTTL() }

// answer returns the answer of a cell: the anomalies of --of that it shows, [reports.MapHeld], or
// [reports.MapVoid] without a verdict.
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
