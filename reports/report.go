package reports

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/flock"
	"github.com/lockfault/lockfault/internal/jsonscan"
)

// A Report collects the cells of a run as they finish, and replaces an older report when it is
// closed. Until then readers find the older report, however this process ends, and the added cells
// are kept for [Resume]. Memory does not grow with the cells' witnesses and stack traces. A Report
// is not safe for concurrent use.
type Report struct {
	dir     string
	out     *below.Dir // handle of dir
	head    Head
	plan    Plan
	place   atomicdir.Place
	journal *journal
	attempt int
	at      []extent // extents of the cells, by place
	missing int
	agree   Agreement
	judge   func(*Cell)
	err     func() error
}

// Create prepares a new report in a directory, which it makes if it is missing. Create checks,
// before any work is done, that the report can be written, and discards the kept cells of an
// earlier incomplete run. The caller must call Close or Leave.
func Create(dir string, head Head, plan Plan) (*Report, error) {
	r, err := open(dir, head, plan)
	if err != nil {
		return nil, err
	}
	if err := r.begin(); err != nil {
		r.Leave()
		return nil, fmt.Errorf("reports: can't write to %s: %w", dir, err)
	}
	return r, nil
}

// Resume continues the report of a run that ended before it was complete. The run must have had the
// same plan; if not, the error names the difference in one line. Undecided cells count as missing.
// The caller must call Close or Leave.
func Resume(dir string, head Head, plan Plan) (*Report, error) {
	if info, err := os.Lstat(filepath.Join(dir, WorkDir, journalName)); err != nil || info.Size() == 0 {
		return nil, fmt.Errorf("reports: there is nothing to go on with in %s: no run has ended there before it was complete", dir)
	}
	r, err := open(dir, head, plan)
	if err != nil {
		return nil, err
	}
	if err := r.goOn(); err != nil {
		r.Leave()
		return nil, fmt.Errorf("reports: can't go on with the run in %s: %w", dir, err)
	}
	return r, nil
}

