// Package rooms says which packages of this module may import which. It holds
// nothing but the rule and, in its test, the rule's enforcement.
package importrule

// Module is the path of this module.
const Module = "github.com/lockfault/lockfault"

// Allowed returns the rule: for each room, a directory below the module, the
// other rooms that it may import. A room includes its sub-directories, unless
// they are rooms of their own. Data flows one way, from cmd down to checker,
// which imports the standard library and a reader of lines only.
func Allowed() map[string][]string {
	return map[string][]string{
		"cmd": {".", "internal/cli", "internal/queue/natsserver", "internal/services", "strategies/all"},
		// The public face of the command line.
		".": {"internal/cli", "strategies"},
		"internal/cli": {"internal/bench", "internal/cli/tui", "internal/explore", "internal/soak", "internal/sweep", "internal/harness", "internal/worlds", "reports", "scenarios", "strategies", "faults", "checker/history", "checker", "internal/queue", "internal/queue/item",
			"internal/below", "internal/vtime", "internal/input", "internal/jsonscan", "internal/suggest", "internal/workerpool", "internal/printable", "internal/atomicdir", "internal/cellresult", "internal/shell", "internal/stdio", "internal/tempdir", "internal/version"},
		// Locks of other services come to the command line from outside, too.
		// What the command bench measures.
		"internal/bench": {"checker", "faults", "faults/process", "faults/real", "faults/real/proxy", "internal/harness", "internal/worlds", "strategies"},
		"internal/services": {"internal/worlds", "faults/etcd", "faults/postgres", "faults/real", "faults/real/proxy", "faults/zookeeper",
			"strategies", "strategies/etcd", "strategies/postgres", "strategies/zookeeper"},
		"strategies/etcd":      {"strategies"},
		"strategies/postgres":  {"strategies"},
		"strategies/zookeeper": {"strategies"},
		// A queue carries what it does not read, and its engine comes to the command line
		// from outside.
		"internal/queue": {},
		// What an item may say: names, seeds, bounded numbers, script text.
		"internal/queue/item":       {"internal/explore", "internal/queue", "scenarios"},
		"internal/queue/nats":       {"internal/queue", "internal/below"},
		"internal/queue/natsserver": {"internal/queue", "internal/queue/nats", "internal/below", "internal/flock"},
		// What is shown in a terminal is what reports tell, which never know one.
		"internal/cli/tui": {"reports"},
		// What a user's tests import: see Light.
		"locktest": {"internal/explore", "internal/harness", "reports", "scenarios", "scenarios/racefree", "strategies", "checker",
			"internal/below", "internal/vtime", "internal/input", "internal/suggest", "internal/atomicdir", "internal/cellresult", "internal/shell", "internal/stdio", "internal/tempdir", "internal/version"},
		// A search plays scripts; it knows no strategy and no world.
		"internal/explore": {"internal/harness", "scenarios", "faults", "checker", "internal/flock", "internal/input"},
		// A map asks at points, and knows nothing of what is asked.
		"internal/sweep": {},
		// A soak writes scripts and counts histories; it plays nothing.
		"internal/soak": {"faults", "checker"},
		// Real servers come to the harness from outside: see Light.
		"internal/worlds": {"internal/harness", "scenarios", "strategies", "faults", "faults/real", "faults/real/proxy", "faults/process",
			"faults/clock", "faults/docker", "faults/external", "faults/real/reuse", "checker", "internal/proc", "internal/stdio", "internal/tempdir"},
		"internal/harness": {"scenarios", "strategies", "faults", "faults/sim", "checker", "internal/vtime", "internal/proc", "internal/rediscli"},
		// Foreign histories are read for the checker alone.
		"checker/history": {"checker", "internal/jsonscan", "internal/suggest"},
		// A report is drawn from results and histories, never from a world.
		"reports": {"checker", "reports/diagram", "reports/svg", "reports/mermaid", "reports/page", "reports/perfetto", "internal/below", "internal/flock", "internal/input", "internal/jsonscan", "internal/printable", "internal/atomicdir", "internal/shell"},
		// All that is drawn is drawn of pictures, which know no history.
		"reports/diagram":  {},
		"reports/svg":      {"reports/diagram"},
		"reports/mermaid":  {"reports/diagram"},
		"reports/perfetto": {"reports/diagram"},
		"reports/page":     {"reports/svg"},
		// A script is made of faults; it knows anomalies by name.
		"scenarios":          {"faults", "faults/topology", "checker", "internal/suggest", "internal/printable"},
		"scenarios/racefree": {"scenarios"},
		// A strategy knows Redis and nothing of the stage that it plays on.
		"strategies":                       {},
		"strategies/internal/strategytest": {"strategies", "internal/rediscli"},
		"strategies/internal/servicetest":  {"strategies", "faults/real"},
		"strategies/thirdparty":            {"strategies"},
		"strategies/all":                   {"strategies", "strategies/thirdparty"},
		"faults":                           {"checker"},
		// What a fault means is decided there; worlds carry it out.
		"faults/topology":  {"faults", "checker"},
		"faults/worldtest": {"faults", "faults/topology", "checker"},
		"faults/sim":       {"faults", "faults/topology", "checker", "internal/resp", "faults/sim/lua"},
		"faults/sim/lua":   {"internal/resp"},
		// Every world of real servers is faults/real with a host of its own.
		"faults/real":       {"faults", "faults/topology", "checker", "faults/real/proxy", "internal/proc", "internal/rediscli", "internal/resp"},
		"faults/real/proxy": {"internal/resp"},
		// What their tests stand on.
		"faults/real/realtest":        {"faults", "faults/real", "checker"},
		"faults/real/proxy/proxytest": {"faults/real/proxy"},
		"faults/process":              {"faults/real", "faults/real/daemon", "internal/proc", "internal/ports", "internal/rediscli"},
		// Servers of other kinds.
		"faults/etcd":      {"faults", "faults/real", "faults/real/proxy", "faults/real/daemon", "internal/proc", "internal/ports", "internal/tempdir"},
		"faults/postgres":  {"faults", "faults/real", "faults/real/proxy", "faults/real/daemon", "internal/proc", "internal/ports", "internal/tempdir"},
		"faults/zookeeper": {"faults", "faults/real", "faults/real/proxy", "faults/real/daemon", "internal/proc", "internal/ports"},
		// What servers that are processes have in common.
		"faults/real/daemon": {"faults/clock", "faults/real", "internal/proc", "internal/ports", "internal/tempdir"},
		// Clocks of other processes, whoever starts them. A compiler runs for the library, and leaves nothing.
		"faults/clock": {"internal/proc", "internal/tempdir"},
		// Servers in containers have the same configuration and clocks.
		"faults/docker":   {"faults/clock", "faults/real", "faults/process", "internal/flock", "internal/rediscli", "internal/tempdir", "internal/reaper"},
		"faults/external": {"faults", "faults/real", "internal/rediscli"},
		// It lends the servers of any host to one world after the other.
		"faults/real/reuse":   {"faults/real", "internal/rediscli"},
		"checker":             {"internal/jsonscan"},
		"internal/vtime":      {},
		"internal/proc":       {"internal/reaper"},
		"internal/reaper":     {},
		"internal/growthtest": {}, // for tests
		// What comes from outside has a largest size.
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
		// Programs for those who work on this module.
		"internal/tools": {"checker", "faults/docker", "internal/ports", "internal/proc", "internal/tempdir", "reports", "scenarios", "scenarios/racefree", "strategies", "strategies/all", "strategies/thirdparty"},
	}
}

// Light returns the rooms that a program needs to play in virtual time. The only
// world that they reach, however indirectly, is faults/sim: others link containers
// and toxiproxy, and who tests a lock of his own with a few of these rooms should
// not have to.
func Light() []string {
	return []string{"locktest", "internal/explore", "internal/harness", "scenarios", "strategies", "faults", "faults/sim", "reports", "checker", "internal/vtime", "internal/flock", "internal/input"}
}

// LightModules returns the modules of others that may be linked with the rooms
// of Light.
func LightModules() []string {
	return []string{
		"github.com/redis/go-redis/v9", "github.com/cespare/xxhash/v2", "go.uber.org/atomic", // clients
		"github.com/alicebob/miniredis/v2", "github.com/yuin/gopher-lua", // servers
		"golang.org/x/sys",
	}
}

// StandardOnly returns the rooms that import nothing but the standard library
// and rooms that do the same.
func StandardOnly() []string {
	return []string{
		"checker", "faults", "scenarios",
		"internal/below", "internal/vtime", "internal/input", "internal/jsonscan", "internal/suggest", "internal/printable", "internal/oracle", "internal/importrule", "internal/stdio", "internal/tempdir", "internal/reaper",
	}
}
