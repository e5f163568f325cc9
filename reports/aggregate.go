package reports

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/reports/diagram"
	"github.com/lockfault/lockfault/reports/page"
)

// An aggregate holds the results of a whole run for a page. An aggregate keeps a few bytes of each
// cell.
type aggregate struct {
	run        Head
	worlds     index
	strategies index
	scenarios  index
	cells      []Cell // without the fields that need much memory
	at         map[[3]string]int
	agree      Agreement
	all        Comparison
	costs      roundTrips
	commands   typicalCounts       // commands of a successful operation
	trips      map[costOf]between  // round trips of a successful operation, the least in each cell
	hashes     map[string]string   // hashes of the scripts, by name
	traits     map[string]traits   // traits of the strategies
	byClass    map[string][]string // strategies of each class
	standard   standard
}

// newSurvey reads the results of a file.
func newSurvey(file string) (*aggregate, error) { return surveyBeside(readStandard(), file) }

// surveyBeside reads the results of a file. The standard holds known results of locks that the run
// may not include.
func surveyBeside(known standard, file string) (*aggregate, error) {
	s := &aggregate{at: map[[3]string]int{}, costs: roundTrips{}, commands: typicalCounts{}, trips: map[costOf]between{}, hashes: map[string]string{}, traits: map[string]traits{}, byClass: map[string][]string{}, standard: known}
	var err error
	if s.run, err = Scan(file, s.add); err != nil {
		return nil, err
	}
	s.classify()
	return s, nil
}

// add adds a cell, without the fields that need much memory.
func (s *aggregate) add(c Cell) error {
	s.worlds.place(c.World)
	s.strategies.place(c.Strategy)
	s.scenarios.place(c.Scenario)
	s.costs.add(c.Strategy, c.RoundTrips)
	for op, n := range c.Commands {
		s.commands.add(c.Strategy, op, n)
	}
	for op, n := range c.RoundTrips {
		of := costOf{c.World, c.Strategy, op}
		s.trips[of] = s.trips[of].and(n)
	}
	if err := s.agree.Add(c); err != nil {
		return err
	}
	if err := s.all.Add(c); err != nil {
		return err
	}
	c.Witnesses, c.Conflict, c.RoundTrips, c.Commands, c.Late = nil, nil, nil, nil, nil
	c.Reason, _, _ = strings.Cut(clipTo(c.Reason, 200), "\n")
	key := [3]string{c.World, c.Strategy, c.Scenario}
	if _, twice := s.at[key]; twice {
		return fmt.Errorf("the cell %s is there twice", c.name())
	}
	s.at[key] = len(s.cells)
	s.cells = append(s.cells, c)
	return nil
}

// classify determines the class of each strategy: its number of nodes, whether it renews its lease
// by itself, whether it returns fencing tokens, and whether it returns the validity of a hold.
// Tokens and validity are detected from the cells of this run or of the standard.
func (s *aggregate) classify() {
	for _, d := range s.run.Strategies {
		s.traits[d.Name] = traits{Service: d.Service, Nodes: d.Nodes, Renews: d.Renews}
	}
	for _, script := range s.run.Scripts {
		s.hashes[script.Name] = script.Hash
	}
	for _, c := range s.cells {
		t := s.traits[c.Strategy]
		t.Nodes, t.Tokens, t.Validity = max(t.Nodes, c.Nodes), t.Tokens || c.Tokens, t.Validity || c.Validity
		s.traits[c.Strategy] = t
	}
	for _, t := range s.standard.Strategies {
		if here, ok := s.traits[t.Name]; ok && here.Service == t.Service && here.Nodes == t.Nodes && here.Renews == t.Renews {
			s.traits[t.Name] = t
		}
	}
	for _, name := range s.strategies.names {
		t := s.traits[name]
		t.Name = name
		s.traits[name] = t
		s.byClass[t.class()] = append(s.byClass[t.class()], name)
	}
}

// first returns the world that the summary covers, or "" if there are no cells.
func (s *aggregate) first() string {
	if len(s.worlds.names) == 0 {
		return ""
	}
	return s.worlds.names[0]
}

// cell returns a cell, and whether it is in the results.
func (s *aggregate) cell(world, strategy, scenario string) (Cell, bool) {
	at, ok := s.at[[3]string{world, strategy, scenario}]
	if !ok {
		return Cell{}, false
	}
	return s.cells[at], true
}

