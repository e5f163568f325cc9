package locktest

import (
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/version"
	"github.com/lockfault/lockfault/reports"
)

// report writes the results in the format of lockfault run, into a directory with the names of the
// package and the test.
func (test *test) report(t *testing.T) error {
	t.Helper()
	dir := filepath.Join(test.settings.out, filepath.FromSlash(packagePath()), fileOf(test.name))
	head := reports.Head{Version: version.Of(), World: harness.Sim, Seed: test.settings.seed, TTL: test.cell.TTL}
	report, err := reports.Create(dir, head, reports.Plan{Cells: len(test.played)})
	if err != nil {
		return err
	}
	defer report.Leave()
	for i, o := range test.played {
		if len(o.history.Events) > 0 {
			o.cell.History = path.Join(reports.HistoryDir, harness.Sim, o.cell.Strategy, o.cell.Scenario+".jsonl")
			if err := reports.WriteHistory(report.Dir(), o.cell.History, o.history); err != nil {
				return err
			}
		}
		if err := report.Add(i, o.cell); err != nil {
			return err
		}
	}
	if err := report.Close(); err != nil {
		return err
	}
	t.Logf("report: %s", filepath.Join(dir, reports.MarkdownFile))
	return nil
}

// packagePath returns the import path of the package under test.
func packagePath() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Path == "" {
		return "."
	}
	return strings.TrimSuffix(info.Path, ".test")
}
