// Package stage shows the story of a cell in a terminal, one event after the other, for
// whoever explains a race to others. What the story says is the reports' affair, and
// what keys there are and how it looks is that of a [Model], which needs no terminal.
//
// A telling and a terminal go in; nothing comes out.
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

// Show shows a story in a terminal until its user has seen enough, or the context is
// done, whose error it returns then.
func Show(ctx context.Context, in, out *os.File, told reports.Narrative, colour bool) error {
	program := tea.NewProgram(player{New(told, colour)}, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithoutSignalHandler()) // signals end the context
	_, err := program.Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// A player is a Model as the library wants it.
type player struct{ Model }

// An alarm says that it is time to go on, with the number that Waits gave.
type alarm int

// Init is part of [tea.Model].
func (p player) Init() tea.Cmd { return nil }

// Update is part of [tea.Model].
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
	if wait == 0 || turn == before { // it waits already
		return p, nil
	}
	return p, tea.Tick(wait, func(time.Time) tea.Msg { return alarm(turn) })
}

// View is part of [tea.Model].
func (p player) View() tea.View {
	view := tea.NewView(strings.Join(p.Screen(), "\n"))
	view.AltScreen = true // what was on the terminal before comes back
	return view
}
