package main

// records returns the known defects in the order of the page.
func records() []record {
	redsync := library{"redsync", "github.com/go-redsync/redsync/v4"}
	redislock := library{"redislock", "github.com/bsm/redislock"}
	rueidislock := library{"rueidislock", "github.com/redis/rueidis"}
	goZero := library{"go-zero", "github.com/zeromicro/go-zero"}
	goRedis := library{"go-redis", "github.com/redis/go-redis/v9"}
	return []record{
		{
			name: "hung-node-extend", library: redsync,
			defect:  "Extend and Unlock wait for every node without a limit of their own, so that with one that hangs the lease may be over before an Extend returns.",
			sources: []source{on("go-redsync/redsync", "issues", "140")},
			shows:   "redsync-5",
			cures: []cure{
				{"`WithFailFast(true)`, which has a price: see `fail-fast-orphans`", "redsync-5-fail-fast"},
				{"a client whose read timeout is a twentieth of the lease", "redsync-5-redigo-timeout"},
			},
			note: "The issue is closed: `WithFailFast` is the answer to it. The read timeout is go-redis's default, 5 s, and the lease 2 s; a longer lease, or a context with a deadline, leaves room.",
		},
		{
			name: "hung-node-extend", library: redsync,
			defect:  "The same over rueidis.",
			sources: []source{on("go-redsync/redsync", "issues", "140")},
			shows:   "redsync-5-rueidis",
			cures:   []cure{{"`WithFailFast(true)`, here over go-redis", "redsync-5-fail-fast"}},
		},
		{
			name: "hung-node-acquire", library: redsync,
			defect:  "The limit of a twentieth of the lease for each node is a context's deadline, which go-redis doesn't heed by default while it waits for an answer: with one node that hangs nobody acquires.",
			sources: []source{on("go-redsync/redsync", "pull", "80"), on("redis/go-redis", "pull", "2243")},
			shows:   "redsync-5-goredis-default",
			cures: []cure{
				{"go-redis's `ContextTimeoutEnabled: true`", "redsync-5-goredis-context"},
				{"rueidis, which heeds it", "redsync-5-rueidis"},
			},
			note: "redsync #80 brought the limit, go-redis #2243 the option. Here too the lease is shorter than the read timeout, 2 s and 5 s. With redsync's default of 8 s an acquire takes 5 s, and not quite 3 s of it are left.",
		},
		{
			name: "hung-node-acquire", library: redsync,
			defect:  "The same over redigo: its pool's `Do` is given no context.",
			sources: []source{on("gomodule/redigo", "issues", "536"), {"redis/redigo/redigo.go", "https://github.com/go-redsync/redsync/blob/v4.18.1/redis/redigo/redigo.go"}},
			shows:   "redsync-5-redigo",
			cures:   []cure{{"redigo's `DialReadTimeout`, a twentieth of the lease", "redsync-5-redigo-timeout"}},
		},
		{
			name: "hung-node-for-ever", library: redsync,
			defect:  "Over redigo without a read timeout, its default, an acquire with one node that hangs doesn't return at all.",
			sources: []source{on("gomodule/redigo", "issues", "536")},
			shows:   "redsync-5-redigo-default",
			cures:   []cure{{"redigo's `DialReadTimeout`, a twentieth of the lease", "redsync-5-redigo-timeout"}},
			note:    "#536 is about redigo's own Do; redigo has had DoContext since, which redsync's pool doesn't call. No report at redsync was found.",
		},
		{
			name: "fail-fast-orphans", library: redsync, lease: "10s",
			defect:  "With `WithFailFast` a lock can be released before its last SETs have arrived, and their keys stay for a lease without an owner.",
			sources: []source{on("go-redsync/redsync", "pull", "133"), {"mutex.go, actOnPoolsAsync", "https://github.com/go-redsync/redsync/blob/v4.18.1/mutex.go"}},
			shows:   "redsync-5-fail-fast",
			cures:   []cure{{"no `WithFailFast`, which is the default", "redsync-5"}},
			note:    "#133 brought the option; no report of it was found. It takes such a key on two nodes, and a third node down, to keep others out.",
		},
		{
			name: "constant-value", library: redsync,
			defect:  "With a value that is always the same an attempt that fails removes the holder's lock, when it cleans up.",
			sources: []source{on("go-redsync/redsync", "issues", "126")},
			shows:   "redsync-constant-value",
			cures:   []cure{{"no `WithGenValueFunc`: values at random, the default", "redsync"}},
			note:    "A misuse, which the library lets pass. The issue is closed as a question.",
		},
		{
			name: "extend-re-creates", library: redsync,
			defect:  "With `WithSetNXOnExtend` an Extend takes a lock that was lost, and that others had in between, and says that it was extended.",
			sources: []source{on("go-redsync/redsync", "pull", "149")},
			shows:   "redsync-setnx-on-extend",
			cures:   []cure{{"no `WithSetNXOnExtend`, which is the default", "redsync"}},
			note:    "It is what the option is for, after a restart that lost the keys. `Until` tells in time that the lease is over.",
		},
		{
			name: "unlock-reply-lost", library: redsync,
			defect:  "When the answer to an Unlock is lost and the client library asks again, Unlock says that the lock had expired already.",
			sources: []source{on("go-redsync/redsync", "pull", "143")},
			shows:   "redsync",
			cures:   []cure{{"go-redis's `MaxRetries: -1`: an error that leaves it open", "redsync-no-retries"}},
			note:    "No harm is done to the lock. #143 brought the error.",
			result:  &shownResult{"A", "release"},
		},
		{
			name: "caller-gives-up", library: redsync,
			defect:  "When the caller's context ends an acquire, so does the clean-up's, and the key stays for a lease.",
			sources: []source{{"redsync.md", "redsync.md"}},
			shows:   "redsync",
			note:    "Found here; no option cures it, but a context that isn't cancelled does.",
		},
		{
			name: "token-prefix", library: redislock,
			defect:  "A lock is given to whoever has a token that is the beginning of its holder's: worker-1 takes it from worker-10.",
			sources: []source{on("bsm/redislock", "pull", "71"), {"redislock.go, luaObtain", "https://github.com/bsm/redislock/blob/v0.9.4/redislock.go"}},
			shows:   "redislock-custom-token",
			cures:   []cure{{"tokens of one length; but see `release-once-for-two`", "redislock-fixed-length-token"}, {"no token of one's own: at random, the default", "redislock"}},
			note:    "#71 brought tokens of one's own; no report of it was found.",
		},
		{
			name: "release-once-for-two", library: redislock,
			defect:  "With a token of one's own a lock that is obtained twice is let in twice, and free after one release.",
			sources: []source{on("bsm/redislock", "pull", "51"), on("bsm/redislock", "pull", "71")},
			shows:   "redislock-fixed-length-token",
			cures:   []cure{{"no token of one's own: the second Obtain is refused", "redislock"}},
			note:    "To obtain again is what #71 brought such tokens for. A reviewer of #51, which wanted the same before, pointed out that both calls would be granted.",
		},
		{
			name: "server-clock-ahead", library: rueidislock,
			defect:  "A lease is a date by the client's clock. Where the server's is ahead of it by a lease, keys are gone as they are written, and everybody acquires.",
			sources: []source{on("redis/rueidis", "issues", "174")},
			shows:   "rueidislock",
			cures:   []cure{{"`FallbackSETPX: true`, until the first renewal: see the next", "rueidislock-set-px"}},
			note:    "The option came with #174, for servers before 6.2. Clocks that differ by less than a lease do less.",
		},
		{
			name: "server-clock-ahead-renewed", library: rueidislock,
			defect:  "With `FallbackSETPX` the renewals are still dates by the client's clock, and delete the keys.",
			sources: []source{{"rueidislock/lock.go, script", "https://github.com/redis/rueidis/blob/v1.0.79/rueidislock/lock.go"}},
			shows:   "rueidislock-set-px",
			note:    "No option cures it. redislock's lease, a time to live, is not affected.",
		},
		{
			name: "renewal-unanswered", library: rueidislock,
			defect:  "The context that stands for a hold outlives its lease by half a lease, when a renewal gets no answer.",
			sources: []source{{"rueidislock/lock.go, monitoring", "https://github.com/redis/rueidis/blob/v1.0.79/rueidislock/lock.go"}},
			shows:   "rueidislock",
			cures:   []cure{{"`ExtendInterval`, a twentieth of the lease: by a twentieth then", "rueidislock-extend-often"}},
			note:    "No report of it was found. The lease, 5 s, and rueidis's `ConnWriteTimeout`, 10 s, are the defaults; with a shorter timeout the lock hears of the loss sooner.",
		},
		{
			name: "release-once-for-two", library: goZero,
			defect:  "A RedisLock that is acquired twice is let in twice, and free after one release.",
			sources: []source{on("zeromicro/go-zero", "pull", "4319"), on("zeromicro/go-zero", "pull", "4325")},
			shows:   "gozero",
			cures:   []cure{{"an object for each acquire, whose second is refused", "gozero-object-each"}},
			note:    "It is said there that to acquire again is to renew, as with a lease of etcd. So each caller needs an object of its own.",
		},
		{
			name: "setnx-asked-again", library: goRedis,
			defect:  "SetNX says false of a key that it has set itself, when the answer is lost and it is asked again.",
			sources: []source{on("redis/go-redis", "issues", "2985")},
			shows:   "goredis-setnx",
			cures:   []cure{{"`MaxRetries: -1`: an error that leaves it open", "goredis-setnx-no-retries"}, {"a script that knows its own value, such as redislock's", "redislock"}},
			note:    "Not a lock, but what many are made of. The issue is closed, and labelled stale.",
		},
	}
}
