package kit

import (
	"errors"
	"io/fs"
	"os"

	"github.com/lockfault/lockfault/reports"
)

// NewDiff compares the reports at two paths that a user named.
func NewDiff(old, new string, renamed map[string]string) (*reports.Diff, error) {
	before, err := ReadResults(old)
	if err != nil {
		return nil, err
	}
	after, err := ReadResults(new)
	if err != nil {
		return nil, err
	}
	diff, err := reports.NewDiff(before, after, renamed)
	if err != nil {
		return nil, Exit(ExitUsage, err)
	}
	return diff, nil
}

// ReadResults reads the results of a report that a user named: a directory, or its results file.
func ReadResults(path string) (*reports.Results, error) {
	if err := checkReport(path); err != nil {
		return nil, err
	}
	r, err := reports.ReadResults(reports.ResultsIn(path))
	if err != nil {
		return nil, Usage("%s is no report: give the directory of one, or its %s: %w", path, reports.ResultsFile, err)
	}
	return r, nil
}

// checkReport returns a usage error if no report exists at path.
func checkReport(path string) error {
	switch _, err := os.Stat(reports.ResultsIn(path)); {
	case errors.Is(err, fs.ErrNotExist) && reports.ResultsIn(path) != path:
		return Usage("there is no report in %s: no %s", path, reports.ResultsFile)
	case err != nil:
		return Usage("there is no report at %s: give a report's directory, or its %s", path, reports.ResultsFile)
	}
	return nil
}

// DiffStatus returns the exit status of a comparison: [ExitDiffers] if a cell got worse,
// [ExitUndecided] if a cell lost its verdict, or nil.
func DiffStatus(d *reports.Diff) error {
	switch {
	case d.Has(reports.Worse):
		return Exit(ExitDiffers, nil)
	case d.Has(reports.Lost):
		return Exit(ExitUndecided, nil)
	}
	return nil
}
