package mapcmd

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/sweep"
	"github.com/lockfault/lockfault/internal/version"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// ticks is the number of labels of an axis.
const ticks = 5

func (o *mapOptions) axis(i int) reports.MapAxis {
	a := reports.MapAxis{Name: o.axes[i].Name, Steps: o.plan.Steps()}
	for tick := range ticks {
		r := o.axes[i].Range
		a.Ticks = append(a.Ticks, r.Text(r.Of(tick, ticks-1)))
	}
	return a
}

// mapReport converts a map into a report.
func (o *mapOptions) mapReport(s strategies.Strategy, scenario string, drawn *sweep.Map, cells mapCells) *reports.MapReport {
	steps := o.plan.Steps()
	m := &reports.MapReport{
		Tool: reports.Tool, Version: version.Of(), Strategy: s.Name, Scenario: o.script.Name, World: o.Worlds[0], Seed: o.Seed, Nodes: o.NodesOf(s),
		Command: o.command(s, scenario), Of: o.broken, X: o.axis(0), Grid: steps + 1, Loose: drawn.Loose,
		Inside: o.plan.Halvings > 0, Sides: []reports.MapScript{}, Lines: []reports.MapLine{}, Counts: []reports.MapCount{},
	}
	first := 1 << o.plan.Halvings
	m.LooseX = span(o.axes[0].Range, first, steps)
	if !o.plan.Line {
		y := o.axis(1)
		m.Y, m.Grid, m.LooseY = &y, (steps+1)*(steps+1), span(o.axes[1].Range, first, steps)
	}
	for at := range drawn.Answers {
		c := cells[o.where(at)]
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
	told := map[string]bool{}
	m.Probes = slices.DeleteFunc(m.Probes, func(p reports.MapProbe) bool {
		where := o.where(sweep.Point{X: p.I, Y: p.J})
		defer func() { told[where] = true }()
		return told[where]
	})
	for _, p := range m.Probes {
		at := sweep.Point{X: p.I, Y: p.J}
		c := cells[o.where(at)]
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

// span returns the length of n steps of a range; for a range of whole numbers at least 1.
func span(r scenarios.Range, n, steps int) string {
	length := (r.To - r.From) * float64(n) / float64(steps)
	if r.Whole {
		length = max(1, length)
	}
	return r.Text(length)
}

// where returns the values of the params at a point, as text.
func (o *mapOptions) where(at sweep.Point) string {
	text := o.axes[0].Name + " " + o.value(0, at)
	if !o.plan.Line {
		text += ", " + o.axes[1].Name + " " + o.value(1, at)
	}
	return text
}

// lines adds the answers along lines through the map (the middle and both edges, along each axis)
// to m. lines also adds the scripts of both sides of a boundary: the first boundary found, with the
// middle lines first.
func (o *mapOptions) lines(m *reports.MapReport, drawn *sweep.Map, cells mapCells) {
	steps, first := o.plan.Steps(), 1<<o.plan.Halvings
	middle := o.plan.Squares / 2 * first
	var boundary []sweep.Run
	along := func(runs []sweep.Run, axis int, where string) {
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
		m.Lines = append(m.Lines, reports.MapLine{Where: where + "along " + o.axes[axis].Name, Text: strings.Join(parts, ", ")})
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
			along(drawn.Row(at), 0, "with "+o.axes[1].Name+" "+o.value(1, sweep.Point{Y: at})+", ")
		}
		for _, at := range []int{middle, 0, steps} {
			along(drawn.Column(at), 1, "with "+o.axes[0].Name+" "+o.value(0, sweep.Point{X: at})+", ")
		}
	}
	for _, c := range m.Counts {
		if boundary != nil || o.plan.Line || c.Answer == reports.MapVoid {
			continue
		}
		// The broken area is an island between the lines above.
		i := slices.IndexFunc(m.Probes, func(p reports.MapProbe) bool { return p.X == c.X && p.Y == c.Y })
		at := sweep.Point{X: m.Probes[i].I, Y: m.Probes[i].J}
		along(drawn.Row(at.Y), 0, "with "+o.axes[1].Name+" "+c.Y+", ")
		along(drawn.Column(at.X), 1, "with "+o.axes[0].Name+" "+c.X+", ")
	}
	if boundary == nil {
		return
	}
	for i, at := range []sweep.Point{boundary[0].To, boundary[1].From} {
		answer := boundary[i].Answer
		script := *o.script
		script.Expects = []scenarios.Expect{{Anomalies: cells[o.where(at)].Anomalies}}
		of := *o
		of.script = &script
		side := reports.MapScript{Answer: answer, X: o.value(0, at), File: sideFile(m.Strategy, m.Scenario, answer), Text: string(of.text(at))}
		if !o.plan.Line {
			side.Y = o.value(1, at)
		}
		words := append([]string{kit.Product, "trace", m.Strategy, o.beside(side.File)}, o.InWorld(o.Worlds[0])...)
		if script, err := scenarios.Parse(side.File, []byte(side.Text)); err == nil && o.varies() && o.Worlds[0] != worlds.Sim {
			words = append(words, "--ttl", script.TTL.String())
		}
		side.Command = shell.Line(words)
		if o.out == "" {
			side.Command = fmt.Sprintf("at %s; --out keeps its script", o.where(at))
		}
		m.Sides = append(m.Sides, side)
	}
}

// beside returns the path of a file in --out, with "./" in front if it could be taken for a flag.
func (o *mapOptions) beside(file string) string {
	path := filepath.Join(o.out, file)
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return path
}

// sideFile returns the file name of the script of one side of the boundary.
func sideFile(strategy, scenario, answer string) string {
	words := strings.FieldsFunc(answer, func(r rune) bool { return r == ' ' || r == ',' })
	return strings.Join(append([]string{strategy, scenario}, words...), "-") + selection.ScriptSuffix
}

// checkSides returns a usage error if writing the map would destroy a file. Such a file is the
// user's script, or a script that the previous map did not write.
func (o *mapOptions) checkSides(strategy string) error {
	former, err := reports.ReadMap(o.out)
	if err != nil {
		former = &reports.MapReport{}
	}
	for _, side := range former.Sides {
		mine, err := os.Stat(o.file)
		other, missing := os.Stat(filepath.Join(o.out, filepath.Base(side.File)))
		if err == nil && missing == nil && os.SameFile(mine, other) {
			return kit.Usage("--out: %s is of the map in that directory, and would be lost with it: name another directory, or copy the script", o.file)
		}
	}
	files, err := os.ReadDir(o.out)
	if err != nil {
		return kit.Usage("--out: %v", kit.PathErrorText(err))
	}
	for _, f := range files {
		ours := f.Type().IsRegular() && slices.ContainsFunc(former.Sides, func(s reports.MapScript) bool { return s.File == f.Name() })
		if !ours && strings.HasPrefix(f.Name(), strategy+"-"+o.script.Name+"-") && strings.HasSuffix(f.Name(), selection.ScriptSuffix) {
			return kit.Usage("--out: %s is none of what was written there, and may be lost: name another directory, or remove it", filepath.Join(o.out, f.Name()))
		}
	}
	return nil
}

// command returns the command that draws the map again.
func (o *mapOptions) command(s strategies.Strategy, scenario string) string {
	words := shell.Command{kit.Product, "map", s.Name, scenario}
	for i, p := range o.axes {
		name := p.Name
		if number, ok := strings.CutPrefix(name, "line-"); ok {
			name = strings.ReplaceAll(number, "-", ":")
		}
		words.Flag(true, string('x'+rune(i)), name+" "+p.Range.String())
	}
	words.Flag(!slices.Equal(o.of, []string{string(checker.Overlap)}), "anomaly", strings.Join(o.of, ","))
	words.Flag(o.plan.Squares != 16, "squares", o.plan.Squares)
	words.Flag(o.plan.Halvings != 3, "halvings", o.plan.Halvings)
	return shell.Line(append(words, o.InWorld(o.Worlds[0])...))
}

// print prints the map in the chosen format, and first writes it into --out if that is set. The
// error is [ExitUndecided] if points have no verdict.
func (o *mapOptions) print(cmd *cobra.Command, m *reports.MapReport) error {
	if o.out != "" {
		if err := o.write(m); err != nil {
			return fmt.Errorf("write the map: %w: name another directory with --out", err)
		}
	}
	var text bytes.Buffer
	write := map[string]func(io.Writer) error{
		kit.FormatTable: m.Table, kit.FormatJSON: m.JSON, formatCSV: m.CSV,
		formatSVG: func(w io.Writer) error { return m.SVG(w, true) },
	}
	if err := write[o.format](&text); err != nil {
		return err
	}
	if _, err := text.WriteTo(cmd.OutOrStdout()); err != nil {
		return err
	}
	if m.Void > 0 {
		return kit.Exit(kit.ExitUndecided, nil)
	}
	return nil
}

// write writes the files of the map into --out. write writes the JSON data last, so that this file
// describes the others.
func (o *mapOptions) write(m *reports.MapReport) error {
	former, err := reports.ReadMap(o.out)
	if err == nil {
		for _, s := range former.Sides {
			if s.File == filepath.Base(s.File) && strings.HasPrefix(s.File, former.Strategy+"-") && !slices.ContainsFunc(m.Sides, func(x reports.MapScript) bool { return x.File == s.File }) {
				kit.RemoveOut(o.out, s.File) // not part of the new map
			}
		}
	}
	for _, s := range m.Sides {
		if err := kit.WriteOut(o.out, s.File, []byte(s.Text)); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name  string
		write func(w io.Writer) error
	}{
		{reports.MapTable, m.CSV},
		{reports.MapPicture, func(w io.Writer) error { return m.SVG(w, true) }},
		{reports.HTMLFile, m.Page},
		{reports.MapFile, m.JSON},
	} {
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return err
		}
		if err := kit.WriteOut(o.out, f.name, b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
