package reports

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
)

// A standard holds the known results of the library's strategies under its scenarios. With it, a
// run of a single lock can show which of its anomalies other locks of its class avoid. [Standard]
// makes it from a run.
type standard struct {
	Strategies []traits       `json:"strategies"`
	Scenarios  []standardRows `json:"scenarios"`
}

// traits holds the properties that define the class of a lock.
type traits struct {
	Name     string `json:"name"`
	Service  string `json:"service,omitempty"` // service that the lock uses, if not Redis
	Nodes    int    `json:"nodes"`
	Renews   bool   `json:"renews,omitempty"`
	Tokens   bool   `json:"tokens,omitempty"`
	Validity bool   `json:"validity,omitempty"`
}

// class returns the name of the lock's class.
func (t traits) class() string {
	var parts []string
	if t.Service != "" {
		parts = append(parts, t.Service)
	}
	if t.Nodes > 0 {
		parts = append(parts, count(t.Nodes, "node"))
	}
	plain := len(parts)
	for _, trait := range []struct {
		has  bool
		says string
	}{{t.Renews, "renews"}, {t.Tokens, "fenced"}, {t.Validity, "says its validity"}} {
		if trait.has {
			parts = append(parts, trait.says)
		}
	}
	if len(parts) == plain {
		parts = append(parts, "plain lease")
	}
	return strings.Join(parts, ", ")
}

// standardRows holds the results under a scenario whose text has this hash. Strategies that are
// missing were not applicable or not decided there.
type standardRows struct {
	Name  string                       `json:"name"`
	Hash  string                       `json:"hash"`
	Shows map[string][]checker.Anomaly `json:"shows"`
	// Acquires holds which acquires of a strategy succeeded.
	Acquires map[string]Acquires `json:"acquires"`
	// Unjudged holds the strategies whose server-side anomalies were not checked.
	Unjudged []string `json:"unjudged,omitempty"`
}

//go:embed standard.json
var standardText []byte

// readStandard returns the standard that is embedded in the program. readStandard panics if the
// embedded file is invalid.
func readStandard() standard {
	var s standard
	if err := json.Unmarshal(standardText, &s); err != nil {
		panic(fmt.Sprintf("reports: standard.json, which is part of the program: %v", err))
	}
	return s
}

// Standard writes the results in a file in the form of the embedded standard. The results must be
// those of a complete run in one world with the leases of the scripts; others are an error.
func Standard(w io.Writer, resultsFile string) error {
	s, err := surveyBeside(standard{}, resultsFile) // or traits of the old standard would persist
	if err != nil {
		return err
	}
	if s.run.TTL != 0 || s.run.Interrupted || len(s.worlds.names) != 1 {
		return fmt.Errorf("reports: %s is not of a whole run in one world with the leases of the scripts", resultsFile)
	}
	var out standard
	for _, name := range s.strategies.names {
		out.Strategies = append(out.Strategies, s.traits[name])
	}
	for _, script := range s.run.Scripts {
		row := standardRows{Name: script.Name, Hash: script.Hash, Shows: map[string][]checker.Anomaly{}, Acquires: map[string]Acquires{}}
		for _, name := range s.strategies.names {
			c, ok := s.cell(s.first(), name, script.Name)
			if !ok || !decided(c.Verdict) {
				continue
			}
			if c.Anomalies == nil {
				c.Anomalies = []checker.Anomaly{}
			}
			row.Shows[name], row.Acquires[name] = c.Anomalies, c.Acquires
			if c.Unjudged != nil {
				row.Unjudged = append(row.Unjudged, name)
			}
		}
		out.Scenarios = append(out.Scenarios, row)
	}
	return out.write(w)
}

// write writes JSON with a line for each strategy and scenario, so that text diffs are readable.
func (s standard) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString("{\"strategies\":[\n")
	if err := writeLines(b, s.Strategies); err != nil {
		return err
	}
	b.WriteString("],\"scenarios\":[\n")
	if err := writeLines(b, s.Scenarios); err != nil {
		return err
	}
	b.WriteString("]}\n")
	return b.Flush()
}

// writeLines writes the elements of a JSON array, each on a line.
func writeLines[T any](b *bufio.Writer, list []T) error {
	for i, item := range list {
		text, err := json.Marshal(item)
		if err != nil {
			return err
		}
		b.Write(text)
		if i < len(list)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	return nil
}

// otherLocks returns the locks of a class that avoid an anomaly of a cell according to the standard,
// and counts those that show it. otherLocks leaves out the locks for which played returns
// true. If the script's text differs from the standard's, or the run changed the lease, it returns
// nothing.
func (s *aggregate) otherLocks(class string, c Cell, a checker.Anomaly, played func(name string) bool) (avoided []string, showed int) {
	at := slices.IndexFunc(s.standard.Scenarios, func(r standardRows) bool { return r.Name == c.Scenario && r.Hash == s.hashes[c.Scenario] })
	if at < 0 || s.run.TTL != 0 {
		return nil, 0
	}
	row := s.standard.Scenarios[at]
	for _, t := range s.standard.Strategies {
		shows, ok := row.Shows[t.Name]
		switch {
		case !ok || t.class() != class || played(t.Name):
		case slices.Contains(shows, a):
			showed++
		case row.Acquires[t.Name].lacking(c.Acquires) != "":
		case !slices.Contains(row.Unjudged, t.Name) || !slices.Contains(checker.ServerSide(), a):
			avoided = append(avoided, t.Name)
		}
	}
	return avoided, showed
}
