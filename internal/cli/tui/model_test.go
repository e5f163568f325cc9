package tui_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"gotest.tools/v3/golden"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cellresult"
	"github.com/lockfault/lockfault/internal/cli/tui"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
)

// play plays a cell of those that come with lockfault, as the command does.
func play(t *testing.T, strategyName, scenario string) (reports.Cell, checker.History) {
	t.Helper()
	strategy, ok := all.Registry().Lookup(strategyName)
	if !ok {
		t.Fatalf("there is no strategy %s", strategyName)
	}
	return playOf(t, strategy, scenario)
}

func playOf(t *testing.T, strategy strategies.Strategy, scenario string) (reports.Cell, checker.History) {
	t.Helper()
	script, err := scenarios.Lookup(scenario)
	if err != nil {
		t.Fatal(err)
	}
	played := harness.Cell{Strategy: strategy, Script: script, Seed: 1}
	outcome := harness.Play(t, played)
	cell := cellresult.Cell(harness.Sim, played, outcome)
	cellresult.Expect(&cell, played, nil)
	cell.Settle()
	return cell, outcome.History
}

// race is the race of document 000, on the stage without colours.
func race(t *testing.T) tui.Model {
	t.Helper()
	cell, history := play(t, "getset-timestamp", "getset-race")
	return tui.New(reports.Narrate(cell, history, reports.View{}), false).Resize(100, 30)
}

func press(m tui.Model, keys ...string) tui.Model {
	for _, key := range keys {
		m = m.Press(key)
	}
	return m
}

func times(n int, key string) []string { return slices.Repeat([]string{key}, n) }

func screen(m tui.Model) string { return strings.Join(m.Screen(), "\n") + "\n" }

// at returns how far a story is told, of how much.
func at(t *testing.T, m tui.Model) (at, of int) {
	t.Helper()
	found := regexp.MustCompile(`(?m)(\d+) of (\d+)$`).FindString(m.Screen()[0])
	if _, err := fmt.Sscanf(found, "%d of %d", &at, &of); err != nil {
		t.Fatalf("%v: %q", err, m.Screen()[0])
	}
	return at, of
}

func TestScreens(t *testing.T) {
	m := race(t)
	golden.Assert(t, screen(m), "first.txt")
	golden.Assert(t, screen(press(m, times(47, "n")...)), "won.txt")
	golden.Assert(t, screen(press(m, "G")), "last.txt")
	golden.Assert(t, screen(press(m, append([]string{"down", "down", "down"}, times(12, "n")...)...)), "follow.txt")
	for _, size := range [][2]int{{20, 5}, {40, 12}, {80, 24}, {300, 100}} {
		at := m.Resize(size[0], size[1])
		golden.Assert(t, screen(press(at, times(51, "n")...))+"\n"+screen(press(at, "G")), fmt.Sprintf("%dx%d.txt", size[0], size[1]))
	}
	cell, history := play(t, "redlock", "gc-pause-holding")
	pause := tui.New(reports.Narrate(cell, history, reports.View{}), true).Resize(80, 24)
	golden.Assert(t, strings.ReplaceAll(screen(press(pause, times(42, "n")...)), "\x1b", "ESC"), "overlap-in-colour.txt")
}

func TestKeys(t *testing.T) {
	m := race(t)
	_, last := at(t, m)
	for _, c := range []struct {
		name string
		keys []string
		want int
	}{
		{"nothing", nil, 1},
		{"forward", []string{"space", " ", "right", "n"}, 5},
		{"back", []string{"n", "n", "n", "b", "left"}, 2},
		{"the end", []string{"G"}, last},
		{"end", []string{"end"}, last},
		{"the beginning", []string{"G", "g"}, 1},
		{"home", []string{"G", "home"}, 1},
		{"before the beginning", []string{"b", "left"}, 1},
		{"behind the end", append([]string{"G"}, times(50, "n")...), last},
		{"all the way", times(last+50, "n"), last},
		{"and back", append(times(last+50, "n"), times(last+50, "b")...), 1},
		{"what means nothing", []string{"x", "enter", "ctrl+g", "", "日"}, 1},
		{"whom to follow", []string{"n", "down", "up", "up", "esc"}, 2},
	} {
		got := press(m, c.keys...)
		if n, _ := at(t, got); n != c.want {
			t.Errorf("%s: at %d, want %d", c.name, n, c.want)
		}
		if got.Done() {
			t.Errorf("%s: done", c.name)
		}
	}
	for _, key := range []string{"q", "ctrl+c"} {
		if !press(m, "n", key).Done() {
			t.Errorf("%s doesn't quit", key)
		}
	}
	if text := screen(press(m, "b")); !strings.Contains(text, "this is the beginning") {
		t.Errorf("nothing says that there is nothing before:\n%s", text)
	}
}

