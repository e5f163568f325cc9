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

// WorkDir is the directory below the report's in which a run keeps what it has
// finished. It is there as long as the run is not complete.
const WorkDir = ".lockfault"

// A Report collects the cells of a run as they finish, and puts the report in the
// place of an older one when it is closed. Until then whoever looks finds the
// older one, however this process ends; and what was added is kept for [Resume].
// Memory does not grow with the cells' witnesses and stacks. Not safe for
// concurrent use.
type Report struct {
	dir     string
	out     *below.Dir // dir
	head    Head
	plan    Plan
	place   atomicdir.Place
	journal *journal
	attempt int
	at      []extent // by place
	missing int
	agree   Agreement
	judge   func(*Cell)
	err     func() error
}

// A Plan says which run a report is of: only the same one is resumed.
type Plan struct {
	// Cells is how many there will be.
	Cells int `json:"cells"`
	// Traits are what the cells depend on.
	Traits []Trait `json:"traits"`
	// Cell returns the names of the cell at a place. A journal that has another cell there is not
	// resumed. Nil checks no names.
	Cell func(place int) CellName `json:"-"`
	// Differs returns how a cell of the journal differs from its history, which is below dir. Such a
	// cell is played anew. Nil compares no histories.
	Differs func(cell Cell, dir string) string `json:"-"`
}

// A CellName holds the names that identify a cell in a report.
type CellName struct{ World, Strategy, Scenario string }

func (n CellName) String() string {
	return fmt.Sprintf("%q under %q in %q", n.Strategy, n.Scenario, n.World)
}

// A Trait is one thing that the cells of a run depend on.
type Trait struct {
	Name  string `json:"name"` // what it is, for a sentence
	Value string `json:"value"`
	// Digest says that the value tells a reader nothing.
	Digest bool `json:"digest,omitempty"`
}

// Create prepares a report in the directory, which it makes if it is missing.
// It finds out, before any work is done, whether the report can be written,
// and drops what an earlier run has kept that was not completed. The report must
// be closed or left.
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

// Resume goes on with the report in the directory of a run that ended before it
// was complete. That must have had the same plan; the error says in one line
// what differs. Cells that weren't decided count as missing. The report must be
// closed or left.
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

// open takes the directory for this process.
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
	if !used { // nothing is made where nothing can be written
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
	// A run may have been killed when its report was all but in its place.
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

// begin starts anew.
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

// goOn reads what was finished and starts another attempt.
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

// shows reports whether a cell of that attempt was decided and is what its history shows. The directory
// may come from somebody else, so a cell of which this can't be said is played anew.
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

// Differs returns how a cell differs from what its history shows, which is below that directory; it is
// empty if the cell does not differ. A cell without a history differs.
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

// attempts returns the attempts that have left something.
func (r *Report) attempts() (list []int, err error) {
	entries, err := r.out.ReadDir(WorkDir)
	for _, entry := range entries {
		if n, err := strconv.ParseInt(entry.Name(), 10, 32); err == nil {
			list = append(list, int(n))
		}
	}
	return list, err
}

// try starts an attempt that has its directory to itself: workers of a former one
// that was killed may still be writing to theirs.
func (r *Report) try(former []int) error {
	r.attempt = slices.Max(append(former, 0)) + 1
	return r.out.Mkdir(work(r.attempt), 0o755)
}

// work returns the name of an attempt's directory, below the report's.
func work(attempt int) string { return filepath.Join(WorkDir, strconv.Itoa(attempt)) }

// Dir returns the directory below which cells leave their histories and logs,
// where they shall be below the report's in the end.
func (r *Report) Dir() string { return r.out.Join(work(r.attempt)) }

// Has reports whether the cell at that place is there.
func (r *Report) Has(place int) bool { return r.at[place].length > 0 }

// Missing returns how many cells are not there yet.
func (r *Report) Missing() int { return r.missing }

// Add takes the cell at that place, from 0, in the order of the report. It is kept,
// whatever becomes of this process.
func (r *Report) Add(place int, cell Cell) error {
	at, err := r.journal.add(place, r.attempt, cell)
	if err != nil {
		return fmt.Errorf("reports: keep a cell: %w", err)
	}
	return r.keep(place, cell, at)
}

// Judge has the cells judged when they are written: the function, which must not be nil,
// says what is expected of each, and then they are settled. That goes for those, too, that
// an earlier run has finished, so that they aren't judged by what was expected then.
// Without it cells are written as they were added.
func (r *Report) Judge(expect func(*Cell)) { r.judge = expect }

// Until has Close end, without a report, once the function returns an error: what was added is kept.
func (r *Report) Until(err func() error) { r.err = err }

// Cells calls visit with each cell that is there, in the order of the report, as it was
// added. An error of visit ends it.
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

// Leave ends the work on the report and writes none. What was added is kept. It may be called
// more than once, and after Close.
func (r *Report) Leave() {
	if r.journal != nil {
		r.journal.close()
	}
	_ = r.out.Close() // it was opened for its entries only
}

// Spoils reports whether Close would put less in the place of a complete report.
func (r *Report) Spoils() bool {
	if r.missing == 0 {
		return false
	}
	before, err := Scan(filepath.Join(r.dir, ResultsFile), func(Cell) error { return nil })
	return err == nil && !before.Interrupted
}

// Close writes results.json, report.md and index.html with the cells added so far, says in
// them if some are missing, and puts them and the cells' files in the place of
// what an earlier run has written. If none is missing nothing else is kept.
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

// clear removes what was kept of a run that is complete, and last the file by which
// others are kept out. What can't be removed the next run removes: a worker of a
// run that was killed may still be writing there.
func (r *Report) clear() {
	left := false
	entries, _ := r.out.ReadDir(WorkDir)
	for _, entry := range entries {
		if name := entry.Name(); name != journalName && name != markName {
			left = r.out.RemoveAll(filepath.Join(WorkDir, name)) != nil || left
		}
	}
	// Without the mark the next run takes the directory for ours only if it has no other files.
	if !left {
		_ = r.out.Remove(filepath.Join(WorkDir, markName))
	}
	_ = r.out.Remove(filepath.Join(WorkDir, journalName))
	_ = r.out.Remove(WorkDir) // unless the next run is there already
}

// assemble makes the new report, out of sight.
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

// writeResults writes the contract: the head's fields, then the cells, one a
// line. What files they have it brings into that directory, below the report's.
func (r *Report) writeResults(w io.Writer, dir string) error {
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
		if err := r.writeCell(b, at, dir); err != nil {
			return err
		}
	}
	b.WriteString("\n]}\n")
	return b.Flush()
}

// writeCell writes a cell from the journal, with what only the whole run tells of
// it, and brings its files.
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
