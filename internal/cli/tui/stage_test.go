package tui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lockfault/lockfault/reports"
)

// The library's messages are keys, sizes and alarms of the model, and its View is the
// whole terminal.
func TestPlayer(t *testing.T) {
	told := reports.Narrative{Heading: "a under b", Lanes: []string{"A"}, Verdict: []string{"held: nothing went wrong"}, Rows: []reports.Row{
		{Number: "0", Seconds: "0.000", What: "A calls acquire", Lanes: []int{0}},
		{Number: "1", Seconds: "0.001", At: 100 * time.Microsecond, What: "A's acquire returns", Lanes: []int{0}},
	}}
	var model tea.Model = player{New(told, false)}
	if model.Init() != nil {
		t.Error("something is done before anybody wants it")
	}
	send := func(msg tea.Msg) (cmd tea.Cmd) {
		model, cmd = model.Update(msg)
		return cmd
	}
	key := func(code rune, text string) tea.Msg { return tea.KeyPressMsg{Code: code, Text: text} }
	where := func() int { return model.(player).at }

	send(tea.WindowSizeMsg{Width: 40, Height: 12})
	if p := model.(player); p.width != 40 || p.height != 12 {
		t.Errorf("the window is %dx%d", p.width, p.height)
	}
	for _, c := range []struct {
		msg  tea.Msg
		want int
	}{
		{key(tea.KeySpace, " "), 1}, {key(tea.KeyLeft, ""), 0}, {key(tea.KeyRight, ""), 1}, {key('b', "b"), 0}, {key('n', "n"), 1},
		{key(tea.KeyHome, ""), 0}, {key(tea.KeyEnd, ""), 1}, {key('g', "g"), 0}, {tea.KeyPressMsg{Code: 'g', ShiftedCode: 'G', Mod: tea.ModShift, Text: "G"}, 1},
		{key('g', "g"), 0},
	} {
		if cmd := send(c.msg); cmd != nil || where() != c.want {
			t.Errorf("%v: at %d, want %d (something is waited for: %v)", c.msg, where(), c.want, cmd != nil)
		}
	}
	send(key(tea.KeyDown, ""))
	if model.(player).lane != 0 {
		t.Error("down follows nobody")
	}
	send(key(tea.KeyUp, ""))
	send(key(tea.KeyUp, ""))
	send(key(tea.KeyEscape, ""))
	if model.(player).lane != everybody {
		t.Error("esc follows somebody")
	}

	wait := send(key('r', "r"))
	if wait == nil {
		t.Fatal("nothing goes on by itself")
	}
	if send(tea.WindowSizeMsg{Width: 80, Height: 24}) != nil {
		t.Error("a window that changes its size has time go on twice")
	}
	if cmd := send(wait()); cmd != nil || where() != 1 {
		t.Errorf("at %d, want the end (something is waited for: %v)", where(), cmd != nil)
	}

	for _, quit := range []tea.Msg{key('q', "q"), tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}} {
		_, cmd := model.Update(quit)
		if cmd == nil {
			t.Fatalf("%v does not quit", quit)
		}
		if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%v does something else", quit)
		}
	}
	if view := model.View(); !view.AltScreen || view.Content == "" {
		t.Errorf("the view is %+v", view)
	}
}
