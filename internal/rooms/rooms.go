// Package rooms says which packages of this module may import which. It holds
// nothing but the rule and, in its test, the rule's enforcement.
package rooms

// Module is the path of this module.
const Module = "github.com/lockfault/lockfault"

// Allowed returns the rule: for each room, a directory below the module, the
// other rooms that it may import. A room includes its sub-directories, unless
// they are rooms of their own. Data flows one way, from cmd down to checker,
// which imports the standard library only.
func Allowed() map[string][]string {
	return map[string][]string{
		"cmd": {"cli", "faults/docker", "strategies", "strategies/all", "strategies/thirdparty"},
		"cli": {"harness", "faults/docker", "reports", "scenarios", "strategies", "faults", "histories", "checker",
			"internal/bubble", "internal/nearest", "internal/pool"},
		"harness": {"scenarios", "strategies", "faults", "faults/sim", "faults/real", "faults/real/proxy", "faults/process", "faults/docker", "faults/external", "checker", "internal/bubble", "internal/child"},
		// Foreign histories are read for the checker alone.
		"histories": {"checker", "internal/nearest"},
		// A report is drawn from results and histories, never from a world.
		"reports": {"checker"},
		// A script is made of faults; it knows anomalies by name.
		"scenarios": {"faults", "checker", "internal/nearest"},
		// A strategy knows Redis and nothing of the stage that it plays on.
		"strategies":            {},
		"strategies/thirdparty": {"strategies"},
		"strategies/all":        {"strategies", "strategies/thirdparty"},
		"faults":                {"checker"},
		"faults/sim":            {"faults", "checker", "internal/resp"},
		// Every world of real servers is faults/real with a host of its own.
		"faults/real":       {"faults", "checker", "faults/real/proxy", "internal/child", "internal/resp"},
		"faults/real/proxy": {"internal/resp"},
		"faults/process":    {"faults/real", "internal/child"},
		// Servers in containers have the same configuration and clocks.
		"faults/docker":    {"faults/real", "faults/process"},
		"faults/external":  {"faults", "faults/real"},
		"checker":          {},
		"internal/bubble":  {},
		"internal/child":   {},
		"internal/nearest": {},
		"internal/pool":    {},
		"internal/resp":    {},
		"internal/rooms":   {},
	}
}

// StandardOnly returns the rooms that import nothing but the standard library
// and rooms that do the same.
func StandardOnly() []string {
	return []string{
		"checker", "reports", "faults", "scenarios",
		"internal/bubble", "internal/nearest", "internal/pool", "internal/rooms",
	}
}
