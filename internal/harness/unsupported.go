package harness

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/rediscmd"
)

// unknownCommand finds the name in a server's error about a command that the server does not have.
var unknownCommand = regexp.MustCompile("(?i)unknown (?:command|subcommand) [`'\"]([^`'\"]+)[`'\"]")

// unsupported returns the command or option of a released server that the servers of the cell do not
// have, if an operation of the lock failed for that reason or if the command was not part of an
// operation; empty if there is none. An operation that got the error and succeeded otherwise is
// judged like any other.
func unsupported(h checker.History) string {
	pending := map[string]string{} // the latest gap in each client's operation under way
	busy := map[string]bool{}
	for _, e := range h.Events {
		switch e.Kind {
		case checker.Invoke:
			busy[e.Client], pending[e.Client] = true, ""
		case checker.Return:
			if gap := pending[e.Client]; gap != "" && e.Result != checker.OK {
				return gap
			}
			busy[e.Client] = false
		case checker.Reply:
			gap := missingIn(e.Command, e.Reply)
			if gap != "" && !busy[e.Client] {
				return gap
			}
			if gap != "" {
				pending[e.Client] = gap
			}
		}
	}
	return ""
}

// missingIn returns the command, or the command with the option, that a server lacks according to its
// reply, if a released server has it; empty otherwise.
func missingIn(command, reply string) string {
	if !strings.HasPrefix(reply, "(error)") {
		return ""
	}
	words := strings.Fields(strings.ToUpper(command))
	if gap := missing(reply); gap != "" {
		return gap
	}
	if !strings.Contains(reply, "syntax error") {
		return ""
	}
	for _, o := range rediscmd.Of(words).Options {
		if slices.Contains(words, o.Word) {
			return rediscmd.Of(words).Name + " " + o.Word
		}
	}
	return ""
}

// missing returns the command that an error text calls unknown, if a released server has it; empty
// otherwise.
func missing(text string) string {
	found := unknownCommand.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	name := strings.ToUpper(found[1])
	if c := rediscmd.Lookup(name); c.Redis != "" || c.Valkey != "" {
		return name
	}
	return ""
}

// unsupportedReason returns the reason for an undecided cell whose servers lack a command.
func unsupportedReason(gap string, cell Cell) string {
	if cell.Place == nil {
		return fmt.Sprintf("the simulation does not implement %s; use --world process with a server that has it", gap)
	}
	return fmt.Sprintf("the servers do not have %s: use a newer release", gap)
}
