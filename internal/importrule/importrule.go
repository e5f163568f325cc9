// Package importrule defines which packages of this module may import which, and which files of a
// package may refer to which. The package contains only the rules and, in its tests, their checks.
package importrule

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the path of this module.
const Module = "github.com/lockfault/lockfault"

// A Floor is a set of packages. A package imports only packages of lower floors, and those of its own
// floor that Within lists.
type Floor struct {
	Name    string
	Content string // one line for the documentation
	// Packages are directories below the module, "." for the module itself. "DIR/..." stands for the
	// directory and all directories below it.
	Packages []string
	// Within holds the imports between packages of this floor: from an importer to what it imports.
	Within map[string][]string
}

// Floors returns the ladder from bottom to top. Every package of the module is on exactly one floor.
func Floors() []Floor {
	return []Floor{
		{
			Name: "leaves", Content: "import nothing of this module",
			Packages: []string{
				"checker/linear", "strategies", "reports/diagram", "internal/queue", "internal/sweep",
				"internal/flock", "internal/input", "internal/jsonscan", "internal/ports", "internal/printable", "internal/reaper",
				"internal/rediscli", "internal/rediscmd", "internal/resp", "internal/shell", "internal/stdio", "internal/suggest", "internal/version", "internal/vtime",
				"internal/growthtest", "internal/importrule", "internal/racetest", "internal/schematest", // for tests
			},
		},
		{
			Name: "base", Content: "files, processes, wire formats, drawings, transports of a queue, and the checker",
			Packages: []string{
				"checker", "strategies/thirdparty", "strategies/etcd", "strategies/postgres", "strategies/zookeeper", "strategies/internal/strategytest",
				"reports/svg", "reports/mermaid", "reports/perfetto", "reports/page", "faults/clock", "faults/sim/lua", "faults/real/proxy",
				"internal/below", "internal/atomicdir", "internal/proc", "internal/tempdir", "internal/workerpool", "internal/handover", "internal/queue/nats", "internal/queue/natsserver",
			},
			Within: map[string][]string{
				"faults/clock":              {"internal/proc", "internal/tempdir"},
				"internal/atomicdir":        {"internal/below"},
				"internal/handover":         {"internal/below", "internal/proc", "internal/tempdir"},
				"internal/queue/nats":       {"internal/below"},
				"internal/queue/natsserver": {"internal/below", "internal/queue/nats"},
				"internal/tempdir":          {"internal/below"},
				"internal/workerpool":       {"internal/proc"},
				"reports/page":              {"reports/svg"},
			},
		},
		{
			Name: "model", Content: "what a script, a fault, a history and a report are; servers of no particular kind",
			Packages: []string{
				"checker/history", "faults", "faults/topology", "faults/real", "faults/real/daemon", "faults/real/proxy/proxytest",
				"scenarios", "reports", "internal/harness/client", "internal/leases", "internal/oracle",
			},
			Within: map[string][]string{
				"faults/real":        {"faults", "faults/topology"},
				"faults/real/daemon": {"faults/real"},
				"faults/topology":    {"faults"},
				"internal/leases":    {"faults", "scenarios"},
				"reports":            {"faults", "internal/leases", "scenarios"},
				"scenarios":          {"faults", "faults/topology"},
			},
		},
		{
			Name: "worlds", Content: "the simulation, and each kind of server; generators of scripts",
			Packages: []string{
				"faults/sim", "faults/process", "faults/docker", "faults/external", "faults/etcd", "faults/postgres", "faults/zookeeper",
				"faults/real/reuse", "faults/real/realtest", "faults/worldtest", "scenarios/racefree", "strategies/all", "strategies/internal/servicetest",
				"internal/harness/lockproc", "internal/soak", "internal/cli/tui",
			},
			Within: map[string][]string{"faults/docker": {"faults/process"}},
		},
		{
			Name: "engines", Content: "run cells, search schedules, measure costs; open worlds",
			Packages: []string{
				"internal/harness", "internal/explore", "internal/battery", "internal/worlds", "internal/containers", "internal/bench", "internal/services", "internal/cellresult",
				"internal/queue/item", "faults/docker/dockertest", "faults/process/processtest",
			},
			Within: map[string][]string{
				"internal/battery":    {"internal/explore"},
				"internal/bench":      {"internal/harness", "internal/worlds"},
				"internal/cellresult": {"internal/harness"},
				"internal/containers": {"internal/worlds"},
				"internal/explore":    {"internal/harness"},
				"internal/queue/item": {"internal/explore"},
				"internal/services":   {"internal/worlds"},
				"internal/worlds":     {"internal/harness"},
			},
		},
		{
			Name: "interfaces", Content: "package locktest, and what the commands share",
			Packages: []string{"locktest", "internal/cli/kit", "internal/cli/selection", "internal/cli/cells", "internal/cli/search"},
			Within: map[string][]string{
				"internal/cli/cells":     {"internal/cli/kit", "internal/cli/selection"},
				"internal/cli/search":    {"internal/cli/cells", "internal/cli/kit", "internal/cli/selection"},
				"internal/cli/selection": {"internal/cli/kit"},
			},
		},
		{
			Name: "commands", Content: "one package for each large command; none imports another",
			Packages: []string{"internal/cli/checkcmd", "internal/cli/explorecmd", "internal/cli/mapcmd", "internal/cli/runcmd", "internal/cli/soakcmd", "internal/cli/workercmd"},
		},
		{
			Name: "programs", Content: "the command line with its small commands, package lockfault, main packages, tests of many packages",
			Packages: []string{".", "cmd/lockfault", "cmd/lockfault-full", "cmd/lockfault/withdocker", "cmd/lockfault/withqueue", "cmd/lockfault/withservices", "internal/cli", "internal/tools/...", "faults/conformance", "internal/harness/registrytest"},
			Within: map[string][]string{
				".":                          {"internal/cli"},
				"cmd/lockfault":              {"internal/cli"},
				"cmd/lockfault-full":         {".", "cmd/lockfault/withdocker", "cmd/lockfault/withqueue", "cmd/lockfault/withservices"},
				"cmd/lockfault/withdocker":   {".", "internal/cli"},
				"cmd/lockfault/withqueue":    {".", "internal/cli"},
				"cmd/lockfault/withservices": {".", "internal/cli"},
			},
		},
	}
}

