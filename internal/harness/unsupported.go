package harness

import (
	"cmp"
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
	c := rediscmd.Of(words)
	gap, newest := "", []int{7} // all servers and the simulation have what is older: such an error is the lock's own
	for _, o := range c.Options {
		if since := release(o); slices.Contains(words, o.Word) && slices.Compare(since, newest) > 0 {
			gap, newest = c.Name+" "+o.Word, since
		}
	}
	return gap
}

// release returns the numbers of the first release that has an option.
func release(o rediscmd.Option) []int {
	numbers := make([]int, 3)
	fmt.Sscanf(cmp.Or(o.Redis, o.Valkey), "%d.%d.%d", &numbers[0], &numbers[1], &numbers[2])
	return numbers
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
