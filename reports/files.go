package reports

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/input"
)

// LogsDir is the directory below the report's for what the servers of cells logged
// that were not decided, by world, strategy and scenario.
const LogsDir = "logs"

// linkLog is the log that is among those of each cell.
const linkLog = "toxiproxy.log"

// generator is what each page of ours says near its beginning.
const generator = `<meta name="generator" content="lockfault">`

// entries returns what a report's directory has of ours.
func entries() []string { return []string{ResultsFile, MarkdownFile, HTMLFile, HistoryDir, LogsDir} }

// copyCellFiles brings the files of a cell from the directory of its attempt. Both names are below the
// report's directory.
func copyCellFiles(in *below.Dir, c Cell, from, to string) error {
	if c.History != "" {
		name := filepath.FromSlash(c.History)
		if err := link(in, filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	if c.Decided() {
		return nil
	}
	logs := filepath.Join(LogsDir, c.World, c.Strategy, c.Scenario)
	files, err := in.ReadDir(filepath.Join(from, logs))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // of virtual time there are none
	}
	for _, f := range files {
		err = errors.Join(err, link(in, filepath.Join(from, logs, f.Name()), filepath.Join(to, logs, f.Name())))
	}
	return err
}

// link gives a file another name, or copies it where files have one only. It
// makes missing directories.
func link(in *below.Dir, from, to string) error {
	if err := in.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	err := in.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, below.ErrNotRegular) {
		return err
	}
	return atomicdir.InUnsynced(in, to, func(w io.Writer) error {
		f, err := in.Open(from, os.O_RDONLY)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	})
}

// checkOurs returns an error if there is something in the directory, in the
// place of a report, that no run has written.
func checkOurs(in *below.Dir) error {
	for _, name := range entries() {
		info, err := in.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if name == HTMLFile && isFindingsPage(in) {
			return fmt.Errorf("%s there is of a search: move it away, or name another directory", name)
		}
		if info.IsDir() != (name == HistoryDir || name == LogsDir) || !info.IsDir() && !isReportFile(in, name) {
			return fmt.Errorf("%s there is not of lockfault's making: move it away, or name another directory", name)
		}
	}
	theirs, err := foreign(in, ".")
	if err != nil {
		return err
	}
	for _, name := range theirs {
		switch {
		case isHistoryName(name):
			return fmt.Errorf("%s there is no history of lockfault's making: move it away, or name another directory", name)
		case isDirName(name):
			if info, err := in.Lstat(filepath.FromSlash(name)); err == nil && !info.Mode().IsRegular() {
				return errInTheWay(name)
			}
		}
	}
	return nil
}

func errInTheWay(name string) error {
	return fmt.Errorf("%s there is no directory, and a cell's files may need one of that name: move it away, or name another directory", name)
}

// checkWay returns an error if a file stands where a cell of the plan needs a directory.
func (r *Report) checkWay() error {
	theirs, err := foreign(r.out, ".")
	if err != nil || len(theirs) == 0 || r.plan.Cell == nil {
		return err
	}
	needed := map[string]bool{}
	for i := range r.plan.Cells {
		is := r.plan.Cell(i)
		for _, root := range []string{HistoryDir, LogsDir} {
			needed[path.Join(root, is.World)], needed[path.Join(root, is.World, is.Strategy)] = true, true
		}
		needed[path.Join(LogsDir, is.World, is.Strategy, is.Scenario)] = true
	}
	for _, name := range theirs {
		if needed[name] {
			return errInTheWay(name)
		}
	}
	return nil
}

// foreign returns the files below the directories of a report that no run has
// written. The report is in a directory below in.
func foreign(in *below.Dir, dir string) (names []string, err error) {
	report, err := in.Sub(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer report.Close()
	for _, root := range []string{HistoryDir, LogsDir} {
		if info, err := report.Lstat(root); err != nil || !info.IsDir() {
			continue
		}
		err := report.Walk(root, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			if name := filepath.ToSlash(file); !entry.Type().IsRegular() || !isReportFile(report, name) {
				names = append(names, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// isHistoryName reports whether a name below a report's directory is that of a
// history.
func isHistoryName(name string) bool {
	matched, _ := path.Match(HistoryDir+"/*/*/*.jsonl", name)
	return matched
}

// isDirName reports whether a name below a report's directory may be that of a directory for the
// files of cells: of a world, a strategy, or, for logs, a scenario.
func isDirName(name string) bool {
	root, _, _ := strings.Cut(name, "/")
	depth := strings.Count(name, "/")
	return depth > 0 && (depth <= 2 || root == LogsDir && depth == 3)
}

// isReportFile reports whether a run has written the file of that name below a report's
// directory: its content says so, or what lies beside it.
func isReportFile(in *below.Dir, name string) bool {
	if matched, _ := path.Match(LogsDir+"/*/*/*/*.log", name); matched {
		_, err := in.Lstat(filepath.FromSlash(path.Join(path.Dir(name), linkLog)))
		return err == nil
	}
	f, err := in.Open(filepath.FromSlash(name), os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	switch {
	case name == ResultsFile:
		if beginsWith(f, `{"tool":"`+Tool+`"`) {
			return true
		}
		_, err := f.Seek(0, io.SeekStart)
		return err == nil && saysTool(f)
	case name == MarkdownFile:
		return beginsWith(f, markdownTitle)
	case name == HTMLFile:
		return contains(f, generator)
	case isHistoryName(name):
		line, _ := bufio.NewReader(io.LimitReader(f, input.Value)).ReadBytes('\n')
		var meta checker.Meta
		err = json.Unmarshal(line, &meta)
		return err == nil && meta.Format != 0 && name == path.Join(HistoryDir, meta.World, meta.Strategy, meta.Scenario+".jsonl")
	}
	return false
}

// saysTool reports whether a text is a JSON object that says that it is of this tool, wherever: somebody may have
// formatted it anew.
func saysTool(r io.Reader) bool {
	values := newValues(r)
	decoder := values.decoder
	if expect(decoder, '{') != nil {
		return false
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return false
		}
		var value json.RawMessage
		if values.next(&value) != nil {
			return false
		}
		if key == "tool" {
			return string(value) == `"`+Tool+`"`
		}
	}
	return false
}

// beginsWith reports whether a text begins so.
func beginsWith(r io.Reader, text string) bool {
	beginning := make([]byte, len(text))
	_, err := io.ReadFull(r, beginning)
	return err == nil && string(beginning) == text
}

// contains reports whether the beginning of a text contains all of those.
func contains(r io.Reader, texts ...string) bool {
	beginning := make([]byte, 1<<10)
	n, _ := io.ReadFull(r, beginning)
	for _, text := range texts {
		if !bytes.Contains(beginning[:n], []byte(text)) {
			return false
		}
	}
	return true
}

// tidy removes the report before, which has made room. What is not ours
// goes back to its place.
func (r *Report) tidy() error {
	former := r.place.Former()
	names, err := foreign(r.out, former)
	if err != nil {
		return err
	}
	for _, name := range names {
		to := filepath.FromSlash(name)
		if _, err := r.out.Lstat(to); err == nil {
			return fmt.Errorf("%s is in the way of the %s that is in %s: move it away", name, name, r.out.Join(former))
		}
		if err := r.out.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := r.out.Rename(filepath.Join(former, to), to); err != nil {
			return err
		}
	}
	return r.out.RemoveAll(former)
}
