// Package tui shows the story of a cell in a terminal, one event after the other. A
// [reports.Narrative] and a terminal come in; nothing goes out. The package contains no knowledge
// of locks: package reports words the story, and [Model] handles keys and layout without a
// terminal.
package tui

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lockfault/lockfault/reports"
)

// Show shows a story in a terminal and blocks until the user quits or ctx is done; then it returns
// the error of ctx.
func Show(ctx context.Context, in, out *os.File, told reports.Narrative, colour bool) error {
	program := tea.NewProgram(player{New(told, colour)}, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithoutSignalHandler()) // signals cancel ctx
	_, err := program.Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// player adapts a Model to [tea.Model].
type player struct{ Model }

// alarm is the message at the end of a wait, with the turn from Waits.
type alarm int

// Init implements [tea.Model].
func (p player) Init() tea.Cmd { return nil }

// Update implements [tea.Model].
func (p player) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	before := p.turn
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		p.Model = p.Resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		p.Model = p.Press(msg.String())
	case alarm:
		p.Model = p.GoOn(int(msg))
	}
	if p.Done() {
		return p, tea.Quit
	}
	wait, turn := p.Waits()
	if wait == 0 || turn == before { // the timer of this turn already runs
		return p, nil
	}
	return p, tea.Tick(wait, func(time.Time) tea.Msg { return alarm(turn) })
}

// View implements [tea.Model].
func (p player) View() tea.View {
	view := tea.NewView(strings.Join(p.Screen(), "\n"))
	view.AltScreen = true // restores the previous contents of the terminal at the end
	return view
}
