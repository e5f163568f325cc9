package locktest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
)

// filesDir is the directory of the tests' files, below the test's directory.
var filesDir = filepath.Join("testdata", "lockfault")

// writeHere writes a file and creates missing directories. writeHere does not follow symbolic links
// below the test's directory.
func writeHere(file string, text []byte) error {
	here, err := below.Open(".")
	if err != nil {
		return err
	}
	defer here.Close()
	if err := here.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return atomicdir.In(here, file, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// expectFile is the file that lists the accepted anomalies for scenarios without an option in the
// test. docs/expectations.md describes its format.
type expectFile struct {
	file string
	said *scenarios.Expectations // nil if the file does not exist
}

// readRatchet reads the test's file, if the file exists.
func readRatchet(t *testing.T, name string, o *options) (*expectFile, error) {
	r := &expectFile{file: filepath.Join(filesDir, fileOf(t.Name())+".expect")}
	source, err := input.Read(r.file, input.Text)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		r.said, err = scenarios.ParseExpectations(r.file, source)
	}
	if err != nil {
		return nil, err
	}
	var own []string
	for key := range o.files {
		own = append(own, key)
	}
	return r, r.said.Check([]string{name}, own)
}

// accept saves the anomalies of this run as the accepted anomalies, for scenarios without an option
// in the test. Entries for scenarios without a verdict stay unchanged.
func (r *expectFile) accept(t *testing.T, test *test) error {
	t.Helper()
	said := r.said
	if said == nil {
		said = &scenarios.Expectations{}
	}
	lines := 0
	for _, o := range test.played {
		key := o.script.Key()
		if _, promised := test.options.promises[key]; promised || o.cell.Verdict == reports.NotApplicable || !o.cell.Decided() {
			continue
		}
		if err := said.Set(test.cell.Strategy.Name, key, o.cell.Anomalies); err != nil {
			return err
		}
		lines++
	}
	if lines == 0 {
		return nil
	}
	text := said.Format()
	if r.said == nil {
		text = append([]byte("# What this lock may show at most; "+envAccept+"=1 writes it.\n\n"), text...)
	}
	if err := writeHere(r.file, text); err != nil {
		return fmt.Errorf("write what was accepted to %s: %w", r.file, err)
	}
	t.Logf("%s says now what the lock may show in %d scenarios", r.file, lines)
	return nil
}
