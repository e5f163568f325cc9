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

// bring brings the files of a cell from the directory of its attempt.
func bring(c Cell, from, to string) error {
	if c.History != "" {
		name := filepath.FromSlash(c.History)
		if err := link(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	if c.Decided() {
		return nil
	}
	logs := filepath.Join(LogsDir, c.World, c.Strategy, c.Scenario)
	files, err := os.ReadDir(filepath.Join(from, logs))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // of virtual time there are none
	}
	for _, f := range files {
		err = errors.Join(err, link(filepath.Join(from, logs, f.Name()), filepath.Join(to, logs, f.Name())))
	}
	return err
}

// link gives a file another name, or copies it where files have one only. It
// makes missing directories.
func link(from, to string) error {
	err := os.Link(from, to)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		err = os.Link(from, to)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return writeFile(to, func(w io.Writer) error {
		f, err := input.Open(from, input.Stream)
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
func checkOurs(dir string) error {
	for _, name := range entries() {
		file := filepath.Join(dir, name)
		info, err := os.Lstat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if name == HTMLFile && info.Mode().IsRegular() && isFindingsPage(file) {
			return fmt.Errorf("%s there is of a search: move it away, or name another directory", name)
		}
		if info.IsDir() != (name == HistoryDir || name == LogsDir) || !info.IsDir() && !ours(dir, name) {
			return fmt.Errorf("%s there is not of lockfault's making: move it away, or name another directory", name)
		}
	}
	theirs, err := foreign(dir)
	if err != nil {
		return err
	}
	for _, name := range theirs {
		if isHistoryName(name) {
			return fmt.Errorf("%s there is no history of lockfault's making: move it away, or name another directory", name)
		}
	}
	return nil
}

// foreign returns the files below the directories of a report that no run has
// written.
func foreign(dir string) (names []string, err error) {
	for _, below := range []string{HistoryDir, LogsDir} {
		root := filepath.Join(dir, below)
		err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
			if file == root && (errors.Is(err, fs.ErrNotExist) || err == nil && !entry.IsDir()) {
				return nil
			}
			if err != nil || entry.IsDir() {
				return err
			}
			name, err := filepath.Rel(dir, file)
			if err == nil && (!entry.Type().IsRegular() || !ours(dir, filepath.ToSlash(name))) {
				names = append(names, filepath.ToSlash(name))
			}
			return err
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

// ours reports whether a run has written the file of that name below a report's
// directory: its content says so, or what lies beside it.
func ours(dir, name string) bool {
	switch file := filepath.Join(dir, filepath.FromSlash(name)); {
	case name == ResultsFile:
		return beginsWith(file, `{"tool":"`+Tool+`"`) || saysTool(file)
	case name == MarkdownFile:
		return beginsWith(file, markdownTitle)
	case name == HTMLFile:
		return contains(file, generator)
	case isHistoryName(name):
		f, err := input.Open(file, input.Stream)
		if err != nil {
			return false
		}
		defer f.Close()
		line, _ := bufio.NewReader(io.LimitReader(f, input.Value)).ReadBytes('\n')
		var meta checker.Meta
		err = json.Unmarshal(line, &meta)
		return err == nil && meta.Format != 0 && name == path.Join(HistoryDir, meta.World, meta.Strategy, meta.Scenario+".jsonl")
	default:
		matched, _ := path.Match(LogsDir+"/*/*/*/*.log", name)
		_, err := os.Stat(filepath.Join(filepath.Dir(file), linkLog))
		return matched && err == nil
	}
}

// saysTool reports whether a file is a JSON object that says that it is of this tool, wherever: somebody may have
// formatted it anew.
func saysTool(file string) bool {
	f, err := input.Open(file, input.Stream)
	if err != nil {
		return false
	}
	defer f.Close()
	values := newValues(f)
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

// beginsWith reports whether a file's text begins so.
func beginsWith(file, text string) bool {
	f, err := input.Open(file, input.Stream)
	if err != nil {
		return false
	}
	defer f.Close()
	beginning := make([]byte, len(text))
	_, err = io.ReadFull(f, beginning)
	return err == nil && bytes.Equal(beginning, []byte(text))
}

// tidy removes the report before, which has made room. What is not ours
// goes back to its place.
func (r *Report) tidy() error {
	former := r.place.Former()
	names, err := foreign(former)
	if err != nil {
		return err
	}
	for _, name := range names {
		to := filepath.Join(r.dir, filepath.FromSlash(name))
		if _, err := os.Lstat(to); err == nil {
			return fmt.Errorf("%s is in the way of the %s that is in %s: move it away", name, name, strings.TrimSuffix(former, string(filepath.Separator)))
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(former, filepath.FromSlash(name)), to); err != nil {
			return err
		}
	}
	return os.RemoveAll(former)
}

// contains reports whether the beginning of a file has that text.
func contains(file, text string) bool {
	f, err := input.Open(file, input.Stream)
	if err != nil {
		return false
	}
	defer f.Close()
	beginning := make([]byte, 1<<10)
	n, _ := io.ReadFull(f, beginning)
	return bytes.Contains(beginning[:n], []byte(text))
}
