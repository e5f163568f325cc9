package runcmd

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/reports"
)

// chosenForm is a report format and the file to write it to; an empty file is standard output.
type chosenForm struct {
	reports.Format
	file string
}

// forms returns all formats of a run's report. The table exists only for runs, because it shows
// more than the results hold.
func forms() []reports.Format {
	return append([]reports.Format{{Name: kit.FormatTable, Lines: true}}, reports.Forms()...)
}

func formNames() []string {
	return kit.Each(forms(), func(f reports.Format) string { return f.Name })
}

// chooseForms parses the values of --format: FORM or FORM=FILE. At most one document can go to
// standard output.
func chooseForms(words []string, out string) (list []chosenForm, err error) {
	document := ""
	for _, word := range words {
		name, file, named := strings.Cut(word, "=")
		if err := kit.OneOf("format", name, formNames()); err != nil {
			return nil, err
		}
		f := chosenForm{forms()[slices.Index(formNames(), name)], file}
		switch {
		case named && f.Name == kit.FormatTable:
			return nil, kit.Usage("--format table is for standard output: markdown is the same for a file")
		case named && file == "":
			return nil, kit.Usage("--format %s needs a file behind it: %sFILE", word, word)
		case named:
			if err := checkFormFile(word, file, out, list); err != nil {
				return nil, err
			}
		case document != "" && f.Name != document, document == "" && !f.Lines && len(list) > 0 && onOutput(list):
			return nil, kit.Usage("--format: %s and others can't both be on standard output: name a file, %s=FILE", f.Name, f.Name)
		case !f.Lines:
			document = f.Name
		}
		list = append(list, f)
	}
	if len(list) == 0 {
		return nil, kit.Usage("--format is empty: name a form, or leave it out for a table")
	}
	return list, nil
}

// checkFormFile returns a usage error if a format cannot be written to file.
func checkFormFile(word, file, out string, list []chosenForm) error {
	dir, missing := os.Stat(filepath.Dir(file))
	info, err := os.Stat(file)
	taken := slices.ContainsFunc(list, func(f chosenForm) bool { return f.file != "" && filepath.Clean(f.file) == filepath.Clean(file) })
	if wrong := cmp.Or(
		kit.UsageIf(missing != nil || !dir.IsDir(), "--format %s: there is no directory %s", word, filepath.Dir(file)),
		kit.UsageIf(err == nil && info.IsDir(), "--format %s: %s is a directory: name a file", word, file),
		kit.UsageIf(reports.IsPartOfReport(out, file), "--format %s: %s is a file of the report itself: name another", word, file),
		kit.UsageIf(taken, "--format: %s and another form can't both go to %s", word, file),
	); wrong != nil {
		return wrong
	}
	if err != nil || info.Mode().IsRegular() { // pipes and devices need no check
		if err := atomicdir.CheckFile(file); err != nil {
			return kit.Usage("--format %s: %v", word, kit.PathErrorText(err))
		}
	}
	return nil
}

// checkInputs returns a usage error if a format's file is also an input of the run.
func (o *runOptions) checkInputs(scripts []selection.Chosen) error {
	inputs := []string{o.costs, o.Expect}
	if o.baseline != "" {
		inputs = append(inputs, reports.ResultsIn(o.baseline))
	}
	for _, s := range scripts {
		inputs = append(inputs, s.File)
	}
	for _, f := range o.forms {
		to, err := os.Stat(f.file)
		if f.file == "" || err != nil {
			continue
		}
		for _, name := range inputs {
			if from, err := os.Stat(name); name != "" && err == nil && os.SameFile(from, to) {
				return kit.Usage("--format %s=%s: the run reads that file: name another", f.Name, f.file)
			}
		}
	}
	return nil
}

// onOutput reports whether a format goes to standard output.
func onOutput(list []chosenForm) bool {
	return slices.ContainsFunc(list, func(f chosenForm) bool { return f.file == "" })
}

// tabled reports whether standard output shows the table or no format at all.
func (o *runOptions) tabled() bool {
	return !onOutput(o.forms) || slices.ContainsFunc(o.forms, func(f chosenForm) bool { return f.Name == kit.FormatTable })
}
