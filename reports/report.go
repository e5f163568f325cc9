package reports

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A Report collects the cells of a run as they finish, and writes the report's
// directory when it is closed. It keeps the cells in a file, so that memory
// does not grow with their witnesses and stacks. Not safe for concurrent use.
type Report struct {
	dir   string
	head  Head
	spool *os.File
	at    []extent // by place
	end   int64
	agree Agreement
}

// An extent is where a cell lies in the spool; a length of 0 means nowhere.
type extent struct {
	offset int64
	length int
}

// Create prepares a report in the directory, which it makes if it is missing.
// It finds out, before any work is done, whether the report can be written,
// and removes the results of an earlier run, so that they are never taken for
// those of this one. The report must be closed.
func Create(dir string, head Head) (*Report, error) {
	if err := os.MkdirAll(filepath.Join(dir, HistoryDir), 0o755); err != nil {
		return nil, fmt.Errorf("reports: can't write to %s: %w", dir, err)
	}
	spool, err := os.CreateTemp(dir, ".cells-*")
	if err != nil {
		return nil, fmt.Errorf("reports: can't write to %s: %w", dir, err)
	}
	// Where the system lets an open file go nameless, a killed run leaves
	// nothing of it.
	os.Remove(spool.Name())
	for _, name := range []string{ResultsFile, MarkdownFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			spool.Close()
			return nil, fmt.Errorf("reports: can't replace the report in %s: %w", dir, err)
		}
	}
	head.Tool = Tool
	return &Report{dir: dir, head: head, spool: spool}, nil
}

// Add takes the cell at that place, from 0, in the order of the report.
func (r *Report) Add(place int, cell Cell) error {
	if err := r.agree.Add(cell); err != nil {
		return err
	}
	text, err := json.Marshal(cell)
	if err == nil {
		_, err = r.spool.WriteAt(text, r.end)
	}
	if err != nil {
		return fmt.Errorf("reports: keep a cell: %w", err)
	}
	for len(r.at) <= place {
		r.at = append(r.at, extent{})
	}
	r.at[place] = extent{r.end, len(text)}
	r.end += int64(len(text))
	return nil
}

// Close writes results.json and report.md with the cells added so far, and
// says in them if the run was interrupted.
func (r *Report) Close(interrupted bool) error {
	defer os.Remove(r.spool.Name())
	defer r.spool.Close()
	r.head.Interrupted = interrupted
	results := filepath.Join(r.dir, ResultsFile)
	if err := writeFile(results, r.writeResults); err != nil {
		return fmt.Errorf("reports: write the results: %w", err)
	}
	err := writeFile(filepath.Join(r.dir, MarkdownFile), func(w io.Writer) error { return Markdown(w, results) })
	if err != nil {
		return fmt.Errorf("reports: write the report: %w", err)
	}
	return nil
}

// writeResults writes the contract: the head's fields, then the cells, one a
// line.
func (r *Report) writeResults(w io.Writer) error {
	head, err := json.Marshal(r.head)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	b.Write(head[:len(head)-1]) // still open
	b.WriteString(`,"cells":[`)
	separator := "\n"
	for _, at := range r.at {
		if at.length == 0 {
			continue
		}
		b.WriteString(separator)
		separator = ",\n"
		if err := r.writeCell(b, at); err != nil {
			return err
		}
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}

// writeCell writes a cell from the spool, with what only the whole run tells of
// it.
func (r *Report) writeCell(b *bufio.Writer, at extent) error {
	text := make([]byte, at.length)
	if _, err := r.spool.ReadAt(text, at.offset); err != nil {
		return err
	}
	if strings.Contains(r.head.World, ",") {
		var cell Cell
		if err := json.Unmarshal(text, &cell); err != nil {
			return err
		}
		cell.AgreesWithSim = r.agree.Of(cell)
		var err error
		if text, err = json.Marshal(cell); err != nil {
			return err
		}
	}
	_, err := b.Write(text)
	return err
}