// Who follows a client sees its events, and no others on the way.
func TestFollowing(t *testing.T) {
	cell, history := play(t, "getset-timestamp", "getset-race")
	told := reports.Narrate(cell, history, reports.View{})
	if got := strings.Join(told.Lanes, " "); got != "M A B C n1" {
		t.Fatalf("lanes %s", got)
	}
	for lane, name := range told.Lanes {
		m := tui.New(told, false).Resize(100, 30)
		m = press(m, times(lane+1, "down")...)
		if text := m.Screen()[1]; !strings.Contains(text, "["+name+"]") {
			t.Errorf("%s is not marked: %s", name, text)
		}
		var want []int
		for i, r := range told.Rows {
			if i > 0 && slices.Contains(r.Lanes, lane) {
				want = append(want, i+1)
			}
		}
		var got []int
		for {
			before, _ := at(t, m)
			m = m.Press("n")
			now, _ := at(t, m)
			if now == before {
				break
			}
			got = append(got, now)
			if row := current(t, m); !strings.HasPrefix(row, ">*") {
				t.Errorf("the row of %s has no mark: %s", name, row)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the events of %s are %v, want %v", name, got, want)
		}
		if text := screen(m); !strings.Contains(text, "nothing more of "+name) {
			t.Errorf("nothing says that there is nothing more of %s:\n%s", name, text)
		}
		for range want {
			m = m.Press("b")
		}
		if text := screen(m.Press("b").Press("b")); len(want) > 0 && !strings.Contains(text, "nothing of "+name+" before") {
			t.Errorf("nothing says that there is nothing of %s before:\n%s", name, text)
		}
	}
	m := tui.New(told, false)
	if text := m.Press("up").Screen()[1]; !strings.Contains(text, "[n1]") {
		t.Errorf("up from all is not the last lane: %s", text)
	}
	if text := press(m, times(len(told.Lanes)+1, "down")...).Screen()[1]; !strings.Contains(text, "[all]") {
		t.Errorf("down from the last lane is not all: %s", text)
	}
	if text := press(m, "down", "esc").Screen()[1]; !strings.Contains(text, "[all]") {
		t.Errorf("esc is not all: %s", text)
	}
}

// current returns the row that is marked.
func current(t *testing.T, m tui.Model) string {
	t.Helper()
	for _, line := range m.Screen() {
		if strings.HasPrefix(line, ">") {
			return line
		}
	}
	t.Fatalf("no row is marked:\n%s", screen(m))
	return ""
}

func TestTimeGoesOn(t *testing.T) {
	m := race(t)
	_, last := at(t, m)
	if wait, _ := m.Waits(); wait != 0 {
		t.Errorf("a story that nobody let run waits %v", wait)
	}
	m = m.Press("r")
	if !strings.Contains(m.Screen()[0], "running") {
		t.Errorf("nothing says that time goes on: %s", m.Screen()[0])
	}
	var shortest, longest time.Duration
	for n := 1; n < last; n++ {
		wait, turn := m.Waits()
		if n == 1 || wait < shortest {
			shortest = wait
		}
		longest = max(longest, wait)
		if again := m.GoOn(turn - 1); screen(again) != screen(m) {
			t.Fatal("what was called off goes on")
		}
		m = m.GoOn(turn)
		if got, _ := at(t, m); got != n+1 {
			t.Fatalf("at %d, want %d", got, n+1)
		}
	}
	if wait, _ := m.Waits(); wait != 0 || strings.Contains(m.Screen()[0], "running") {
		t.Errorf("the story is over, and waits %v: %s", wait, m.Screen()[0])
	}
	if shortest != 100*time.Millisecond || longest != 1500*time.Millisecond {
		t.Errorf("an event is shown from %v to %v", shortest, longest)
	}
	// From the end it begins anew; a second r, or a step by hand, stops it.
	m = m.Press("r")
	if got, _ := at(t, m); got != 1 {
		t.Errorf("it goes on from %d", got)
	}
	for _, key := range []string{"r", "n", "b", "g", "G"} {
		_, turn := m.Waits()
		stopped := m.Press(key)
		if wait, _ := stopped.Waits(); wait != 0 {
			t.Errorf("%s does not stop it", key)
		}
		if screen(stopped.GoOn(turn)) != screen(stopped) {
			t.Errorf("after %s it goes on", key)
		}
	}
}

// Whatever the size, everything is within the window, at every event.
func TestSizes(t *testing.T) {
	cell, history := play(t, "redlock", "gc-pause-holding")
	told := reports.Narrate(cell, history, reports.View{})
	m := tui.New(told, true)
	for _, width := range []int{-1, 1, 3, 10, 11, 20, 50, 80, 300} {
		for _, height := range []int{0, 1, 2, 3, 5, 9, 10, 12, 14, 17, 18, 24, 100} {
			m := m.Press("g").Resize(width, height)
			for range len(told.Rows)/5 + 30 {
				within(t, m, width, height)
				m = m.Press("n")
			}
			m = m.Press("G")
			for range 30 { // through the verdict
				within(t, m, width, height)
				m = m.Press("n")
			}
			m = m.Resize(80, 24).Resize(width, height)
			within(t, m, width, height)
		}
	}
}

// within checks that a screen is within the window.
func within(t *testing.T, m tui.Model, width, height int) {
	t.Helper()
	lines := m.Screen()
	if len(lines) > max(1, height) {
		t.Fatalf("%dx%d: %d lines:\n%s", width, height, len(lines), screen(m))
	}
	for _, line := range lines {
		if ansi.StringWidth(line) > max(1, width) || strings.Contains(line, "\n") {
			t.Fatalf("%dx%d: %q is too wide", width, height, line)
		}
	}
	if height >= 12 && !strings.Contains(lines[height-1], "q") && width >= 80 {
		t.Fatalf("%dx%d: the last line does not say how to quit: %q", width, height, lines[len(lines)-1])
	}
	if n := strings.Count(strings.Join(lines, "\n"), "> "); height > 1 && width > 2 && n == 0 && len(lines) > 1 {
		t.Fatalf("%dx%d: no row is marked:\n%s", width, height, strings.Join(lines, "\n"))
	}
}

// All of a verdict can be read, in whatever window.
func TestVerdictIsReadToItsEnd(t *testing.T) {
	cell, history := play(t, "redlock", "gc-pause-holding")
	told := reports.Narrate(cell, history, reports.View{})
	last := told.Verdict[len(told.Verdict)-1]
	m := tui.New(told, false).Resize(80, 18).Press("G")
	if strings.Contains(screen(m), last) {
		t.Fatalf("the verdict is no longer than the window:\n%s", screen(m))
	}
	if text := screen(m); !strings.Contains(text, "space for the rest of the verdict") {
		t.Errorf("nothing says that there is more:\n%s", text)
	}
	end := press(m, times(100, "n")...)
	if !strings.Contains(screen(end), last) {
		t.Errorf("the end of the verdict is not to be seen:\n%s", screen(end))
	}
	if back := press(end, times(100, "b")...); screen(back.Press("G")) != screen(m) {
		t.Errorf("the way back leads elsewhere:\n%s", screen(back))
	}
}

// Whatever a lock, a server or a script's author calls things, nothing but this program
// moves the cursor.
func TestHostileNames(t *testing.T) {
	evil := "\x1b[2J\x1b]0;title\a\r\n\t\u202e\u2028\u009b31mX"
	for _, name := range []string{evil, evil + strings.Repeat("x", 10_000), strings.Repeat("日本", 5_000), strings.Repeat("e\u0301", 5_000)} {
		events := []checker.Event{
			{Kind: checker.Step, Line: 1, Text: name},
			{Kind: checker.Fault, Node: name, Text: name + " failover"},
			{Kind: checker.Invoke, Client: name, Op: checker.Op(name), Call: 1},
			{Kind: checker.Request, Client: name, Node: name, Server: name, Command: name},
			{Kind: checker.State, Client: name, Node: name, Server: name, Owner: name, Value: name, Expires: time.Second, Cause: checker.Cause(name)},
			{Kind: checker.Reply, Client: name, Node: name, Command: name, Reply: name},
			{Kind: checker.Return, Client: name, Op: checker.Acquire, Call: 1, Result: checker.Result(name), Error: name},
			{Kind: checker.Return, Client: name, Op: checker.Acquire, Call: 1, Result: checker.OK, Error: name},
			{Kind: checker.Write, Client: name, Accepted: true},
			{Kind: checker.Held, Client: name, Node: name, Direction: name, Command: name},
			{Kind: checker.Kind(name), Client: name},
			{Kind: checker.End},
		}
		for i := range events {
			events[i].Index = i
		}
		history := checker.History{Events: events, Meta: checker.Meta{TTL: time.Second, World: name, Clients: []string{name, name + "2"}, Nodes: []string{name}}}
		cell := reports.Cell{World: name, Strategy: name, Scenario: name, Verdict: reports.Violated, Anomalies: []checker.Anomaly{checker.Anomaly(name)},
			Witnesses: []checker.Witness{{Anomaly: checker.Anomaly(name), Message: name, Events: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}},
			Reason:    name, Varies: name, ExpectedBy: name, MetNothing: []reports.MetNothing{{Line: 1, Text: name}}}
		cell.Settle()
		told := reports.Narrate(cell, history, reports.View{})
		for _, size := range [][2]int{{20, 5}, {80, 24}, {300, 100}} {
			m := tui.New(told, false).Resize(size[0], size[1])
			for range 3 * len(events) {
				for _, line := range m.Screen() {
					if bad := strings.IndexFunc(line, dangerous); bad >= 0 {
						t.Fatalf("%d of %.40q gets out: %q", bad, name, line)
					}
					if ansi.StringWidth(line) > size[0] {
						t.Fatalf("%.40q is too wide: %q", name, line)
					}
				}
				m = m.Press("down").Press("n")
			}
			m = press(m, append([]string{"esc", "g"}, times(300, "n")...)...)
			for _, line := range m.Screen() {
				if strings.ContainsFunc(line, dangerous) {
					t.Fatalf("%.40q gets out: %q", name, line)
				}
			}
		}
	}
}

// dangerous are the characters that do something to a terminal.
func dangerous(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// A cell that ended in an error has a reason, and no story.
func TestNoStory(t *testing.T) {
	cell := reports.Cell{World: "sim", Strategy: "mine", Scenario: "flush", Verdict: reports.Error, Reason: "panic: out of cheese\n\ngoroutine 7 [running]:\n\tmain.explode()"}
	cell.Settle()
	m := tui.New(reports.Narrate(cell, checker.History{}, reports.View{}), false)
	golden.Assert(t, screen(m), "no-story.txt")
	for _, key := range []string{"n", "b", "g", "G", "r", "down", "up", "esc"} {
		for _, size := range [][2]int{{1, 1}, {20, 5}, {80, 24}} {
			m = m.Press(key).Resize(size[0], size[1])
			if lines := m.Screen(); len(lines) > size[1] {
				t.Errorf("%v: %d lines", size, len(lines))
			}
		}
	}
	if wait, _ := m.Waits(); wait != 0 {
		t.Errorf("there is nothing to show, and it waits %v", wait)
	}
	if m := tui.New(reports.Narrative{}, false); len(m.Screen()) == 0 || !m.Press("q").Done() {
		t.Error("nothing at all is not shown")
	}
}

// What the stage says of the belief is what the checker judges.
func TestBeliefIsTheCheckers(t *testing.T) {
	overlaps := 0
	for _, strategy := range all.Registry().All() {
		for _, scenario := range []string{"gc-pause-holding", "acquire-twice-release-once", "extend-after-lease", "two-failovers", "quorum-restart-empty"} {
			cell, history := playOf(t, strategy, scenario)
			told := reports.Narrate(cell, history, reports.View{All: true})
			holds := checker.Holds(history)
			overlap := false
			for _, row := range told.Rows {
				if len(row.Events) == 0 {
					continue
				}
				i := row.Events[len(row.Events)-1]
				if history.Events[i].Kind == checker.End {
					break
				}
				var want []string
				for _, h := range holds {
					if h.Began <= i && i < h.Ended {
						want = append(want, h.Client)
					}
				}
				slices.Sort(want)
				if got := slices.Sorted(slices.Values(row.Now.Believers)); !slices.Equal(got, want) {
					t.Errorf("%s under %s: after event %d %q believe, want %q", strategy.Name, scenario, i, got, want)
				}
				overlap = overlap || row.Now.Overlap()
			}
			if overlap != slices.Contains(cell.Anomalies, checker.Overlap) {
				t.Errorf("%s under %s shows an overlap: %v, and the verdict is %v", strategy.Name, scenario, overlap, cell.Anomalies)
			}
			if overlap {
				overlaps++
			}
		}
	}
	if overlaps == 0 {
		t.Error("no story has an overlap")
	}
}
