package reports

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/input"
)

// LogsDir is the directory, inside the report's, for the server logs of undecided cells. Its levels
// are world, strategy and scenario.
const LogsDir = "logs"

// linkLog is a log file that every cell with logs has.
const linkLog = "toxiproxy.log"

// entries returns the names of lockfault's files and directories in a report's directory.
func entries() []string { return []string{ResultsFile, MarkdownFile, HTMLFile, HistoryDir, LogsDir} }

// copyCellFiles links or copies the files of a cell from the directory of its attempt. Both names
// are relative to the report's directory.
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
		return nil // a simulated cell has no logs
	}
	for _, f := range files {
		err = errors.Join(err, link(in, filepath.Join(from, logs, f.Name()), filepath.Join(to, logs, f.Name())))
	}
	return err
}

// link makes a hard link to a file, or copies it if the file system has no hard links. link makes
// missing directories.
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

// checkOurs returns an error if the directory has a file, with the name of a report's file, that no
// run has written.
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

// checkWay returns an error if a file has the name of a directory that a cell of the plan needs.
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

// foreign returns the files below the directories of a report that no run has written. The report
// is in the directory dir below in.
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

// isHistoryName reports whether a name, relative to a report's directory, is the name of a history.
func isHistoryName(name string) bool {
	matched, _ := path.Match(HistoryDir+"/*/*/*.jsonl", name)
	return matched
}

// isDirName reports whether a name, relative to a report's directory, may be a directory for the
// files of cells: that of a world, a strategy or, for logs, a scenario.
func isDirName(name string) bool {
	root, _, _ := strings.Cut(name, "/")
	depth := strings.Count(name, "/")
	return depth > 0 && (depth <= 2 || root == LogsDir && depth == 3)
}

// isReportFile reports whether a run has written the named file, which is relative to a report's
// directory. Its content decides, or for a log the file [linkLog] in the same directory.
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

// saysTool reports whether a text is a JSON object whose field "tool" is [Tool]. The field may be
// anywhere, since the user may have reformatted the file.
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

// beginsWith reports whether the input begins with the text.
func beginsWith(r io.Reader, text string) bool {
	beginning := make([]byte, len(text))
	_, err := io.ReadFull(r, beginning)
	return err == nil && string(beginning) == text
}

// tidy removes the previous report, which was moved aside. Files in it that lockfault did not write
// return to their original place.
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

// IsPartOfReport reports whether a path has the name of a file or directory, or lies in a
// directory, that a report in dir has.
func IsPartOfReport(dir, file string) bool {
	at, err1 := filepath.Abs(dir)
	path, err2 := filepath.Abs(file)
	below, err3 := filepath.Rel(at, path)
	if errors.Join(err1, err2, err3) != nil {
		return false
	}
	first, _, _ := strings.Cut(filepath.ToSlash(below), "/")
	return slices.Contains(append(entries(), WorkDir), first)
}
