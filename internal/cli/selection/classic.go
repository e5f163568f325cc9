package selection

import "slices"

// classic is the word that selects [classicStrategies] or [classicScenarios].
const classic = "@classic"

// classicStrategies and classicScenarios are the fixed selection for benchmarks and comparisons of
// versions. New strategies and scenarios are not added, so that numbers stay comparable.
var (
	classicStrategies = []string{
		"setnx-expire", "setnx-expire-repair", "getset-timestamp", "set-nx-px-del",
		"set-nx-px-get-del", "set-nx-px-lua", "set-nx-px-lua-thread-id", "redisson",
		"redisson-multilock", "redisson-redlock", "redlock", "set-wait", "fenced", "redsync",
		"redsync-5", "redislock", "rueidislock",
	}
	classicScenarios = []string{
		"contention", "ten-contenders", "getset-race", "getset-late-restore", "client-clock-skew",
		"delayed-acquire-reply", "acquire-cancelled", "gc-pause-holding", "fencing-order",
		"crash-mid-acquire", "holder-crash", "work-exceeds-ttl", "late-release", "release-twice",
		"pause-in-release", "extend-after-lease", "extend-when-taken", "server-clock-forward",
		"server-clock-back", "failover-lost-write", "two-failovers", "failover-replicated",
		"split-brain", "reentrant-acquire", "acquire-twice-release-once", "node-down", "slow-quorum",
		"lost-partial-acquire", "restart-empty", "quorum-restart-empty", "quorum-clock-jump",
		"quorum-clock-skew", "owner-collision", "ghost-retry", "release-reply-lost",
		"partition-after-release", "flush", "renewal-lost", "renewal-late", "renewal-refused",
		"watchdog-runaway", "missed-wakeup", "partition-minority", "partition-majority",
	}
)

// withClassic returns the words with each "@classic" replaced by names.
func withClassic(words, names []string) []string {
	var all []string
	for _, word := range words {
		if word == classic {
			all = append(all, names...)
		} else {
			all = append(all, word)
		}
	}
	return slices.Clip(all)
}
