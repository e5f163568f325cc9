package scenarios

import (
	"embed"
	"fmt"
	"strings"

	"github.com/lockfault/lockfault/internal/suggest"
)

//go:embed library/*.txt services/*.txt
var library embed.FS

// Names returns the names of the library's scripts in the order of the reports. The order is first
// a run without faults, then by the kind of the anomaly, then locks on several nodes.
func Names() []string {
	return strings.Fields(`
		contention ten-contenders patient-waiter
		getset-race getset-late-restore client-clock-skew client-clock-behind
		delayed-acquire-reply late-answers acquire-cancelled reply-after-giving-up acquire-reply-lost refusal-lost waiter-gives-up
		gc-pause-holding fencing-order
		crash-mid-acquire second-command-late holder-crash
		work-exceeds-ttl late-release release-twice pause-in-release
		extend-in-time extend-after-lease extend-when-taken
		server-clock-forward server-clock-back token-clock-back
		failover-lost-write two-failovers failover-replicated split-brain
		reentrant-acquire acquire-twice-release-once nested-then-idle
		node-down slow-quorum lost-partial-acquire islands
		restart-empty quorum-restart-empty quorum-clock-jump quorum-clock-skew
		owner-collision
		ghost-retry release-reply-lost release-request-lost partition-after-release flush
		renewal-lost renewal-late renewal-refused renewal-after-release minority-renewal other-minority watchdog-runaway missed-wakeup
		partition-minority partition-majority used-after-partition
		scripts-flushed restart-then-use promotion-then-use`)
}

// OfServices returns the names of the scripts about locks of other services than Redis, whose
// servers form clusters.
func OfServices() []string {
	return strings.Fields(`holder-cut-off leader-paused leader-clock-fast follower-behind leader-cut-off minority-cut-off all-cut-off`)
}

// All returns the names of all scripts of the program: [Names] followed by [OfServices].
func All() []string { return append(Names(), OfServices()...) }

// Library returns the library's scripts, in the order of [Names]. The caller owns the scripts.
func Library() ([]*Script, error) {
	var scripts []*Script
	for _, name := range Names() {
		script, err := Lookup(name)
		if err != nil {
			return nil, err
		}
		scripts = append(scripts, script)
	}
	return scripts, nil
}

// Lookup returns the script with the given name, which must be in [All].
func Lookup(name string) (*Script, error) {
	src := Source(name)
	if src == nil {
		if meant, ok := suggest.Of(name, All()); ok {
			return nil, fmt.Errorf("no scenario is called %q: did you mean %q?", name, meant)
		}
		return nil, fmt.Errorf("no scenario is called %q", name)
	}
	script, err := Parse(name+".txt", src)
	if err != nil {
		return nil, err
	}
	script.library = true
	return script, nil
}

// Source returns the text of the script with the given name, or nil if the name is not in [All].
func Source(name string) []byte {
	for _, dir := range []string{"library/", "services/"} {
		if src, err := library.ReadFile(dir + name + ".txt"); err == nil {
			return src
		}
	}
	return nil
}