// peers returns the other locks of the cell's class that did not show the anomaly under its
// scenario, and counts those that did. Locks of this run come first, then those that only the
// standard has.
func (s *aggregate) peers(c Cell, a checker.Anomaly) (avoided []string, showed int) {
	class := s.traits[c.Strategy].class()
	for _, name := range s.byClass[class] {
		other, ok := s.cell(c.World, name, c.Scenario)
		if !ok || name == c.Strategy || !decided(other.Verdict) {
			continue
		}
		if slices.Contains(other.Anomalies, a) {
			showed++
		} else if (other.Unjudged == nil || !slices.Contains(checker.ServerSide(), a)) && earned(other, c) {
			avoided = append(avoided, name)
		}
	}
	known, more := s.otherLocks(class, c, a, func(name string) bool {
		other, ok := s.cell(c.World, name, c.Scenario)
		return name == c.Strategy || ok && decided(other.Verdict)
	})
	return append(avoided, known...), showed + more
}

// avoiders returns the locks that show that an anomaly of a cell is avoidable: the peers that did not
// show it. Where the cell is judged by the class of its lock, a known limitation is not avoidable.
func (s *aggregate) avoiders(c Cell, a checker.Anomaly) []string {
	if c.limited(a) {
		return nil
	}
	avoided, _ := s.peers(c, a)
	return avoided
}

// avoided returns a sentence that states whether the anomaly of a cell is inherent in its class of
// locks, or avoidable; empty for a cell whose anomalies are judged by the class of its lock.
func (s *aggregate) avoided(c Cell, a checker.Anomaly) string {
	if c.ExpectedBy == ByClass {
		return "" // its outcome says so
	}
	switch avoided, showed := s.peers(c, a); {
	case len(avoided) > 0:
		return fmt.Sprintf("Avoidable: of the same kind %s did not show it.", some(each(avoided, shown), 5))
	case showed > 0:
		return "Inherent: every other lock of its kind shows it too."
	default:
		return "No other lock of its kind was played here, and none is known."
	}
}

// command returns the command line that repeats a cell.
func (s *aggregate) command(verb string, c Cell) string {
	scenario := c.Scenario
	for _, script := range s.run.Scripts {
		if script.Name == c.Scenario && script.File != "" {
			scenario = script.File
		}
	}
	words := shell.Command{Tool, verb, c.Strategy, scenario}
	for _, d := range s.run.Strategies {
		if d.Name == c.Strategy {
			words = append(words, d.Flags...)
		}
	}
	words.Flag(c.World != Reference, "world", c.World)
	words = append(words, s.run.Flags...)
	return shell.Line(each(words, shortLine))
}

// page returns the head of a page, which is everything except the stories.
func (s *aggregate) page() page.Head {
	h := page.Head{Title: "lockfault report", Tally: s.all.Tally().String() + ".", Worlds: s.worlds.names, Ranking: s.ranking(), Inherent: s.inherent()}
	if s.run.Interrupted {
		h.Warning = "The run was interrupted: cells are missing."
	}
	h.Measured = len(s.run.Costs) > 0
	if !s.agree.Empty() {
		h.Agreement = each(s.agree.Lines(), shortLine)
	}
	for _, c := range s.cells {
		link := page.Link{ID: s.id(c), Text: shown(c.Strategy) + " under " + shown(c.Scenario) + s.elsewhere(c)}
		h.Unexpected = grouped(h.Unexpected, c.Difference(), link)
		h.Better = grouped(h.Better, improvement(c), link)
		h.Less = grouped(h.Less, lesser(c), link)
	}
	for _, d := range checker.Descriptions() {
		h.Anomalies = append(h.Anomalies, page.Anomaly{Name: string(d.Name), Short: d.Short, Text: d.Meaning})
	}
	kinds := map[string]string{}
	for _, script := range s.run.Scripts {
		list := faultKinds(script.Text)
		kinds[script.Name] = strings.Join(list, " ")
		for _, k := range list {
			if !slices.Contains(h.Faults, k) {
				h.Faults = append(h.Faults, k)
			}
		}
		h.Scripts = append(h.Scripts, page.Script{Name: shown(script.Name), Text: printable.Text(script.Text), Hash: shown(script.Hash)})
	}
	slices.Sort(h.Faults)
	h.Matrix = s.matrix(kinds)
	h.Provenance = s.provenance()
	return h
}

// grouped adds a cell to the group with the same text. grouped ignores an empty text. Texts that
// differ only in durations share a group, whose text then omits the durations.
func grouped(list []page.Group, says string, link page.Link) []page.Group {
	if says = shortLine(says); says == "" {
		return list
	}
	g := placed(&list, func(g page.Group) bool { return withoutTimes(g.Summary) == withoutTimes(says) }, page.Group{Summary: says})
	if g.Summary != says {
		g.Summary = withoutTimes(says)
	}
	g.Links = append(g.Links, link)
	return list
}

