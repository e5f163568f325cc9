package cli

import (
	"fmt"
	"io"
	"time"

	"golang.org/x/term"

	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/reports"
)

// progress reports how far a run is. On a terminal a single line is overwritten; elsewhere, as in
// the log of a CI system, a new line is printed at most once a minute.
type progress struct {
	w     io.Writer             // nil prints nothing
	clear func(sequence string) // writes an escape sequence; nil unless w is a terminal
	each  bool                  // print a line for each cell
	total int
	done  int
	first int // number of cells finished by an earlier run
	begun time.Time
	last  time.Time
	trend trend
}

const (
	// progressPause is the shortest time between two updates on a terminal.
	progressPause = 50 * time.Millisecond
	// logPause is the shortest time between two lines elsewhere; shorter runs print none.
	logPause = time.Minute
)

// clearLine moves the cursor to the beginning of the line and erases the line.
const clearLine = "\r\x1b[K"

func newProgress(w io.Writer, total int) *progress {
	p := &progress{w: w, total: total, begun: time.Now()}
	if o, ok := w.(*output); ok && o.file() != nil && term.IsTerminal(int(o.file().Fd())) {
		p.clear = o.control
	}
	if p.clear == nil {
		p.last = p.begun
	}
	return p
}

// had records that done cells were finished by an earlier run.
func (p *progress) had(done int) { p.done, p.first = done, done }

// due reports whether enough time has passed for the next line. If so, it records the time of that
// line.
func (p *progress) due() bool {
	if p.w == nil {
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

// say prints a progress line.
func (p *progress) say(text string) {
	if p.clear != nil {
		p.clear(clearLine)
		fmt.Fprint(p.w, text)
	} else {
		fmt.Fprintln(p.w, text)
	}
}

// finished counts a cell and prints progress.
func (p *progress) finished(j job, c reports.Cell) {
	p.done++
	if p.each {
		text := string(c.Verdict)
		if len(c.Anomalies) > 0 {
			text += ": " + words(c.Anomalies)
		}
		if c.Reruns > 0 {
			text += fmt.Sprintf(", played again %d times", c.Reruns)
		}
		if p.clear != nil {
			p.clear(clearLine)
		}
		fmt.Fprintf(p.w, "%s: %s under %s: %s\n", c.World, j.Strategy, j.Scenario, text)
	}
	if p.due() {
		p.say(fmt.Sprintf("%d of %d cells%s, last %s under %s", p.done, p.total, p.left(), j.Strategy, j.Scenario))
	}
}

// left returns the estimated remaining time at the present rate, or "" before 10 cells and 2 s,
// when an estimate is meaningless.
func (p *progress) left() string {
	took, done := time.Since(p.begun), p.done-p.first
	if done < 10 || took < 2*time.Second || p.done >= p.total {
		return ""
	}
	rest := time.Duration(float64(took) / float64(done) * float64(p.total-p.done))
	return fmt.Sprintf(", about %v left", max(time.Second, rest.Round(time.Second)))
}

// searched prints the progress of a search.
func (p *progress) searched(r explore.Result, took time.Duration) {
	p.trend.add(r)
	if p.due() {
		p.say(fmt.Sprintf("depth %d, %s states, %s/s, %s, %v", r.Depth, reports.Thousands(r.States),
			reports.Thousands(int(float64(r.States)/took.Seconds())), count(len(r.Findings), "finding", "findings"), &p.trend))
	}
}

// close removes the progress line from a terminal.
func (p *progress) close() {
	if p.clear != nil && p.w != nil {
		p.clear(clearLine)
	}
}
