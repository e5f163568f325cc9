// Package importrule defines which packages of this module may import which. The package contains
// only the rule and, in its test, the check of the rule.
package importrule

// Module is the path of this module.
const Module = "github.com/lockfault/lockfault"

// Allowed returns the rule: for each group, a directory below the module, the other groups that it
// may import. A group includes its sub-directories, unless they are groups themselves. Imports go
// in one direction, from cmd down to checker, which imports only the standard library and
// internal/jsonscan.
func Allowed() map[string][]string {
	return map[string][]string{
		"cmd": {".", "internal/cli", "internal/queue/natsserver", "internal/services", "strategies/all"},
		// The public interface of the command line.
		".": {"internal/cli", "strategies"},
		"internal/cli": {"internal/bench", "internal/cli/tui", "internal/explore", "internal/soak", "internal/sweep", "internal/harness", "internal/worlds", "reports", "scenarios", "strategies", "faults", "checker/history", "checker", "internal/queue", "internal/queue/item",
			"internal/below", "internal/vtime", "internal/input", "internal/jsonscan", "internal/suggest", "internal/workerpool", "internal/printable", "internal/atomicdir", "internal/cellresult", "internal/shell", "internal/stdio", "internal/tempdir", "internal/version"},
		// The command line gets locks of other services from its caller. internal/bench is the code
		// of the command bench and the packages that it measures.
		"internal/bench": {"checker", "faults", "faults/process", "faults/real", "faults/real/proxy", "internal/harness", "internal/worlds", "strategies"},
		"internal/services": {"internal/worlds", "faults/etcd", "faults/postgres", "faults/real", "faults/real/proxy", "faults/zookeeper",
			"strategies", "strategies/etcd", "strategies/postgres", "strategies/zookeeper"},
		"strategies/etcd":      {"strategies"},
		"strategies/postgres":  {"strategies"},
		"strategies/zookeeper": {"strategies"},
		// A queue transports data without interpreting it. The command line gets its engine from
		// its caller.
		"internal/queue": {},
		// The contents of an item: names, seeds, bounded numbers, script text.
		"internal/queue/item":       {"internal/explore", "internal/queue", "scenarios"},
		"internal/queue/nats":       {"internal/queue", "internal/below"},
		"internal/queue/natsserver": {"internal/queue", "internal/queue/nats", "internal/below", "internal/flock"},
		// The terminal shows what reports contain; reports do not depend on the terminal.
		"internal/cli/tui": {"reports"},
		// The import of a user's tests: see Light.
		"locktest": {"internal/explore", "internal/harness", "reports", "scenarios", "scenarios/racefree", "strategies", "checker",
			"internal/below", "internal/vtime", "internal/input", "internal/suggest", "internal/atomicdir", "internal/cellresult", "internal/shell", "internal/stdio", "internal/tempdir", "internal/version"},
		// A search runs scripts and does not depend on strategies or worlds.
		"internal/explore": {"internal/harness", "scenarios", "faults", "checker", "internal/flock", "internal/input"},
		// A sweep evaluates points and does not depend on what is evaluated.
		"internal/sweep": {},
		// A soak generates scripts and counts histories; it runs nothing.
		"internal/soak": {"faults", "checker"},
		// The harness gets real servers from its caller: see Light.
		"internal/worlds": {"internal/harness", "scenarios", "strategies", "faults", "faults/real", "faults/real/proxy", "faults/process",
			"faults/clock", "faults/docker", "faults/external", "faults/real/reuse", "checker", "internal/proc", "internal/stdio", "internal/tempdir"},
		"internal/harness": {"scenarios", "strategies", "faults", "faults/sim", "checker", "internal/vtime", "internal/proc", "internal/rediscli"},
		// Foreign histories are converted only for the checker.
		"checker/history": {"checker", "internal/jsonscan", "internal/suggest"},
		// Reports are made from results and histories, never from a world.
		"reports": {"checker", "reports/diagram", "reports/svg", "reports/mermaid", "reports/page", "reports/perfetto", "internal/below", "internal/flock", "internal/input", "internal/jsonscan", "internal/printable", "internal/atomicdir", "internal/shell"},
		// Drawings are made from diagrams, which do not depend on histories.
		"reports/diagram":  {},
		"reports/svg":      {"reports/diagram"},
		"reports/mermaid":  {"reports/diagram"},
		"reports/perfetto": {"reports/diagram"},
		"reports/page":     {"reports/svg"},
		// A script consists of faults; it refers to anomalies by name.
		"scenarios":          {"faults", "faults/topology", "checker", "internal/suggest", "internal/printable"},
		"scenarios/racefree": {"scenarios"},
		// A strategy depends on Redis and not on the harness.
		"strategies":                       {},
		"strategies/internal/strategytest": {"strategies", "internal/rediscli"},
		"strategies/internal/servicetest":  {"strategies", "faults/real"},
		"strategies/thirdparty":            {"strategies"},
		"strategies/all":                   {"strategies", "strategies/thirdparty"},
		"faults":                           {"checker"},
		// topology decides the meaning of a fault; worlds carry it out.
		"faults/topology":  {"faults", "checker"},
		"faults/worldtest": {"faults", "faults/topology", "checker"},
		"faults/sim":       {"faults", "faults/topology", "checker", "internal/resp", "faults/sim/lua"},
		"faults/sim/lua":   {"internal/resp"},
		// Every world of real servers is faults/real with its own host.
		"faults/real":       {"faults", "faults/topology", "checker", "faults/real/proxy", "internal/proc", "internal/rediscli", "internal/resp"},
		"faults/real/proxy": {"internal/resp"},
		// Support for their tests.
		"faults/real/realtest":        {"faults", "faults/real", "checker"},
		"faults/real/proxy/proxytest": {"faults/real/proxy"},
		"faults/process":              {"faults/real", "faults/real/daemon", "internal/proc", "internal/ports", "internal/rediscli"},
		// Servers of other kinds.
		"faults/etcd":      {"faults", "faults/real", "faults/real/proxy", "faults/real/daemon", "internal/proc", "internal/ports", "internal/tempdir"},
		"faults/postgres":  {"faults", "faults/real", "faults/real/proxy", "faults/real/daemon", "internal/proc", "internal/ports", "internal/tempdir"},
		"faults/zookeeper": {"faults", "faults/real", "faults/real/proxy", "faults/real/daemon", "internal/proc", "internal/ports"},
		// Common code of servers that are processes.
		"faults/real/daemon": {"faults/clock", "faults/real", "internal/proc", "internal/ports", "internal/tempdir"},
		// Clocks of other processes. The package runs a compiler for its library and waits for its
		// end.
		"faults/clock": {"internal/proc", "internal/tempdir"},
		// Servers in containers have the same configuration and clocks.
		"faults/docker":   {"faults/clock", "faults/real", "faults/process", "internal/flock", "internal/rediscli", "internal/tempdir", "internal/reaper"},
		"faults/external": {"faults", "faults/real", "internal/rediscli"},
		// reuse lends the servers of any host to one world after the other.
		"faults/real/reuse":   {"faults/real", "internal/rediscli"},
		"checker":             {"internal/jsonscan"},
		"internal/vtime":      {},
		"internal/proc":       {"internal/reaper"},
		"internal/reaper":     {},
		"internal/growthtest": {}, // for tests
		// Input from outside has a maximum size.
		"internal/input":      {},
		"internal/racetest":   {}, // for tests
		"internal/jsonscan":   {},
		"internal/suggest":    {},
		"internal/workerpool": {"internal/proc"},
		"internal/ports":      {},
		"internal/printable":  {},
		"internal/rediscli":   {},
		"internal/schematest": {"checker"},
		"internal/cellresult": {"internal/harness", "reports", "scenarios"},
		"internal/below":      {"internal/input"},
		"internal/atomicdir":  {"internal/below", "internal/flock"},
		"internal/resp":       {},
		"internal/oracle":     {"checker"},
		"internal/importrule": {},
		"internal/shell":      {},
		"internal/stdio":      {},
		"internal/tempdir":    {"internal/below", "internal/flock", "internal/reaper"},
		"internal/flock":      {},
		"internal/version":    {},
		// Programs for the development of this module.
		"internal/tools": {"checker", "faults/docker", "internal/ports", "internal/proc", "internal/tempdir", "reports", "scenarios", "scenarios/racefree", "strategies", "strategies/all", "strategies/thirdparty"},
	}
}

// Light returns the groups that a program needs to run in virtual time. The only world that they
// reach, even indirectly, is faults/sim: other worlds link containers and toxiproxy, which users
// who test their own locks should not need.
func Light() []string {
	return []string{"locktest", "internal/explore", "internal/harness", "scenarios", "strategies", "faults", "faults/sim", "reports", "checker", "internal/vtime", "internal/flock", "internal/input"}
}

// LightModules returns the external modules that may be linked with the groups of Light.
func LightModules() []string {
	return []string{
		"github.com/redis/go-redis/v9", "github.com/cespare/xxhash/v2", "go.uber.org/atomic", // clients
		"github.com/alicebob/miniredis/v2", "github.com/yuin/gopher-lua", // servers
		"golang.org/x/sys",
	}
}

// StandardOnly returns the groups that import only the standard library and groups that do the
// same.
func StandardOnly() []string {
	return []string{
		"checker", "faults", "scenarios",
		"internal/below", "internal/vtime", "internal/input", "internal/jsonscan", "internal/suggest", "internal/printable", "internal/oracle", "internal/importrule", "internal/stdio", "internal/tempdir", "internal/reaper",
	}
}