// withoutTimes replaces each duration in Go's notation by an ellipsis.
func withoutTimes(text string) string {
	words := strings.Split(text, " ")
	for i, word := range words {
		if _, err := time.ParseDuration(strings.TrimRight(word, ",;:")); err == nil {
			words[i] = "…"
		}
	}
	return strings.Join(words, " ")
}

// matrix returns the comparison with all worlds in one table.
func (s *aggregate) matrix(kinds map[string]string) page.Matrix {
	m := page.Matrix{Strategies: each(s.strategies.names, shown)}
	for _, scenario := range s.scenarios.names {
		row := page.Row{Scenario: shown(scenario), Faults: kinds[scenario]}
		for _, strategy := range s.strategies.names {
			row.Squares = append(row.Squares, s.square(strategy, scenario))
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}

// square returns the entry for a strategy under a scenario: the result in the first world, and
// below it whether each other world shows the same or something else.
func (s *aggregate) square(strategy, scenario string) page.Square {
	c, ok := s.cell(s.first(), strategy, scenario)
	if !ok {
		c.Verdict = NotApplicable
	}
	q := page.Square{Part: s.part(c), Class: string(c.Verdict), Text: shortLine(c.Difference())}
	if c.Verdict == NotApplicable {
		q.Class, q.Text = "none", clipTo(shortLine(c.Reason), 200)
	}
	if !ok {
		q.Words = []page.Word{{Short: "not played"}}
	}
	met, differs := slices.Clone(c.Anomalies), !c.AsExpected && c.Verdict != NotApplicable
	for _, world := range s.worlds.names[1:] {
		other, ok := s.cell(world, strategy, scenario)
		if !ok || other.Verdict == NotApplicable && c.Verdict == NotApplicable {
			continue
		}
		part := s.part(other)
		part.World, part.Marks = shown(world), agrees(other)+part.Marks
		if agree := other.AgreesWithSim; agree != nil && *agree && slices.Equal(other.Anomalies, c.Anomalies) {
			part.Words = nil // the same words are shown above
		} else if other.Verdict != NotApplicable && len(part.Words) == 0 {
			part.Words = []page.Word{{Short: "·"}}
		}
		q.OtherParts = append(q.OtherParts, part)
		met, differs = append(met, other.Anomalies...), differs || !other.AsExpected && other.Verdict != NotApplicable
	}
	if differs {
		q.Class = "differs"
	}
	q.Anomalies = spaced(ordered(met))
	return q
}

// part returns the entry of a single cell.
func (s *aggregate) part(c Cell) page.Part {
	if c.Verdict == NotApplicable {
		return page.Part{}
	}
	p := page.Part{ID: s.id(c), Name: fmt.Sprintf("%s under %s%s: %s", shown(c.Strategy), shown(c.Scenario), s.elsewhere(c), outcomeText(c))}
	if !c.Decided() {
		p.Words = []page.Word{{Short: string(c.Verdict)}}
	}
	for _, a := range c.Anomalies {
		p.Words = append(p.Words, page.Word{Short: shortName(a), Avoidable: len(s.avoiders(c, a)) > 0})
	}
	if !c.AsExpected {
		p.Marks = "!"
	}
	if c.ByChance() != "" {
		p.Marks += markChance
	}
	if c.Untested() {
		p.Marks += markUntested
	}
	return p
}

// elsewhere names the world of a cell. elsewhere returns "" for the first world.
func (s *aggregate) elsewhere(c Cell) string {
	if c.World == s.first() {
		return ""
	}
	return " in " + shown(c.World)
}

// outcomeText describes the result of a cell, and whether it agrees with [Reference].
func outcomeText(c Cell) string {
	text := string(c.Verdict)
	if len(c.Anomalies) > 0 {
		text += ": " + names(c.Anomalies)
	}
	if agree := c.AgreesWithSim; agree != nil {
		text += map[bool]string{true: ", agrees with " + Reference, false: ", unlike " + Reference}[*agree]
	}
	return text
}

// agrees returns the sign for agreement or disagreement with [Reference], or "" if the cell was not
// compared.
func agrees(c Cell) string {
	if c.AgreesWithSim == nil {
		return ""
	}
	return map[bool]string{true: "=", false: "≠"}[*c.AgreesWithSim]
}

// shortName returns the name of an anomaly in tables.
func shortName(a checker.Anomaly) string {
	d, _ := checker.Describe(a)
	return d.Short
}

// faultKinds returns the words of the faults in a script, without those that only end others.
func faultKinds(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		d, ok := faults.DefinitionOf(strings.Fields(line))
		if ok && !d.EndsOnly && !slices.Contains(list, d.Word) {
			list = append(list, d.Word)
		}
	}
	slices.Sort(list)
	return list
}

// inherent returns the anomalies that every lock of a class showed under a scenario, among the
// locks that were run or are in the standard.
func (s *aggregate) inherent() []page.Inherent {
	var list []page.Inherent
	for _, class := range slices.Sorted(maps.Keys(s.byClass)) {
		for _, a := range checker.Anomalies() {
			var under []string
			for _, scenario := range s.scenarios.names {
				for _, name := range s.byClass[class] {
					c, ok := s.cell(s.first(), name, scenario)
					if !ok || !slices.Contains(c.Anomalies, a) || c.ExpectedBy == ByClass && !c.limited(a) {
						continue
					}
					if avoided, showed := s.peers(c, a); len(avoided) == 0 && showed > 0 {
						under = append(under, scenario)
					}
					break
				}
			}
			if len(under) > 0 {
				list = append(list, page.Inherent{Class: class, Anomaly: string(a), Scenarios: strings.Join(each(under, shown), ", ")})
			}
		}
	}
	return list
}

// provenance returns names and values that identify the origin of the results.
func (s *aggregate) provenance() [][2]string {
	r := s.run
	list := [][2]string{{"version", r.Tool + " " + r.Version}, {"world", strings.ReplaceAll(r.World, ",", " and ")}, {"seed", fmt.Sprint(r.Seed)}}
	lease := "each script's own"
	if r.TTL > 0 {
		lease = r.TTL.String()
	}
	list = append(list, [2]string{"lease", lease})
	if r.Machine != "" {
		list = append(list, [2]string{"machine", r.Machine})
	}
	if len(r.Command) > 0 {
		list = append(list, [2]string{"command", shell.Line(each(r.Command, shortLine))})
	}
	if len(r.Scripts) > 0 {
		list = append(list, [2]string{"scripts", fmt.Sprintf("%s, SHA-256 beside each above, of all together %s", count(len(r.Scripts), "script"), hashOf(r.Scripts))})
	}
	for i := range list {
		list[i][1] = clipTo(printable.Line(list[i][1]), 1000)
	}
	return append(list, [2]string{"to check", Tool + " report DIR makes this file again from results.json and histories/, byte for byte"})
}

// ranking returns the strategies, ordered by the share of scenarios that they survived in the first
// world. Ties go to fewer avoidable anomalies, then fewer nodes, then a cheaper acquire.
func (s *aggregate) ranking() []page.Rank {
	var list []page.Rank
	for _, name := range s.strategies.names {
		list = append(list, s.rank(name))
	}
	slices.SortStableFunc(list, func(a, b page.Rank) int {
		return cmp.Or(b.Survived*max(1, a.Played)-a.Survived*max(1, b.Played), a.Avoidable-b.Avoidable, a.Nodes-b.Nodes, cmp.Compare(a.Acquire, b.Acquire))
	})
	for i := range list {
		list[i].Place = i + 1
		list[i].Advice = s.advice(list[i], list)
	}
	for i := range list {
		list[i].Name = shown(list[i].Name)
	}
	return list
}

func (s *aggregate) rank(name string) page.Rank {
	r := page.Rank{Name: name, Class: s.traits[name].class(), Nodes: s.traits[name].Nodes, Recovery: "–", NodeDown: "–", Overlap: "none", Acquire: "–", Release: "–"}
	var recovery, together time.Duration
	for _, c := range s.cells {
		if c.Strategy != name || c.World != s.first() || !decided(c.Verdict) {
			continue
		}
		r.Played++
		if c.Verdict == Held {
			r.Survived++
		}
		if c.ByChance() != "" {
			r.Chance++
		}
		for _, a := range c.Anomalies {
			if len(s.avoiders(c, a)) > 0 {
				r.Avoidable++
			}
			if a == checker.StaleWrite {
				r.Stale++
			}
		}
		if took, ok := c.Measures["recovery"]; ok && c.Scenario == "holder-crash" {
			recovery = took
			r.Recovery = diagram.Words(took)
		}
		if c.Scenario == "node-down" {
			r.NodeDown = "available"
			if slices.Contains(c.Anomalies, checker.Unavailable) {
				r.NodeDown = "unavailable"
			}
			if c.ByChance() != "" {
				r.NodeDown += " " + markChance
			}
		}
		together += c.Together
	}
	if together > 0 {
		r.Overlap = diagram.Words(together)
	}
	r.RecoveryNS, r.OverlapNS, r.NodesSort = int64(recovery), int64(together), int64(r.Nodes)
	r.Acquire, r.AcquireSort = s.tripsAndCommands(name, checker.Acquire)
	r.Release, r.ReleaseSort = s.tripsAndCommands(name, checker.Release)
	for _, c := range s.run.Costs {
		if c.Strategy == name && r.P50 == "" {
			r.P50, r.P99 = diagram.Words(c.P50), diagram.Words(c.P99)
		}
	}
	return r
}

// tripsAndCommands returns the smallest number of round trips and the typical number of commands of
// a success as text, and a sort key.
func (s *aggregate) tripsAndCommands(name string, op checker.Op) (says string, by int64) {
	trips, ok := s.costs[name][op]
	if !ok {
		return "–", 0
	}
	n, ok := s.commands.of(name, op)
	if !ok {
		return fmt.Sprint(trips), int64(trips) << 20
	}
	return fmt.Sprintf("%d · %d", trips, n), int64(trips)<<20 + int64(n)
}

// advice returns the conclusion for a strategy in one line: that another lock of its class shows a
// proper subset of its anomalies, or what the strategy is best at.
func (s *aggregate) advice(r page.Rank, all []page.Rank) string {
	if r.Played == 0 {
		return "Nothing was decided."
	}
	best := ""
	most := 0
	for _, other := range all {
		if other.Name == r.Name || other.Class != r.Class {
			continue
		}
		if fewer, more := s.compare(r.Name, other.Name); more == 0 && fewer > most {
			best, most = other.Name, fewer
		}
	}
	if best != "" {
		return fmt.Sprintf("Take %s instead: of the same kind, it shows nothing that this does not, and %s fewer.", shown(best), anomalies(most))
	}
	var parts []string
	rank, kin := 0, 0
	for _, other := range all {
		if other.Nodes == r.Nodes {
			kin++
			if other.Survived*r.Played > r.Survived*other.Played {
				rank++
			}
		}
	}
	if rank == 0 && kin > 1 && r.Nodes > 0 {
		parts = append(parts, fmt.Sprintf("Nothing on %s survives more.", count(r.Nodes, "node")))
	}
	if r.NodeDown == "available" {
		parts = append(parts, "Bears a node that is down.")
	}
	if worst := s.worst(r.Name); len(worst) > 0 {
		parts = append(parts, "Be ready for "+strings.Join(worst, ", ")+".")
	} else {
		parts = append(parts, "Showed nothing.")
	}
	if r.Chance > 0 {
		parts = append(parts, fmt.Sprintf("In %s what it shows is chance (%s), and may be more another time.", count(r.Chance, "scenario"), markChance))
	}
	return strings.Join(parts, " ")
}

// compare counts the anomalies that only a shows (fewer) and that only b shows (more), under the
// scenarios that are decided for both.
func (s *aggregate) compare(a, b string) (fewer, more int) {
	for _, scenario := range s.scenarios.names {
		x, ok := s.cell(s.first(), a, scenario)
		y, also := s.cell(s.first(), b, scenario)
		if ok && also && decided(x.Verdict) && decided(y.Verdict) {
			fewer += len(without(x.Anomalies, y.Anomalies))
			more += len(without(y.Anomalies, x.Anomalies))
		}
	}
	return fewer, more
}

// worst returns the (at most 3) anomalies that a strategy showed under most scenarios.
func (s *aggregate) worst(name string) []string {
	counts := map[checker.Anomaly]int{}
	for _, c := range s.cells {
		if c.Strategy == name && c.World == s.first() {
			for _, a := range c.Anomalies {
				counts[a]++
			}
		}
	}
	list := checker.Anomalies()
	slices.SortStableFunc(list, func(a, b checker.Anomaly) int { return counts[b] - counts[a] })
	var out []string
	for _, a := range list {
		if counts[a] > 0 && len(out) < 3 {
			out = append(out, fmt.Sprintf("%s (%s)", a, count(counts[a], "scenario")))
		}
	}
	return out
}

func anomalies(n int) string {
	if n == 1 {
		return "1 anomaly"
	}
	return fmt.Sprintf("%d anomalies", n)
}

// id returns the ID of a cell's story. id consists of the cell's names, which stay the same from
// run to run, unless they have unusual characters or are too long.
func (s *aggregate) id(c Cell) string {
	id := c.Strategy + "/" + c.Scenario
	if c.World != s.first() {
		id += "@" + c.World
	}
	if strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./@") != "" || len(id) > 200 {
		return fmt.Sprintf("cell-%d", s.at[[3]string{c.World, c.Strategy, c.Scenario}])
	}
	return id
}
