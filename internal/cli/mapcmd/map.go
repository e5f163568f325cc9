// Package mapcmd is the command map: it plays a script at the points of a grid of one or two parameters
// and reports where the answers differ.
package mapcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/sweep"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

type mapOptions struct {
	cells.Settings
	x, y   string
	of     []string
	plan   sweep.Plan
	jobs   int
	format string
	out    string

	chosen selection.Chosen  // the scenario as the user named it
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

func mapForms() []string { return []string{kit.FormatTable, kit.FormatJSON, formatCSV, formatSVG} }

// mostSteps is the largest number of steps of an axis.
const mostSteps = 4096

func NewCommand(a *kit.App) *cobra.Command {
	var o mapOptions
	cmd := &cobra.Command{
		Use:   "map STRATEGY SCENARIO",
		Short: "Find the script values that break a lock",
		Long: `Play a scenario with many values of one or two of its params, and find where mutual
exclusion breaks: first at the points of a grid, then closer where neighbours differ. A
param is a value that a script leaves open, such as

  param pause 0.1ttl..2ttl at 1.1ttl
  ...
  wait $pause

These scripts of the library have params: ` + strings.Join(scenarios.MapNames(), ", ") + `.
In any other script, the number of a line makes the duration on that line a param. If the
line has several durations, add the number of the duration: 12, or 12:2.

--x and --y take the name of a param, or such a number, and a range: "pause 0.1ttl..2ttl",
"12 0.5ttl..2ttl". The default range is the param's own. Without the flags x is the first
param of the script, and y the second.

A point is broken if it shows an anomaly of --anomaly. --out writes a script for each side
of the boundary, the data (map.json, map.csv), the picture (map.svg) and the page
(index.html).

Exit status:
  0    the map is complete, wherever the boundary is
  2    the command line or the script is invalid
  3    a point is undecided or in error
  130  interrupted`,
		Example: `  lockfault map set-nx-px-lua pause-lease
  lockfault map redisson renewal-outage --out renewals
  lockfault map redlock roundtrip-lease --anomaly unavailable
  lockfault map set-nx-px-lua work-exceeds-ttl --x '11 0.5ttl..2ttl' --squares 32
  lockfault map set-wait my-script.txt --x lag --y 'after 1ms..500ms' --format csv`,
		Args: cells.CellArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, a, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.x, "x", "", "`PARAM [RANGE]` for x (default: the first param of the script)")
	flags.StringVar(&o.y, "y", "", "`PARAM [RANGE]` for y (default: the second param of the script, if any)")
	flags.StringSliceVar(&o.of, "anomaly", []string{string(checker.Overlap)}, "`anomalies` that break a point, separated by commas, or any")
	flags.IntVar(&o.plan.Squares, "squares", 16, "initial `number` of squares on a side")
	flags.IntVar(&o.plan.Halvings, "halvings", 3, "maximum `number` of times that a square with different corners is halved")
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of points to play in parallel, each in a worker process")
	flags.StringVar(&o.format, "format", kit.FormatTable, "`format` of the output: "+strings.Join(mapForms(), ", "))
	flags.StringVar(&o.out, "out", "", "`directory` for the map (default none)")
	o.PromoteBy = cells.ByReplicaOf
	o.AddWorldFlags(cmd)
	selection.AddNoSubjectFlag(cmd)
	o.Queue.AddFlags(flags, cells.QueueAbout)
	kit.CompleteFlag(cmd, "format", mapForms)
	return cmd
}

// anyAnomaly is the value of --anomaly that selects all anomalies.
const anyAnomaly = "any"

func (o *mapOptions) check(cmd *cobra.Command, a *kit.App) error {
	if err := o.Settings.Check(cmd, a); err != nil {
		return err
	}
	for _, word := range o.of {
		switch a := checker.Anomaly(word); {
		case word == anyAnomaly:
			o.broken = checker.Anomalies()
		case slices.Contains(checker.Anomalies(), a):
			o.broken = append(o.broken, a)
		default:
			return kit.Unknown("anomaly", word, append(kit.AnomalyNames(), anyAnomaly), "there are "+strings.Join(kit.AnomalyNames(), ", ")+"; any is for all")
		}
	}
	tooFine := o.plan.Squares < 1 || o.plan.Halvings < 0 || o.plan.Halvings > 12 || o.plan.Squares > mostSteps>>o.plan.Halvings
	return cmp.Or(
		kit.UsageIf(len(o.Worlds) > 1, "--world %s: a map is of one world: two can be compared", strings.Join(o.Worlds, ",")),
		kit.UsageIf(len(o.broken) == 0, "--anomaly is empty: name anomalies, or any"),
		kit.UsageIf(tooFine, "--squares %d --halvings %d: an axis has 1 to %d steps, as many as squares when they were halved so often", o.plan.Squares, o.plan.Halvings, mostSteps),
		kit.Between("jobs", o.jobs, 1, kit.MaxWorkers),
		kit.OneOf("format", o.format, mapForms()),
		kit.UsageIf(cmd.Flags().Changed("out") && o.out == "", "--out is empty: name a directory"),
	)
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
	if o.chosen, err = selection.ChooseScenario(ctx, word); err != nil {
		return err
	}
	o.file = o.chosen.File
	source := o.chosen.Source
	if source == nil {
		o.file, source = o.chosen.Name+selection.ScriptSuffix, scenarios.Source(o.chosen.Name)
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
				return kit.Usage("--%s %q: give a line, and which length of time on it, as in 12:2", axis.flag, axis.said)
			}
		}
		r, err := scenarios.ParseRange(axis.text)
		if err != nil {
			return kit.Usage("--%s %q: %v: give a range behind the line, as in \"12 0.5ttl..2ttl\"", axis.flag, axis.said, err)
		}
		given := [2]int{line, which}
		if before != nil && given == *before {
			return kit.Usage("--x and --y are both of line %d: name two lengths of time", line)
		}
		if before != nil && line == before[0] && which > before[1] {
			which-- // the first length of time is already a param
		}
		param := "line-" + strings.ReplaceAll(axis.name, ":", "-")
		if source, err = scenarios.OpenSpan(o.file, source, line+added, which, param, r); err != nil {
			return kit.Usage("--%s %q: %v", axis.flag, axis.said, err)
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
		return kit.Exit(kit.ExitUsage, err)
	}
	return nil
}

