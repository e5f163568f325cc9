package rediscmd

import "time"

// Engine holds the columns that no server reports.
type Engine struct {
	// Values says which words the command writes into keys or looks for there: they may be owner
	// values.
	Values Values
	// Timeout says how a request limits its waiting. The commands with a Timeout are those that may
	// block.
	Timeout Timeout
	// SetsUp says that the command only sets up or closes a connection. Client libraries decide when
	// to send it, and a script's line without commands does not select it. The group connection has
	// more commands, such as PING, which a lock may send on purpose.
	SetsUp bool
	// ReplyPerChannel says that the server replies once for each channel of a request.
	ReplyPerChannel bool
	// Observed says that the command counts as one that may change keys, although servers do not
	// flag it as a write.
	Observed bool
	// Internal says that servers or the server's own tests send the command, and clients do not.
	Internal bool
}

// Values says which words of a request are values. The zero value says that none are.
type Values struct {
	// From is the index of the first value, To of the last, and Step the distance between two. If To
	// is 0, the values reach to the end; if Step is 0, each word is a value.
	From, Step, To int
	// After is a word behind which From is counted; a request without After has no values.
	After string
	// Options are words that may stand before the first value and move it.
	Options []string
	// Short says that in a key of the lock even a short word is an owner value.
	Short bool
}

// Timeout says which word of a request limits the waiting. The zero value says that the command
// never waits.
type Timeout struct {
	// At is the index of the word, negative for the last word. If After is set, the word follows
	// After, and a request without After does not block.
	At    int
	After string
	Unit  time.Duration
}

// engine returns the columns that no server reports, by the command's name.
func engine() map[string]Engine {
	var (
		second     = Values{From: 2, To: 2}
		secondOn   = Values{From: 2}
		third      = Values{From: 3, To: 3}
		short      = Values{From: 2, To: 2, Short: true}
		everyOther = Values{From: 2, Step: 2}

		lastSeconds = Timeout{At: -1, Unit: time.Second}
		subscribes  = Engine{ReplyPerChannel: true}
	)
	return map[string]Engine{
		"SET": {Values: short}, "SETNX": {Values: short}, "GETSET": {Values: short},
		"APPEND": {Values: second}, "SETEX": {Values: third}, "PSETEX": {Values: third},
		"MSET": {Values: everyOther}, "MSETNX": {Values: everyOther},
		"HGET": {Values: second}, "HEXISTS": {Values: second}, "HINCRBY": {Values: second}, "HSET": {Values: secondOn},
		"HSETEX": {Values: Values{From: 2, After: "FIELDS"}}, "DELEX": {Values: Values{From: 1, After: "IFEQ"}},
		"HMSET": {Values: secondOn}, "HSETNX": {Values: secondOn}, "HDEL": {Values: secondOn}, "HMGET": {Values: secondOn},
		"SADD": {Values: secondOn}, "SREM": {Values: secondOn}, "SISMEMBER": {Values: second}, "SMISMEMBER": {Values: secondOn},
		"SMOVE": {Values: third},
		"LPUSH": {Values: secondOn}, "RPUSH": {Values: secondOn}, "LPUSHX": {Values: secondOn}, "RPUSHX": {Values: secondOn},
		"LPOS": {Values: second}, "LREM": {Values: third}, "LSET": {Values: third}, "LINSERT": {Values: Values{From: 3, To: 4}},
		"ZADD": {Values: Values{From: 3, Step: 2, Options: []string{"NX", "XX", "GT", "LT", "CH", "INCR"}}},
		"ZREM": {Values: secondOn}, "ZSCORE": {Values: second}, "ZRANK": {Values: second}, "ZINCRBY": {Values: third},
		"PUBLISH": {Values: second},

		"BLPOP": {Timeout: lastSeconds}, "BRPOP": {Timeout: lastSeconds}, "BRPOPLPUSH": {Timeout: lastSeconds}, "BLMOVE": {Timeout: lastSeconds},
		"BZPOPMIN": {Timeout: lastSeconds}, "BZPOPMAX": {Timeout: lastSeconds},
		"BLMPOP": {Timeout: Timeout{At: 1, Unit: time.Second}}, "BZMPOP": {Timeout: Timeout{At: 1, Unit: time.Second}},
		"XREAD":      {Timeout: Timeout{After: "BLOCK", Unit: time.Millisecond}},
		"XREADGROUP": {Timeout: Timeout{After: "BLOCK", Unit: time.Millisecond}},
		// Redis flags WAIT as blocking since 7.2.
		"WAIT": {Timeout: Timeout{At: 2, Unit: time.Millisecond}}, "WAITAOF": {Timeout: Timeout{At: 3, Unit: time.Millisecond}},

		"AUTH": {SetsUp: true}, "HELLO": {SetsUp: true}, "CLIENT": {SetsUp: true}, "SELECT": {SetsUp: true},
		"READONLY": {SetsUp: true, Observed: true},

		"SUBSCRIBE": subscribes, "PSUBSCRIBE": subscribes, "SSUBSCRIBE": subscribes,
		"UNSUBSCRIBE": subscribes, "PUNSUBSCRIBE": subscribes, "SUNSUBSCRIBE": subscribes,

		// Commands that run other commands.
		"EVAL": {Observed: true}, "EVALSHA": {Observed: true}, "FCALL": {Observed: true}, "EXEC": {Observed: true},
		// Commands with subcommands or arguments that change keys or replace the data set.
		"CLUSTER": {Observed: true}, "CONFIG": {Observed: true}, "DEBUG": {Observed: true}, "FAILOVER": {Observed: true}, "MODULE": {Observed: true},
		"REPLICAOF": {Observed: true}, "SLAVEOF": {Observed: true}, "SENTINEL": {Observed: true}, "SHUTDOWN": {Observed: true},
		"PSYNC": {Observed: true, Internal: true}, "SYNC": {Observed: true, Internal: true},
		"REPLCONF": {Observed: true, Internal: true}, "PFSELFTEST": {Observed: true, Internal: true},
		// Commands that change no key. The worlds read the lock's keys after them nevertheless, and
		// before writing selects a request of them that names a key of the lock.
		"ACL": {Observed: true}, "ASKING": {Observed: true}, "BGREWRITEAOF": {Observed: true}, "BGSAVE": {Observed: true}, "LASTSAVE": {Observed: true},
		"LATENCY": {Observed: true}, "MONITOR": {Observed: true}, "QUIT": {Observed: true}, "READWRITE": {Observed: true}, "RESET": {Observed: true},
		"COMMANDLOG": {Observed: true}, "SAVE": {Observed: true}, "SCRIPT": {Observed: true}, "SLOWLOG": {Observed: true},

		"PFDEBUG": {Internal: true}, "RESTORE-ASKING": {Internal: true},
	}
}
