package reports

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
)

// An avoidable holds the anomalies of a strategy that other locks of its class did not show under
// the same scenario.
type avoidable struct {
	strategy string
	all      int // anomalies, counted once under each scenario
	counts   map[checker.Anomaly]int
	by       []string // locks that avoided some, most anomalies first
}

// avoidables returns the strategies with avoidable anomalies in the first world.
func (s *aggregate) avoidables() (list []avoidable) {
	for _, name := range s.strategies.names {
		a := avoidable{strategy: name, counts: map[checker.Anomaly]int{}}
		avoided := map[string]int{}
		for _, c := range s.cells {
			if c.Strategy != name || c.World != s.first() || !decided(c.Verdict) {
				continue
			}
			for _, anomaly := range c.Anomalies {
				a.all++
				by := s.avoiders(c, anomaly)
				if len(by) == 0 {
					continue
				}
				a.counts[anomaly]++
				for _, other := range by {
					if avoided[other]++; avoided[other] == 1 {
						a.by = append(a.by, other)
					}
				}
			}
		}
		slices.SortStableFunc(a.by, func(x, y string) int { return avoided[y] - avoided[x] })
		if len(a.counts) > 0 {
			list = append(list, a)
		}
	}
	return list
}

// anomalies returns the avoidable anomalies in the order of [checker.Anomalies], and their number,
// counted once under each scenario.
func (a avoidable) anomalies() (list []checker.Anomaly, n int) {
	for _, anomaly := range checker.Anomalies() {
		if k := a.counts[anomaly]; k > 0 {
			list = append(list, anomaly)
			n += k
		}
	}
	return list, n
}

// most returns the (at most 2) most frequent avoidable anomalies.
func (a avoidable) most() []checker.Anomaly {
	list, _ := a.anomalies()
	slices.SortStableFunc(list, func(x, y checker.Anomaly) int { return a.counts[y] - a.counts[x] })
	return list[:min(2, len(list))]
}

// Avoidable writes, line by line, the avoidable anomalies in a results file. An anomaly is
// avoidable if another lock of the same class (with the same service, number of nodes, renewal,
// fencing and validity) did not show it under the same scenario. Avoidable writes nothing without
// such an anomaly.
func Avoidable(w io.Writer, resultsFile string) error {
	s, err := newSurvey(resultsFile)
	if err != nil {
		return err
	}
	list := s.avoidables()
	if len(list) == 0 {
		return nil
	}
	b := newText(w)
	b.WriteString("avoidable, since another lock of its kind did not show it there:\n")
	for _, a := range list {
		kinds, n := a.anomalies()
		mostly := ""
		if len(kinds) > len(a.most()) {
			mostly = "mostly "
		}
		fmt.Fprintf(b, "  %s: %d of %d, %s%s; see %s\n", shown(a.strategy), n, a.all, mostly, names(a.most()), shown(a.by[0]))
	}
	b.WriteString("\n")
	return b.Flush()
}

// markdown writes the avoidable and the inherent anomalies as Markdown.
func (s *aggregate) markdown(b *bufio.Writer) {
	list, inherent := s.avoidables(), s.inherent()
	if len(list)+len(inherent) == 0 {
		return
	}
	b.WriteString("\n## Inherent or avoidable\n\nAn anomaly is avoidable if another lock of the same kind did not show it under the same scenario:\n" +
		"one on as many nodes that renews its lease, hands out fencing tokens and says its validity, or not, as this one.\n")
	if len(list) > 0 {
		b.WriteString("\n| strategy | avoidable, of all that it showed | avoided by |\n|---|---|---|\n")
		for _, a := range list {
			anomalies, n := a.anomalies()
			words := each(anomalies, func(x checker.Anomaly) string { return escape(fmt.Sprintf("%s (%d)", x, a.counts[x])) })
			fmt.Fprintf(b, "| %s | %d of %d: %s | %s |\n", escape(shown(a.strategy)), n, a.all, strings.Join(words, ", "), escape(some(each(a.by, shown), 5)))
		}
	}
	if len(inherent) > 0 {
		b.WriteString("\nWhat every lock of a kind showed is inherent in it, as far as this run tells:\n\n| kind | anomaly | under |\n|---|---|---|\n")
		for _, i := range inherent {
			fmt.Fprintf(b, "| %s | %s | %s |\n", escape(i.Class), escape(string(i.Anomaly)), escape(i.Scenarios))
		}
	}
}