// choose sets o.axes to the params that --x and --y name, by default the first two of the script.
func (o *mapOptions) choose() error {
	params := o.script.Params
	names := kit.Each(params, func(p scenarios.Param) string { return p.Name })
	if len(params) == 0 {
		return kit.Usage("%s has no params: add a line such as param pause 0.1ttl..2ttl and write $pause, or give the number of a line with a length of time, as in --x \"12 0.5ttl..2ttl\"", o.file)
	}
	if o.x == "" && o.y == "" {
		o.axes = slices.Clone(params[:min(2, len(params))])
		return nil
	}
	if o.x == "" {
		return kit.Usage("--y without --x: give --x, or --x in place of it")
	}
	for _, axis := range o.flagged() {
		if axis.name == "" {
			continue
		}
		i := slices.Index(names, axis.name)
		if i < 0 {
			return kit.Unknown("param", axis.name, names, "the script has "+strings.Join(names, ", "))
		}
		p := params[i]
		if axis.text != "" {
			r, err := scenarios.ParseRange(axis.text)
			switch {
			case err != nil:
				return kit.Usage("--%s %q: %v", axis.flag, axis.said, err)
			case r.Unit != p.Range.Unit:
				return kit.Usage("--%s %q: the script has it from %v: give a range in the same unit", axis.flag, axis.said, p.Range)
			}
			p.Range = r
		}
		if len(o.axes) > 0 && o.axes[0].Name == p.Name {
			return kit.Usage("--x and --y are both %s: name two", p.Name)
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

func (o *mapOptions) run(cmd *cobra.Command, a *kit.App, args []string) error {
	if err := o.check(cmd, a); err != nil {
		return err
	}
	registry := selection.RegistryFor(a, args[:1])
	list, err := o.ChooseOne(cmd, a, registry, args[0], "a map is of one")
	if err != nil {
		return err
	}
	s := list[0]
	if err := o.open(cmd.Context(), args[1]); err != nil {
		return err
	}
	if err := o.choose(); err != nil {
		return err
	}
	if o.TTL != 0 && o.script.OpenTTL() {
		return kit.Usage("--ttl %v: the lease is a param of the script, and would have another value than the map says: leave --ttl out", o.TTL)
	}
	for _, p := range o.axes {
		if !o.script.Uses(p.Name) {
			return kit.Usage("the param %s stands nowhere in %s: write $%s where it is to be, or name another with --x and --y", p.Name, o.file, p.Name)
		}
	}
	o.plan.Line, o.plan.Seed = len(o.axes) == 1, o.Seed
	if err := o.Prepare(cmd.Context(), registry, []selection.Chosen{o.chosen}, list); err != nil {
		return err
	}
	if o.out != "" {
		if err := kit.MakeOut(o.out); err != nil {
			return kit.Usage("--out: %v", kit.PathErrorText(err))
		}
		if err := reports.CheckMap(o.out); err != nil {
			return kit.Usage("--out: %v", err)
		}
		if err := o.checkSides(s.Name); err != nil {
			return err
		}
		if err := kit.MakeOut(o.out, reports.MapFile, reports.MapTable, reports.MapPicture, reports.HTMLFile); err != nil {
			return kit.Usage("--out: %v", err)
		}
	}
	leave, err := o.Share(cmd, a, args)
	if err != nil {
		return err
	}
	defer leave()
	progress := kit.NewProgress(cmd.ErrOrStderr(), 0)
	defer progress.Close()
	results := mapCells{}
	drawn, err := sweep.Draw(cmd.Context(), o.plan, func(ctx context.Context, points []sweep.Point) ([]string, error) {
		return o.ask(cmd, ctx, s, points, results, progress)
	})
	progress.Close()
	if err != nil {
		return kit.Interrupted(err, "interrupted: no map was drawn")
	}
	m := o.mapReport(s, args[1], drawn, results)
	return o.print(cmd, m)
}

// mapCells holds the cell of each point by the text of where. Points with the same text share a
// cell.
type mapCells map[string]reports.Cell

// ask plays the points that are not in results, stores their cells and returns the answers of all
// points.
func (o *mapOptions) ask(cmd *cobra.Command, ctx context.Context, s strategies.Strategy, points []sweep.Point, results mapCells, progress *kit.Progress) ([]string, error) {
	world := o.Worlds[0]
	var asked []sweep.Point
	for _, at := range points {
		if _, known := results[o.where(at)]; !known {
			results[o.where(at)] = reports.Cell{}
			asked = append(asked, at)
		}
	}
	jobs := func(yield func(cells.Job) bool) {
		for i, at := range asked {
			if !yield(o.job(s, i, at)) {
				return
			}
		}
	}
	var err error
	if len(asked) > 0 {
		progress.Total += len(asked)
		err = o.Play(ctx, world, min(o.Workers(cmd, world, o.jobs), len(asked)), jobs, func(j cells.Job, p cells.Played) error {
			results[o.where(asked[j.Number])] = p.Cell
			if progress.Done++; progress.Due() {
				progress.Say(fmt.Sprintf("%d points; %d more are known to be asked", progress.Done, progress.Total-progress.Done))
			}
			return nil
		})
	}
	var answers []string
	for _, at := range points {
		answers = append(answers, o.answer(results[o.where(at)]))
	}
	return answers, err
}

// job returns the job that plays the point at, with number n.
func (o *mapOptions) job(s strategies.Strategy, n int, at sweep.Point) cells.Job {
	j := o.Job(s)
	j.Number, j.Scenario, j.File, j.Source = n, o.script.Name, o.file, o.text(at)
	j.Place, j.TTL = o.At(o.Worlds[0]), o.TTL
	if o.varies() {
		if script, err := scenarios.Parse(o.file, j.Source); err == nil {
			j.TTL, j.Fixed = script.TTL, true // in real time too, where the default lease differs
		}
	}
	return j
}

// varies reports whether the lease is a param of the script, so that it differs from point to
// point.
func (o *mapOptions) varies() bool { return o.TTL == 0 && o.script.OpenTTL() }

// answer returns the answer of a cell: the anomalies of --anomaly that it shows, [reports.MapHeld], or
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
