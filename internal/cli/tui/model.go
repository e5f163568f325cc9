package tui

import (
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/reports"
)

// everybody is the lane of who follows no lane.
const everybody = -1

const (
	// slower is how many times as long as it took a time is shown: what is between a
	// request and its reply is some tenths of a millisecond.
	slower = 1000
	// shortest and longest are how long an event is shown at least and at most while
	// time goes on by itself: what is sooner over nobody sees, and nobody wants to
	// wait for a lease to end.
	shortest = 100 * time.Millisecond
	longest  = 1500 * time.Millisecond
)

// A Model is a story on a screen: how far it is told, and how that looks. It knows no
// terminal: keys go in by their names, and lines come out.
type Model struct {
	narrative     reports.Narrative
	colour        bool
	sizes         sizes
	width, height int
	verdict       []string // in lines as wide as the window

	at      int // the row that is told last
	lane    int // that is followed, or everybody
	scroll  int // how many lines of the verdict are above what is seen of it
	running bool
	// turn numbers what is waited for, so that who waited for what was called off
	// can be told from who waits now.
	turn int
	done bool
	note string // what the last key could not do
}

// New returns the story at its first event. Colours only repeat what is said in words or
// signs as well.
func New(told reports.Narrative, colour bool) Model {
	return Model{narrative: told, colour: colour, sizes: measure(told), lane: everybody}.Resize(80, 24)
}

// Resize fits the story into a window of so many columns and lines.
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

// Done reports whether its user has seen enough.
func (m Model) Done() bool { return m.done }

// Press does what a key means, by its name, such as space, n, left or ctrl+c.
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

// Waits returns how long the story waits until it goes on by itself, and the number to
// go on with. It is 0 if the story stands still.
func (m Model) Waits() (time.Duration, int) {
	to := m.later()
	if !m.running || to < 0 {
		return 0, m.turn
	}
	return pace(m.narrative.Rows[to].At - m.narrative.Rows[m.at].At), m.turn
}

// pace returns how long a time is shown.
func pace(gap time.Duration) time.Duration {
	if gap > longest/slower {
		return longest
	}
	return max(shortest, gap*slower)
}

// GoOn goes on by itself, if that was not called off since.
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

// last returns the place of the last row, 0 if there is none.
func (m Model) last() int { return max(0, len(m.narrative.Rows)-1) }

// ended reports whether the story is told to its end.
func (m Model) ended() bool { return m.at == m.last() }

func (m Model) to(at int) Model {
	m.at, m.scroll = at, 0
	return m
}

// halt stops what goes on by itself: who takes a step by hand wants to stay there.
func (m Model) halt() Model {
	m.running = false
	m.turn++
	return m
}

// run lets time go on, from the beginning if the story is over, or stops it.
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

// next goes on to the next row, or through the verdict.
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

// back is the reverse of next.
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

// later returns the next row of who is followed, or -1.
func (m Model) later() int {
	for at := m.at + 1; at < len(m.narrative.Rows); at++ {
		if m.follows(at) {
			return at
		}
	}
	return -1
}

// follows reports whether a row is of the lane that is followed.
func (m Model) follows(at int) bool {
	return m.lane == everybody || slices.Contains(m.narrative.Rows[at].Lanes, m.lane)
}

// follow chooses a lane; behind the last, and before the first, are all of them.
func (m Model) follow(lane int) Model {
	switch {
	case lane < everybody:
		lane = len(m.narrative.Lanes) - 1
	case lane >= len(m.narrative.Lanes):
		lane = everybody
	}
	m.lane = lane
	m.turn++ // what comes next is another row
	return m
}