// open locks the directory for this process and returns its empty report.
func open(dir string, head Head, plan Plan) (*Report, error) {
	r, err := take(dir)
	if errors.Is(err, flock.ErrTaken) {
		return nil, fmt.Errorf("reports: another run is writing to %s: wait for its end, or name another directory", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reports: can't write to %s: %w", dir, err)
	}
	head.Tool = Tool
	r.head, r.plan, r.missing, r.at = head, plan, plan.Cells, make([]extent, plan.Cells)
	if err := r.checkWay(); err != nil {
		r.Leave()
		return nil, fmt.Errorf("reports: can't write to %s: %w", dir, err)
	}
	return r, nil
}

func take(dir string) (*Report, error) {
	out, err := below.Make(dir, 0o755)
	if err != nil {
		return nil, err
	}
	r := &Report{dir: dir, out: out, place: placeIn(out)}
	if err := r.take(); err != nil {
		r.Leave()
		return nil, err
	}
	return r, nil
}

// placeIn returns the place of a report in its directory.
func placeIn(out *below.Dir) atomicdir.Place {
	return atomicdir.Place{Dir: out, Work: WorkDir, Names: entries()}
}

func (r *Report) take() error {
	used, err := checkWork(r.out)
	if err != nil {
		return err
	}
	if !used { // make nothing in a directory that cannot be written
		if err := checkOurs(r.out); err != nil {
			return err
		}
	}
	if r.journal, err = openJournal(r.out); err != nil {
		return err
	}
	if err := mark(r.out); err != nil {
		return err
	}
	atomicdir.Sweep(r.out)
	// A run may have been killed just before its report was in place.
	if err := r.place.Settle(); err != nil {
		return err
	}
	if err := r.tidy(); err != nil {
		return err
	}
	if used {
		return checkOurs(r.out)
	}
	return nil
}

// begin starts a new run: it empties the journal and removes the files of earlier attempts.
func (r *Report) begin() error {
	if err := r.journal.begin(r.plan); err != nil {
		return err
	}
	former, err := r.attempts()
	if err != nil {
		return err
	}
	for _, n := range former {
		if err := r.out.RemoveAll(work(n)); err != nil {
			return err
		}
	}
	return r.try(former)
}

// goOn reads the finished cells from the journal and starts another attempt.
func (r *Report) goOn() error {
	err := r.journal.read(r.plan, func(k journalLine, at extent) error {
		if k.Place < 0 || k.Place >= len(r.at) {
			return fmt.Errorf("it has a cell %d of %d", k.Place, len(r.at))
		}
		var cell Cell
		if err := json.Unmarshal(k.Cell, &cell); err != nil {
			return jsonscan.Reason(err)
		}
		if err := cell.check(); err != nil {
			return err
		}
		if is := cell.name(); r.plan.Cell != nil && is != r.plan.Cell(k.Place) {
			return fmt.Errorf("its cell %d is %s, and must be %s", k.Place, is, r.plan.Cell(k.Place))
		}
		if !r.shows(cell, k.Attempt) {
			return nil
		}
		return r.keep(k.Place, cell, at)
	})
	if err != nil {
		return err
	}
	former, err := r.attempts()
	if err != nil {
		return err
	}
	return r.try(former)
}

// shows reports whether a cell of an attempt was decided and matches its history. The directory may
// come from another person, so a cell that cannot be checked runs again.
func (r *Report) shows(cell Cell, attempt int) bool {
	if !cell.Decided() {
		return false
	}
	info, err := r.out.Lstat(filepath.Join(work(attempt), filepath.FromSlash(cell.History)))
	if err != nil || cell.History != "" && !info.Mode().IsRegular() {
		return false
	}
	return r.plan.Differs == nil || r.plan.Differs(cell, r.out.Join(work(attempt))) == ""
}

// Differs returns how a cell differs from its history, which is below dir. Differs returns "" if
// the cell does not differ. A cell without a history differs.
func (c Cell) Differs(dir string) string {
	if c.History == "" {
		return "it has no history"
	}
	h, err := c.historyIn(dir)
	if err != nil {
		return err.Error()
	}
	return c.unlike(h)
}

// attempts returns the numbers of the earlier attempts that left a directory.
func (r *Report) attempts() (list []int, err error) {
	entries, err := r.out.ReadDir(WorkDir)
	for _, entry := range entries {
		if n, err := strconv.ParseInt(entry.Name(), 10, 32); err == nil {
			list = append(list, int(n))
		}
	}
	return list, err
}

// try starts an attempt with a directory of its own: workers of an earlier, killed attempt may
// still write to theirs.
func (r *Report) try(former []int) error {
	r.attempt = slices.Max(append(former, 0)) + 1
	return r.out.Mkdir(work(r.attempt), 0o755)
}

// work returns the name of an attempt's directory, relative to the report's.
func work(attempt int) string { return filepath.Join(WorkDir, strconv.Itoa(attempt)) }

// Dir returns the directory for the histories and logs of this attempt's cells. Each file has the
// same relative path there as in the finished report.
func (r *Report) Dir() string { return r.out.Join(work(r.attempt)) }

// Has reports whether the cell at that place was added.
func (r *Report) Has(place int) bool { return r.at[place].length > 0 }

// Missing returns the number of cells that were not added yet.
func (r *Report) Missing() int { return r.missing }

// Add stores the cell at a place, which counts from 0 in the order of the report. When Add returns,
// the cell is kept even if the process is killed.
func (r *Report) Add(place int, cell Cell) error {
	at, err := r.journal.add(place, r.attempt, cell)
	if err != nil {
		return fmt.Errorf("reports: keep a cell: %w", err)
	}
	return r.keep(place, cell, at)
}

// Judge makes Close judge each cell again: it calls expect, which must not be nil, to set the
// cell's expectation, and then settles the cell. Cells from an earlier run are included, so that
// they are not judged by outdated expectations. Without Judge, cells are written as they were
// added.
func (r *Report) Judge(expect func(*Cell)) { r.judge = expect }

// Until makes Close stop without a report as soon as the function returns an error. The added cells
// are kept.
func (r *Report) Until(err func() error) { r.err = err }

// Cells calls visit with each added cell, in the order of the report and as it was added. Cells
// stops at the first error of visit and returns that error.
func (r *Report) Cells(visit func(Cell) error) error {
	for _, at := range r.at {
		if at.length == 0 {
			continue
		}
		cell, _, err := r.read(at)
		if err != nil {
			return fmt.Errorf("reports: read what was kept of the run: %w", err)
		}
		if err := visit(cell); err != nil {
			return err
		}
	}
	return nil
}

// read reads a cell from the journal.
func (r *Report) read(at extent) (cell Cell, text []byte, err error) {
	if text, err = r.journal.cell(at); err == nil {
		err = json.Unmarshal(text, &cell)
	}
	return cell, text, err
}

func (r *Report) keep(place int, cell Cell, at extent) error {
	if r.at[place].length == 0 {
		r.missing--
	}
	r.at[place] = at
	return r.agree.Add(cell)
}

// Leave closes the report without writing it, and keeps the added cells. Leave may be called more
// than once, and after Close.
func (r *Report) Leave() {
	if r.journal != nil {
		r.journal.close()
	}
	_ = r.out.Close() // the handle was only used for directory entries
}

// Spoils reports whether Close would replace a complete report by an incomplete one.
func (r *Report) Spoils() bool {
	if r.missing == 0 {
		return false
	}
	before, err := Scan(filepath.Join(r.dir, ResultsFile), func(Cell) error { return nil })
	return err == nil && !before.Interrupted
}

// Close writes results.json, report.md and index.html with the cells added so far. Together with
// the cells' files they replace the files of an earlier run. The report states whether cells are
// missing. If none are missing, Close also removes the kept cells of the run.
func (r *Report) Close() error {
	defer r.Leave()
	r.head.Interrupted = r.missing > 0
	if err := r.assemble(); err != nil {
		return fmt.Errorf("reports: write the report: %w", err)
	}
	if err := r.place.Commit(); err != nil {
		return fmt.Errorf("reports: put the report in its place: %w", err)
	}
	if err := r.tidy(); err != nil {
		return fmt.Errorf("reports: remove the report before: %w", err)
	}
	if r.missing > 0 {
		return nil
	}
	if err := r.journal.empty(); err != nil {
		return fmt.Errorf("reports: remove what was kept of the run: %w", err)
	}
	r.clear()
	return nil
}

// clear removes the files that were kept of a run that is complete; the journal, whose lock
// excludes other runs, goes last. The next run removes what clear cannot: a worker of a killed run
// may still be writing there.
func (r *Report) clear() {
	left := false
	entries, _ := r.out.ReadDir(WorkDir)
	for _, entry := range entries {
		if name := entry.Name(); name != journalName && name != markName {
			left = r.out.RemoveAll(filepath.Join(WorkDir, name)) != nil || left
		}
	}
	// Without the mark, the next run accepts the directory as lockfault's only if it has no other
	// files.
	if !left {
		_ = r.out.Remove(filepath.Join(WorkDir, markName))
	}
	_ = r.out.Remove(filepath.Join(WorkDir, journalName))
	_ = r.out.Remove(WorkDir) // fails if the next run already uses it
}

// assemble makes the new report in a directory that readers do not look at.
func (r *Report) assemble() error {
	dir := r.place.Fresh()
	if err := r.out.RemoveAll(dir); err != nil {
		return err
	}
	if err := r.out.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := atomicdir.InUnsynced(r.out, filepath.Join(dir, ResultsFile), func(w io.Writer) error { return r.writeResults(w, dir) }); err != nil {
		return err
	}
	return drawAll(r.out, dir, r.err)
}

// writeResults writes results.json: the fields of the head, then the cells, each on a line.
// writeResults links or copies the cells' files to dir, which is relative to the report's
// directory.
func (r *Report) writeResults(w io.Writer, dir string) error {
	head, err := json.Marshal(r.head)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	b.Write(head[:len(head)-1]) // without the closing brace
	b.WriteString(`,"cells":[`)
	separator := "\n"
	for _, at := range r.at {
		if at.length == 0 {
			continue
		}
		b.WriteString(separator)
		separator = ",\n"
		if err := r.writeCell(b, at, dir); err != nil {
			return err
		}
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}

// writeCell writes a cell from the journal with the fields that need the whole run, and links or
// copies its files to dir.
func (r *Report) writeCell(b *bufio.Writer, at extent, dir string) error {
	cell, text, err := r.read(at)
	if err != nil {
		return err
	}
	if err := copyCellFiles(r.out, cell, work(at.attempt), dir); err != nil {
		return err
	}
	compared := strings.Contains(r.head.World, ",")
	if compared {
		cell.AgreesWithSim = r.agree.Of(cell)
	}
	if r.judge != nil {
		r.judge(&cell)
		cell.Settle()
	}
	if compared || r.judge != nil {
		if text, err = json.Marshal(cell); err != nil {
			return err
		}
	}
	_, err = b.Write(text)
	return err
}
