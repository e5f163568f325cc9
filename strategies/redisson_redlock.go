package strategies

// redissonRedLock returns Redisson's RedLock: its MultiLock over five nodes. Two nodes may fail,
// and each node gets a fifth of the waiting time (RedissonRedLock of commit 0482efe1, 2024,
// deprecated by then).
//
// According to document 003, RedLock asks all nodes at once, and the lock counts as acquired only
// if that took less than the lease. The library's code does neither: it asks one node after the
// other, and compares the elapsed time only with the waiting time. This strategy follows the code.
//
// Known faults: a majority counts even if the first grants have expired before the last arrives;
// the watchdogs renew only the grants that have arrived. A node that loses its data, or whose clock
// jumps, can grant a second majority. The known faults of redisson apply, too.
func redissonRedLock() Strategy {
	return redissonOnFive("redisson-redlock",
		"redisson on a majority of five nodes, with no check of the time that it took",
		"document 003; Redisson's RedissonRedLock",
		[]string{TagMulti, TagQuorum, TagRedisson, TagRenewing}, func(nodes int) int { return (nodes - 1) / 2 })
}
