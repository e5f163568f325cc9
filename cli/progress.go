package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/lockfault/lockfault/explore"
)

// A progress is a line on a terminal that says how far a run has come. On
// anything but a terminal it writes nothing.
type progress struct {
	w     io.Writer // nil: nothing
	total int
	done  int
	last  time.Time
	trend trend
}

// progressPause is the least time between two versions of the line.
const progressPause = 50 * time.Millisecond

// clearLine takes the cursor to the beginning of an empty line.
const clearLine = "\r\x1b[K"

func newProgress(w io.Writer, total int) *progress {
	p := &progress{total: total}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.w = w
	}
	return p
}

// finished counts a cell.
func (p *progress) finished(j job) {
	p.done++
	if p.w == nil {
		return
	}
	if now := time.Now(); now.Sub(p.last) >= progressPause {
		p.last = now
		fmt.Fprintf(p.w, "%s%d of %d cells, last %s under %s", clearLine, p.done, p.total, j.Strategy, j.Scenario)
	}
}

// searched tells how far a search has come.
func (p *progress) searched(r explore.Result, took time.Duration) {
	if p.w == nil {
		return
	}
	p.trend.add(r)
	if now := time.Now(); now.Sub(p.last) >= progressPause {
		p.last = now
		fmt.Fprintf(p.w, "%sdepth %d, %s states, %s/s, %s, %v", clearLine, r.Depth, thousands(r.States),
			thousands(int(float64(r.States)/took.Seconds())), count(len(r.Findings), "finding", "findings"), &p.trend)
	}
}

// close removes the line.
func (p *progress) close() {
	if p.w != nil {
		io.WriteString(p.w, clearLine)
	}
}
