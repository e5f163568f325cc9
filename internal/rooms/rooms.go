// Package rooms says which packages of this module may import which. It holds
// nothing but the rule and, in its test, the rule's enforcement.
package rooms

// Module is the path of this module.
const Module = "github.com/lockfault/lockfault"

// Allowed returns the rule: for each room, a directory below the module, the
// other rooms that it may import. A room includes its sub-directories, unless
// they are rooms of their own. Data flows one way, from cmd down to checker,
// which imports the standard library and a reader of lines only.
func Allowed() map[string][]string {
	return map[string][]string{
		"cmd": {"checker", "cli", "faults/docker", "queue/natsd", "reports", "scenarios", "scenarios/settled", "services", "strategies", "strategies/all", "strategies/thirdparty",
			"internal/child", "internal/ports", "internal/tempdir"},
		"cli": {"cli/stage", "explore", "soak", "mapping", "harness", "worlds", "reports", "scenarios", "strategies", "faults", "histories", "checker", "queue", "queue/item",
			"internal/below", "internal/bubble", "internal/input", "internal/jsonscan", "internal/nearest", "internal/pool", "internal/printable", "internal/replace", "internal/results", "internal/shell", "internal/stdio", "internal/tempdir", "internal/version"},
		// Locks of other services come to the command line from outside, too.
		"services": {"worlds", "faults/etcd", "faults/postgres", "faults/real", "faults/real/proxy", "faults/zookeeper",
			"strategies", "strategies/etcd", "strategies/postgres", "strategies/zookeeper"},
		"strategies/etcd":      {"strategies"},
		"strategies/postgres":  {"strategies"},
		"strategies/zookeeper": {"strategies"},
		// A queue carries what it does not read, and its engine comes to the command line
		// from outside.
		"queue": {},
		// What an item may say: names, seeds, bounded numbers, script text.
		"queue/item":  {"explore", "queue", "scenarios"},
		"queue/nats":  {"queue", "internal/below"},
		"queue/natsd": {"queue", "queue/nats", "internal/below", "internal/flock"},
		// What is shown in a terminal is what reports tell, which never know one.
		"cli/stage": {"reports"},
		// What a user's tests import: see Light.
		"locktest": {"explore", "harness", "reports", "scenarios", "scenarios/settled", "strategies", "checker",
			"internal/below", "internal/bubble", "internal/input", "internal/nearest", "internal/replace", "internal/results", "internal/shell", "internal/stdio", "internal/tempdir", "internal/version"},
		// A search plays scripts; it knows no strategy and no world.
		"explore": {"harness", "scenarios", "faults", "checker", "internal/flock", "internal/input"},
		// A map asks at points, and knows nothing of what is asked.
		"mapping": {},
		// A soak writes scripts and counts histories; it plays nothing.
		"soak": {"faults", "checker"},
		// Real servers come to the harness from outside: see Light.
		"worlds": {"harness", "scenarios", "strategies", "faults", "faults/real", "faults/real/proxy", "faults/process",
			"faults/clock", "faults/docker", "faults/external", "faults/lending", "checker", "internal/child", "internal/stdio", "internal/tempdir"},
		"harness": {"scenarios", "strategies", "faults", "faults/sim", "checker", "internal/bubble", "internal/child", "internal/rediscli"},
		// Foreign histories are read for the checker alone.
		"histories": {"checker", "internal/jsonscan", "internal/nearest"},
		// A report is drawn from results and histories, never from a world.
		"reports": {"checker", "reports/picture", "reports/svg", "reports/mermaid", "reports/page", "reports/perfetto", "internal/below", "internal/flock", "internal/input", "internal/jsonscan", "internal/printable", "internal/replace", "internal/shell"},
		// All that is drawn is drawn of pictures, which know no history.
		"reports/picture":  {},
		"reports/svg":      {"reports/picture"},
		"reports/mermaid":  {"reports/picture"},
		"reports/perfetto": {"reports/picture"},
		"reports/page":     {"reports/svg"},
		// A script is made of faults; it knows anomalies by name.
		"scenarios":         {"faults", "faults/topology", "checker", "internal/nearest", "internal/printable"},
		"scenarios/settled": {"scenarios"},
		// A strategy knows Redis and nothing of the stage that it plays on.
		"strategies":                 {},
		"strategies/internal/rig":    {"strategies", "internal/rediscli"},
		"strategies/internal/served": {"strategies", "faults/real"},
		"strategies/thirdparty":      {"strategies"},
		"strategies/all":             {"strategies", "strategies/thirdparty"},
		"faults":                     {"checker"},
		// What a fault means is decided there; worlds carry it out.
		"faults/topology":   {"faults", "checker"},
		"faults/storytest":  {"faults", "faults/topology", "checker"},
		"faults/sim":        {"faults", "faults/topology", "checker", "internal/resp", "faults/sim/script"},
		"faults/sim/script": {"internal/resp"},
		// Every world of real servers is faults/real with a host of its own.
		"faults/real":       {"faults", "faults/topology", "checker", "faults/real/proxy", "internal/child", "internal/rediscli", "internal/resp"},
		"faults/real/proxy": {"internal/resp"},
		// What their tests stand on.
		"faults/real/realtest":        {"faults", "faults/real", "checker"},
		"faults/real/proxy/proxytest": {"faults/real/proxy"},
		"faults/process":              {"faults/real", "faults/daemon", "internal/child", "internal/ports", "internal/rediscli"},
		// Servers of other kinds.
		"faults/etcd":      {"faults", "faults/real", "faults/real/proxy", "faults/daemon", "internal/child", "internal/ports", "internal/tempdir"},
		"faults/postgres":  {"faults", "faults/real", "faults/real/proxy", "faults/daemon", "internal/child", "internal/ports", "internal/tempdir"},
		"faults/zookeeper": {"faults", "faults/real", "faults/real/proxy", "faults/daemon", "internal/child", "internal/ports"},
		// What servers that are processes have in common.
		"faults/daemon": {"faults/clock", "faults/real", "internal/child", "internal/ports", "internal/tempdir"},
		// Clocks of other processes, whoever starts them. A compiler runs for the library, and leaves nothing.
		"faults/clock": {"internal/child", "internal/tempdir"},
		// Servers in containers have the same configuration and clocks.
		"faults/docker":   {"faults/clock", "faults/real", "faults/process", "internal/flock", "internal/rediscli", "internal/tempdir", "internal/watchman"},
		"faults/external": {"faults", "faults/real", "internal/rediscli"},
		// It lends the servers of any host to one world after the other.
		"faults/lending":      {"faults/real", "internal/rediscli"},
		"checker":             {"internal/jsonscan"},
		"internal/bubble":     {},
		"internal/child":      {"internal/watchman"},
		"internal/watchman":   {},
		"internal/growthtest": {}, // for tests
		// What comes from outside has a largest size.
		"internal/input":      {},
		"internal/jsonscan":   {},
		"internal/nearest":    {},
		"internal/pool":       {"internal/child"},
		"internal/ports":      {},
		"internal/printable":  {},
		"internal/rediscli":   {},
		"internal/schematest": {"checker"},
		"internal/results":    {"harness", "reports", "scenarios"},
		"internal/below":      {"internal/input"},
		"internal/replace":    {"internal/below", "internal/flock"},
		"internal/resp":       {},
		"internal/recheck":    {"checker"},
		"internal/rooms":      {},
		"internal/shell":      {},
		"internal/stdio":      {},
		"internal/tempdir":    {"internal/below", "internal/flock", "internal/watchman"},
		"internal/flock":      {},
		"internal/version":    {},
		// Programs for those who work on this module.
		"internal/tools": {"reports", "scenarios/settled"},
	}
}

// Light returns the rooms that a program needs to play in virtual time. The only
// world that they reach, however indirectly, is faults/sim: others link containers
// and toxiproxy, and who tests a lock of his own with a few of these rooms should
// not have to.
func Light() []string {
	return []string{"locktest", "explore", "harness", "scenarios", "strategies", "faults", "faults/sim", "reports", "checker", "internal/bubble", "internal/flock", "internal/input"}
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
		"internal/below", "internal/bubble", "internal/input", "internal/jsonscan", "internal/nearest", "internal/printable", "internal/recheck", "internal/rooms", "internal/stdio", "internal/tempdir", "internal/watchman",
	}
}
