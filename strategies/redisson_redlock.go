package strategies

// redissonRedLock is Redisson's RedLock: its MultiLock over five nodes, of
// which two may fail, each given a fifth of the waiting time (RedissonRedLock
// of commit 0482efe1, 2024, by then deprecated).
//
// Document 003 says that it asks all nodes at once, and that the lock counts as
// acquired only if that took less than the lease. The library's code does
// neither: it asks one node after the other, and compares the time with the
// waiting time alone. This strategy does as the code does.
//
// Known faults: a majority counts even if the first grants are over by the time
// the last arrives; the watchdogs keep alive only those that had arrived. A
// node that forgets its data, or whose clock jumps, can grant a second
// majority. And those of redisson.
func redissonRedLock() Strategy {
	return redissonOnFive("redisson-redlock",
		"redisson on a majority of five nodes, with no check of the time that it took",
		"document 003; Redisson's RedissonRedLock",
		[]string{TagMulti, TagQuorum, TagRedisson, TagRenewing}, func(nodes int) int { return (nodes - 1) / 2 })
}