// Table returns the ladder as a table in Markdown, the top floor first.
func Table() string {
	var b strings.Builder
	b.WriteString("| floor | content | packages |\n|---|---|---|\n")
	for _, f := range slices.Backward(Floors()) {
		fmt.Fprintf(&b, "| %s | %s | `%s` |\n", f.Name, f.Content, strings.Join(f.Packages, "`, `"))
	}
	return b.String()
}

// Light returns the packages that a program needs to run in virtual time. The only world that they
// reach, even indirectly, is faults/sim: other worlds link containers and toxiproxy, which users
// who test their own locks should not need.
func Light() []string {
	return []string{"locktest", "internal/explore", "internal/harness", "scenarios", "strategies", "faults", "faults/sim", "reports", "checker", "internal/vtime", "internal/flock", "internal/input"}
}

// Heavy returns the packages of real servers, and those that know some.
func Heavy() []string {
	return []string{
		"faults/clock", "faults/docker", "faults/etcd", "faults/external", "faults/postgres", "faults/process", "faults/real", "faults/real/daemon",
		"faults/real/proxy", "faults/real/reuse", "faults/zookeeper", "internal/services", "internal/worlds", "internal/cli", "internal/cli/kit",
	}
}

// LightModules returns the external modules that may be linked with the packages of Light.
func LightModules() []string {
	return []string{
		"github.com/redis/go-redis/v9", "github.com/cespare/xxhash/v2", "go.uber.org/atomic", // clients
		"github.com/alicebob/miniredis/v2", "github.com/yuin/gopher-lua", // servers
		"golang.org/x/sys",
	}
}

// ProgramModules returns the external packages that the command lockfault may link: each is a module
// or a directory with its packages. Compiling them is what a user waits for before the first output.
// Other parts of the command line are linked by the command lockfault-full.
func ProgramModules() []string {
	return append(LightModules(),
		"github.com/spf13/cobra", "github.com/spf13/pflag", // the command line
		"github.com/redis/rueidis", "github.com/go-redsync/redsync/v4", "github.com/bsm/redislock", // strategies
		"github.com/HdrHistogram/hdrhistogram-go", "gonum.org/v1/gonum/mathext", // soaks
		"github.com/klauspost/compress", // checkpoints of searches
		"github.com/shirou/gopsutil/v4", // owners of connections
		"github.com/shirou/gopsutil/v4", // owners of connections
		// The world process: toxiproxy, with its HTTP server and metrics.
		"github.com/Shopify/toxiproxy/v2", "github.com/gorilla/mux", "gopkg.in/tomb.v1",
		"github.com/rs/zerolog", "github.com/rs/xid", "github.com/mattn/go-colorable", "github.com/mattn/go-isatty",
		"github.com/prometheus", "github.com/beorn7/perks", "github.com/munnerz/goautoneg", "google.golang.org/protobuf",
		"golang.org/x/term",
	)
}

// StandardOnly returns the packages that import only the standard library and packages that do the
// same.
func StandardOnly() []string {
	return []string{
		"checker", "checker/linear", "faults", "scenarios", "internal/rediscmd",
		"internal/below", "internal/vtime", "internal/input", "internal/jsonscan", "internal/suggest", "internal/printable", "internal/oracle", "internal/importrule", "internal/stdio", "internal/tempdir", "internal/reaper",
	}
}

// Files returns, by package, floors of files from bottom to top. The declarations of a file are used
// only in files of its floor and of higher ones. Files of the floor Independent are not used by each other.
func Files() map[string]FileFloors {
	return map[string]FileFloors{
		"internal/cli": {
			Floors: [][]string{
				{"parts"},
				{"bench", "client", "compare", "fmt", "init", "list", "merge", "play", "queue", "report", "show", "shrink", "subjectcheck", "trace", "version", "watchman"},
				{"complete"},
				{"parts", "cli"},
			},
			Independent: 1,
		},
		"reports": {
			Floors: [][]string{
				{"text", "index"},
				{"results", "acquires", "read", "history", "commands", "benchmarks"},
				{"journal", "mark"},
				{"story", "rows", "repeats", "summary", "verdicttext", "filter", "diagram", "spans", "points", "faultspans"},
				{"matrix", "agreement", "aggregate", "avoidable", "standard", "diff", "diffformats", "stopwatch", "source", "stories"},
				{"html", "markdown", "json", "junit", "csv", "mermaid", "annotations", "table", "pictures", "costplot", "checkpage", "findings", "mapreport", "recheck"},
				{"formats"},
				{"report", "files", "rebuild"},
			},
			Independent: 5,
		},
	}
}

// FileFloors are floors of files, without the extension .go, and the number of one floor whose files
// do not refer to each other.
type FileFloors struct {
	Floors      [][]string
	Independent int
}
