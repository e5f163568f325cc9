package kit

import (
	"fmt"
	"io"
	"time"

	"golang.org/x/term"
)

// Progress reports how far a run is. On a terminal a single line is overwritten; elsewhere, as in
// the log of a CI system, a new line is printed at most once a minute.
type Progress struct {
	Out     io.Writer             // nil prints nothing
	clear   func(sequence string) // writes an escape sequence; nil unless w is a terminal
	Verbose bool                  // print a line for each cell
	Total   int
	Done    int
	first   int // number of cells finished by an earlier run
	begun   time.Time
	last    time.Time
}

const (
	// progressPause is the shortest time between two updates on a terminal.
	progressPause = 50 * time.Millisecond
	// logPause is the shortest time between two lines elsewhere; shorter runs print none.
	logPause = time.Minute
)

// clearLine moves the cursor to the beginning of the line and erases the line.
const clearLine = "\r\x1b[K"

func NewProgress(w io.Writer, total int) *Progress {
	p := &Progress{Out: w, Total: total, begun: time.Now()}
	if o, ok := w.(*Output); ok && o.File() != nil && term.IsTerminal(int(o.File().Fd())) {
		p.clear = o.control
	}
	if p.clear == nil {
		p.last = p.begun
	}
	return p
}

// Had records that done cells were finished by an earlier run.
func (p *Progress) Had(done int) { p.Done, p.first = done, done }

// Begin reports the beginning of a run on a terminal: the first cell may take seconds.
func (p *Progress) Begin() {
	if p.Out != nil && p.clear != nil {
		p.Say(fmt.Sprintf("%d of %d cells", p.Done, p.Total))
	}
}

// Due reports whether enough time has passed for the next line. If so, it records the time of that
// line.
func (p *Progress) Due() bool {
	if p.Out == nil {
		return false
	}
	pause := logPause
	if p.clear != nil {
		pause = progressPause
	}
	now := time.Now()
	if now.Sub(p.last) < pause {
		return false
	}
	p.last = now
	return true
}

// Say prints a progress line.
func (p *Progress) Say(text string) {
	if p.clear != nil {
		p.clear(clearLine)
		fmt.Fprint(p.Out, text)
	} else {
		fmt.Fprintln(p.Out, text)
	}
}

// Left returns the estimated remaining time at the present rate, or "" before 10 cells and 2 s,
// when an estimate is meaningless.
func (p *Progress) Left() string {
	took, done := time.Since(p.begun), p.Done-p.first
	if done < 10 || took < 2*time.Second || p.Done >= p.Total {
		return ""
	}
	rest := time.Duration(float64(took) / float64(done) * float64(p.Total-p.Done))
	return fmt.Sprintf(", about %v left", max(time.Second, rest.Round(time.Second)))
}

// Close removes the progress line from a terminal.
func (p *Progress) Close() {
	if p.clear != nil && p.Out != nil {
		p.clear(clearLine)
	}
}

// Print prints a line that stays.
func (p *Progress) Print(text string) {
	if p.clear != nil {
		p.clear(clearLine)
	}
	fmt.Fprintln(p.Out, text)
}
