package reports

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/flock"
	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/jsonscan"
)

// journalName is the name of the file, in [WorkDir], that holds a run's cells.
const journalName = "cells.jsonl"

// A journal stores a run's cells in a file: the first line is the plan, and every other line is a
// cell. A last line without a newline was written by a process that was killed, and is ignored. The
// process holds a file lock on the open journal.
type journal struct {
	file *os.File
	end  int64
}

// A journalLine is the JSON form of a cell's line.
type journalLine struct {
	Place   int             `json:"place"`
	Attempt int             `json:"attempt"`
	Cell    json.RawMessage `json:"cell"`
}

// An extent locates a cell in the journal and names the attempt that ran it. A length of 0 means
// that the cell is missing.
type extent struct {
	offset          int64
	length, attempt int
}

// openJournal opens and locks the journal of a report's directory. openJournal makes the journal
// and its directory if they are missing.
func openJournal(out *below.Dir) (*journal, error) {
	name := filepath.Join(WorkDir, journalName)
	for {
		if err := out.MkdirAll(WorkDir, 0o755); err != nil {
			return nil, err
		}
		file, err := out.Open(name, os.O_RDWR)
		if errors.Is(err, fs.ErrNotExist) {
			file, err = out.Create(name, 0o644)
			if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
				continue // another run has just made it, or has removed its directory at its end
			}
		}
		if err != nil {
			return nil, err
		}
		if err := flock.Take(file); err != nil {
			file.Close()
			return nil, err
		}
		// The run that held the lock before may have removed the file at its end.
		mine, err := file.Stat()
		if there, gone := out.Lstat(name); err == nil && gone == nil && os.SameFile(mine, there) {
			return &journal{file: file}, nil
		}
		file.Close()
		if err != nil {
			return nil, err
		}
	}
}

// empty removes all lines from the journal.
func (j *journal) empty() error {
	j.end = 0
	return j.file.Truncate(0)
}

// begin empties the journal and writes the plan.
func (j *journal) begin(plan Plan) error {
	if err := j.empty(); err != nil {
		return err
	}
	line, err := json.Marshal(plan)
	if err == nil {
		_, err = j.write(line)
	}
	return err
}

// write appends a line and returns its offset. When write returns, the line survives a kill of the
// process.
func (j *journal) write(line []byte) (offset int64, err error) {
	offset = j.end
	n, err := j.file.WriteAt(append(line, '\n'), offset)
	if err != nil {
		return 0, errors.Join(err, j.file.Truncate(offset))
	}
	j.end += int64(n)
	return offset, nil
}

// add appends a cell.
func (j *journal) add(place, attempt int, cell Cell) (extent, error) {
	text, err := json.Marshal(cell)
	if err != nil {
		return extent{}, err
	}
	line, err := json.Marshal(journalLine{place, attempt, text})
	if err != nil {
		return extent{}, err
	}
	offset, err := j.write(line)
	return extentOf(offset, line, text, attempt), err
}

// extentOf returns the extent of a cell, the last field of the line that begins at offset.
func extentOf(offset int64, line, cell []byte, attempt int) extent {
	return extent{offset + int64(len(line)-len(cell)-len("}")), len(cell), attempt}
}

// read reads the journal, which must have the given plan, and calls visit with each cell. The next
// write appends after the last complete line.
func (j *journal) read(plan Plan, visit func(journalLine, extent) error) error {
	if err := input.Check(j.file, j.file.Name(), input.Stream); err != nil {
		return err
	}
	budget := &input.Budget{R: j.file, Most: input.Value}
	r := bufio.NewReader(budget)
	for first := true; ; first = false {
		budget.Renew()
		line, err := r.ReadBytes('\n')
		if errors.As(err, new(*input.TooLargeError)) {
			return fmt.Errorf("a line of its journal has %w", err)
		}
		if errors.Is(err, io.EOF) {
			if first {
				return errors.New("it ended before it had begun")
			}
			return j.file.Truncate(j.end)
		}
		if err != nil {
			return err
		}
		text := line[:len(line)-1]
		var k journalLine
		if first {
			err = plan.check(text)
		} else if err = json.Unmarshal(text, &k); err == nil {
			err = visit(k, extentOf(j.end, text, k.Cell, k.Attempt))
		}
		if err != nil {
			return jsonscan.Reason(err)
		}
		j.end += int64(len(line))
	}
}

// check returns an error that describes how the plan differs from the written plan.
func (p Plan) check(text []byte) error {
	var was Plan
	if err := json.Unmarshal(text, &was); err != nil {
		return fmt.Errorf("its plan can't be read: %w", jsonscan.Reason(err))
	}
	old := map[string]Trait{}
	for _, t := range was.Traits {
		old[t.Name] = t
	}
	for _, is := range p.Traits {
		was, ok := old[is.Name]
		switch {
		case ok && was == is:
		case !ok || is.Digest:
			return fmt.Errorf("it had another %s", is.Name)
		default:
			return fmt.Errorf("its %s was %q and is %q now", is.Name, was.Value, is.Value)
		}
	}
	if was.Cells != p.Cells || len(was.Traits) != len(p.Traits) {
		return fmt.Errorf("it had %d cells, and there are %d now", was.Cells, p.Cells)
	}
	return nil
}

// cell reads a cell's text.
func (j *journal) cell(at extent) ([]byte, error) {
	text := make([]byte, at.length)
	_, err := j.file.ReadAt(text, at.offset)
	return text, err
}

// close closes the file, which releases its lock. close may be called more than once.
func (j *journal) close() { _ = j.file.Close() }

// A Plan identifies the run of a report: [Resume] continues only a run with the same plan.
type Plan struct {
	// Cells is the number of cells of the complete run.
	Cells int `json:"cells"`
	// Traits holds the properties on which the cells depend.
	Traits []Trait `json:"traits"`
	// Cell returns the names of the cell at a place. Resume refuses a journal that has another cell
	// at that place. A nil Cell disables the check.
	Cell func(place int) CellName `json:"-"`
	// Differs returns how a cell of the journal differs from its history, which is below dir, or ""
	// if it does not. A cell that differs runs again. A nil Differs disables the check.
	Differs func(cell Cell, dir string) string `json:"-"`
}

// A Trait is one property on which the cells of a run depend.
type Trait struct {
	Name  string `json:"name"` // noun for a sentence
	Value string `json:"value"`
	// Digest reports whether the value means nothing to a reader, as a hash does.
	Digest bool `json:"digest,omitempty"`
}
