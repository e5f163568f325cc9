package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/rediscmd"
)

// isCommand reports whether text has the form of a command's name.
func isCommand(text string) bool {
	return madeOf(text, func(letter rune) bool {
		return isUpper(letter) || isDigit(letter) || letter == '_' || letter == '.'
	})
}

// knownCommand reports whether Redis, PostgreSQL, ZooKeeper or etcd has such a command. A misspelt
// command would match no message, and the scenario would pass for the wrong reason.
func knownCommand(name string) bool {
	return redisHas(name) || slices.Contains(allCommands(), name)
}

// redisHas reports whether Redis has the command. Names with a dot are commands of modules and are
// accepted without a check.
func redisHas(name string) bool {
	command := rediscmd.Lookup(name)
	return strings.Contains(name, ".") || command.Name != "" && !command.Internal
}

// synonymOf returns the name in the script language of an SQL command that has a synonym, or an
// empty string.
func synonymOf(command string) string {
	switch command {
	case "END":
		return "COMMIT"
	case "ABORT":
		return "ROLLBACK"
	case "START":
		return "BEGIN"
	}
	return ""
}

// OnRedis reports whether the script can run on Redis, and the reason if not. A script cannot run
// on Redis if a gate command names only commands of other services without permitting that no
// message matches, or if a line is about links between nodes.
func (s *Script) OnRedis() (ok bool, why string) {
	for _, step := range s.Steps {
		inject, _ := step.Do.(Inject)
		if faults.AreBetweenNodes(inject.Fault) {
			return false, NothingToCut(step.Line, "Redis")
		}
		order, isOrder := inject.Fault.(faults.Order)
		if !isOrder {
			continue
		}
		if m := order.About(); !m.OrNone && len(m.Commands) > 0 && !slices.ContainsFunc(m.Commands, redisHas) {
			return false, fmt.Sprintf("line %d is about %s, which Redis doesn't have", step.Line, strings.Join(m.Commands, ", "))
		}
	}
	return true, ""
}

// NothingToCut returns the reason why a fault of links between nodes does not apply to a service.
func NothingToCut(line int, service string) string {
	return fmt.Sprintf("line %d: nodes of %s don't talk to one another, so there is nothing to cut", line, service)
}

// allCommands returns the commands that scripts may name, those of Redis first.
func allCommands() []string {
	return slices.Concat(rediscmd.ClientCommands(), faults.Statements(), faults.PostgresMessages(), faults.ZooKeeperRequests(), faults.EtcdRequests())
}
