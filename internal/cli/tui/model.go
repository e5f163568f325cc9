package tui

import (
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/reports"
)

// everybody is the value of lane if all lanes are followed.
const everybody = -1

const (
	// slower is the factor by which the playback is slower than the story: a request and its reply
	// are only tenths of a millisecond apart.
	slower = 1000
	// shortest and longest bound the time between two events of the playback. An event shown for
	// less time is invisible, and a user should not have to wait for the end of a lease.
	shortest = 100 * time.Millisecond
	longest  = 1500 * time.Millisecond
)

// Model is the state of a story on a screen: the current event and the layout. Model is independent
// of the terminal: names of keys come in, and lines go out. A Model is a value; its methods return
// the changed copy.
type Model struct {
	narrative     reports.Narrative
	colour        bool
	sizes         sizes
	width, height int
	verdict       []string // wrapped to the width of the window

	at      int // index of the current row
	lane    int // the lane that is followed, or everybody
	scroll  int // number of lines of the verdict above the visible part
	running bool
	// turn is the number of the current wait. turn changes with each wait, so that the timer of a
	// cancelled wait can be ignored.
	turn int
	done bool
	note string // message if the last key had no effect
}

// New returns a Model of the story at its first event, for a window of 80 columns and 24 lines.
// Colours only repeat what words or signs say as well.
func New(told reports.Narrative, colour bool) Model {
	return Model{narrative: told, colour: colour, sizes: measure(told), lane: everybody}.Resize(80, 24)
}

// Resize fits the story into a window of the given numbers of columns and lines.
func (m Model) Resize(width, height int) Model {
	m.width, m.height = max(1, width), max(1, height)
	m.verdict = nil
	for _, line := range m.narrative.Verdict {
		if strings.TrimSpace(line) != "" {
			m.verdict = append(m.verdict, fold(line, m.width, "    ")...)
		}
	}
	m.scroll = min(m.scroll, m.hidden())
	return m
}

// Done reports whether the user has quit.
func (m Model) Done() bool { return m.done }

// Press handles a key, given by its name, such as space, n, left or ctrl+c. Unknown keys only clear
// the note.
func (m Model) Press(key string) Model {
	m.note = ""
	switch key {
	case "space", " ", "right", "n":
		return m.halt().next()
	case "left", "b":
		return m.halt().back()
	case "home", "g":
		return m.halt().to(0)
	case "end", "G":
		return m.halt().to(m.last())
	case "r":
		return m.run()
	case "down":
		return m.follow(m.lane + 1)
	case "up":
		return m.follow(m.lane - 1)
	case "esc":
		return m.follow(everybody)
	case "q", "ctrl+c":
		m.done = true
		return m.halt()
	}
	return m
}

// Waits returns the duration of the wait before the playback continues, and the turn to pass to
// GoOn. The duration is 0 if the playback is stopped.
func (m Model) Waits() (time.Duration, int) {
	to := m.later()
	if !m.running || to < 0 {
		return 0, m.turn
	}
	return pace(m.narrative.Rows[to].At - m.narrative.Rows[m.at].At), m.turn
}

// pace returns the duration of the wait for a gap of simulated time.
func pace(gap time.Duration) time.Duration {
	if gap > longest/slower {
		return longest
	}
	return max(shortest, gap*slower)
}

// GoOn moves the playback to its next row. GoOn does nothing if the wait with this turn was
// cancelled.
func (m Model) GoOn(turn int) Model {
	if !m.running || turn != m.turn {
		return m
	}
	m.turn++
	if to := m.later(); to >= 0 {
		m = m.to(to)
	}
	m.running = m.later() >= 0
	return m
}

// last returns the index of the last row, or 0 without rows.
func (m Model) last() int { return max(0, len(m.narrative.Rows)-1) }

// ended reports whether the last row is shown.
func (m Model) ended() bool { return m.at == m.last() }

func (m Model) to(at int) Model {
	m.at, m.scroll = at, 0
	return m
}

// halt stops the playback, because a user who moves by hand wants to stay there.
func (m Model) halt() Model {
	m.running = false
	m.turn++
	return m
}

// run starts the playback, from the beginning if the story is at its end, or stops it.
func (m Model) run() Model {
	if m.running {
		return m.halt()
	}
	m = m.halt()
	if m.later() < 0 {
		m = m.to(0)
	}
	m.running = m.later() >= 0
	return m
}

// next moves to the next row, or after the last row through the verdict.
func (m Model) next() Model {
	switch to := m.later(); {
	case to >= 0:
		return m.to(to)
	case m.ended() && m.scroll < m.hidden():
		m.scroll++
	case m.lane == everybody || m.ended():
		m.note = "this is the end: q ends the play, g begins anew"
	default:
		m.note = "nothing more of " + m.narrative.Lanes[m.lane] + ": esc for all lanes, G for the end"
	}
	return m
}

// back undoes next.
func (m Model) back() Model {
	if m.scroll > 0 {
		m.scroll--
		return m
	}
	for at := m.at - 1; at >= 0; at-- {
		if m.follows(at) {
			return m.to(at)
		}
	}
	m.note = "this is the beginning"
	if m.lane != everybody {
		m.note = "nothing of " + m.narrative.Lanes[m.lane] + " before: esc for all lanes, g for the beginning"
	}
	return m
}

// later returns the index of the next row of the followed lane, or -1.
func (m Model) later() int {
	for at := m.at + 1; at < len(m.narrative.Rows); at++ {
		if m.follows(at) {
			return at
		}
	}
	return -1
}

// follows reports whether a row belongs to the followed lane.
func (m Model) follows(at int) bool {
	return m.lane == everybody || slices.Contains(m.narrative.Rows[at].Lanes, m.lane)
}

// follow selects a lane. Numbers after the last lane and before everybody wrap around.
func (m Model) follow(lane int) Model {
	switch {
	case lane < everybody:
		lane = len(m.narrative.Lanes) - 1
	case lane >= len(m.narrative.Lanes):
		lane = everybody
	}
	m.lane = lane
	m.turn++ // the wait for the previous next row is void
	return m
}
