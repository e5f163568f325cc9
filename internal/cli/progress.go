package cli

import (
	"fmt"
	"io"
	"time"

	"golang.org/x/term"

	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/reports"
)

// A progress says how far a run has come: on a terminal on a line that is written over and
// over, elsewhere, as in the log of a CI, on a line once in a while.
type progress struct {
	w     io.Writer             // nil: nothing
	clear func(sequence string) // writes an escape sequence; nil unless w is a terminal
	each  bool                  // a line for each cell
	total int
	done  int
	first int // how many were done before
	begun time.Time
	last  time.Time
	trend trend
}

const (
	// progressPause is the least time between two versions of the line on a terminal.
	progressPause = 50 * time.Millisecond
	// logPause is the least time between two lines elsewhere: what is over sooner has none.
	logPause = time.Minute
)

// clearLine takes the cursor to the beginning of an empty line.
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

// had notes that so many are done by an earlier run.
func (p *progress) had(done int) { p.done, p.first = done, done }

// due says whether it is time for a line.
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

// say writes the line.
func (p *progress) say(text string) {
	if p.clear != nil {
		p.clear(clearLine)
		fmt.Fprint(p.w, text)
	} else {
		fmt.Fprintln(p.w, text)
	}
}

// finished counts a cell.
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

// left says how long the rest takes if it is like what was done so far; nothing before that
// means anything.
func (p *progress) left() string {
	took, done := time.Since(p.begun), p.done-p.first
	if done < 10 || took < 2*time.Second || p.done >= p.total {
		return ""
	}
	rest := time.Duration(float64(took) / float64(done) * float64(p.total-p.done))
	return fmt.Sprintf(", about %v left", max(time.Second, rest.Round(time.Second)))
}

// searched tells how far a search has come.
func (p *progress) searched(r explore.Result, took time.Duration) {
	p.trend.add(r)
	if p.due() {
		p.say(fmt.Sprintf("depth %d, %s states, %s/s, %s, %v", r.Depth, reports.Thousands(r.States),
			reports.Thousands(int(float64(r.States)/took.Seconds())), count(len(r.Findings), "finding", "findings"), &p.trend))
	}
}

// close removes the line.
func (p *progress) close() {
	if p.clear != nil && p.w != nil {
		p.clear(clearLine)
	}
}
