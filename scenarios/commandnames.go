package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/faults"
)

// isCommand reports whether text has the form of a command's name.
func isCommand(text string) bool {
	return madeOf(text, func(letter rune) bool {
		return isUpper(letter) || isDigit(letter) || letter == '_' || letter == '.'
	})
}

// knownCommand reports whether Redis, PostgreSQL, ZooKeeper or etcd has such a command. A misspelt
// command would match no message, and the scenario would pass for the wrong reason.
func knownCommand(name string) bool {
	return redisHas(name) || slices.Contains(allCommands(), name)
}

// redisHas reports whether Redis has the command. Names with a dot are commands of modules and are
// accepted without a check.
func redisHas(name string) bool {
	return strings.Contains(name, ".") || slices.Contains(commandNames(), name)
}

// synonymOf returns the name in the script language of an SQL command that has a synonym, or an
// empty string.
func synonymOf(command string) string {
	switch command {
	case "END":
		return "COMMIT"
	case "ABORT":
		return "ROLLBACK"
	case "START":
		return "BEGIN"
	}
	return ""
}

// OnRedis reports whether the script can run on Redis, and the reason if not. A script cannot run
// on Redis if a gate command names only commands of other services without permitting that no
// message matches, or if a line is about links between nodes.
func (s *Script) OnRedis() (ok bool, why string) {
	for _, step := range s.Steps {
		inject, _ := step.Do.(Inject)
		if faults.BetweenNodes(inject.Fault) {
			return false, NothingToCut(step.Line, "Redis")
		}
		order, isOrder := inject.Fault.(faults.Order)
		if !isOrder {
			continue
		}
		if m := order.About(); !m.OrNone && len(m.Commands) > 0 && !slices.ContainsFunc(m.Commands, redisHas) {
			return false, fmt.Sprintf("line %d is about %s, which Redis doesn't have", step.Line, strings.Join(m.Commands, ", "))
		}
	}
	return true, ""
}

// NothingToCut returns the reason why a fault of links between nodes does not apply to a service.
func NothingToCut(line int, service string) string {
	return fmt.Sprintf("line %d: nodes of %s don't talk to one another, so there is nothing to cut", line, service)
}

// commandNames returns the commands of Redis and Valkey that clients send, without those between
// servers and those of modules.
func commandNames() []string {
	return strings.Fields(`
		GET SET SETNX SETEX PSETEX GETSET GETEX GETDEL MGET MSET MSETNX MSETEX APPEND STRLEN
		GETRANGE SETRANGE SUBSTR INCR INCRBY INCRBYFLOAT DECR DECRBY LCS DELIFEQ DELEX DIGEST
		DEL UNLINK EXISTS TYPE RENAME RENAMENX COPY MOVE TOUCH KEYS SCAN RANDOMKEY DUMP RESTORE
		SORT SORT_RO OBJECT MIGRATE
		EXPIRE PEXPIRE EXPIREAT PEXPIREAT EXPIRETIME PEXPIRETIME TTL PTTL PERSIST
		HGET HSET HSETNX HMGET HMSET HGETALL HDEL HEXISTS HINCRBY HINCRBYFLOAT HKEYS HVALS HLEN
		HSTRLEN HSCAN HRANDFIELD HGETDEL HGETEX HSETEX HEXPIRE HPEXPIRE HEXPIREAT HPEXPIREAT
		HEXPIRETIME HPEXPIRETIME HTTL HPTTL HPERSIST
		LPUSH RPUSH LPUSHX RPUSHX LPOP RPOP LLEN LRANGE LINDEX LSET LREM LTRIM LINSERT LPOS
		LMOVE LMPOP RPOPLPUSH BLPOP BRPOP BLMOVE BLMPOP BRPOPLPUSH
		SADD SREM SMEMBERS SISMEMBER SMISMEMBER SCARD SPOP SRANDMEMBER SMOVE SINTER SINTERCARD
		SINTERSTORE SUNION SUNIONSTORE SDIFF SDIFFSTORE SSCAN
		ZADD ZREM ZSCORE ZMSCORE ZCARD ZCOUNT ZLEXCOUNT ZRANGE ZRANGEBYSCORE ZRANGEBYLEX
		ZREVRANGE ZREVRANGEBYSCORE ZREVRANGEBYLEX ZRANGESTORE ZRANK ZREVRANK ZINCRBY ZPOPMIN
		ZPOPMAX BZPOPMIN BZPOPMAX ZMPOP BZMPOP ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREMRANGEBYLEX
		ZINTER ZINTERCARD ZINTERSTORE ZUNION ZUNIONSTORE ZDIFF ZDIFFSTORE ZRANDMEMBER ZSCAN
		XADD XDEL XLEN XRANGE XREVRANGE XREAD XTRIM XGROUP XREADGROUP XACK XCLAIM XAUTOCLAIM
		XPENDING XINFO XSETID
		SETBIT GETBIT BITCOUNT BITPOS BITOP BITFIELD BITFIELD_RO PFADD PFCOUNT PFMERGE
		GEOADD GEODIST GEOHASH GEOPOS GEOSEARCH GEOSEARCHSTORE GEORADIUS GEORADIUSBYMEMBER
		EVAL EVALSHA EVAL_RO EVALSHA_RO SCRIPT FCALL FCALL_RO FUNCTION
		MULTI EXEC DISCARD WATCH UNWATCH
		SUBSCRIBE UNSUBSCRIBE PSUBSCRIBE PUNSUBSCRIBE SSUBSCRIBE SUNSUBSCRIBE PUBLISH SPUBLISH PUBSUB
		WAIT WAITAOF PING ECHO TIME INFO ROLE DBSIZE LASTSAVE SELECT SWAPDB HELLO AUTH CLIENT COMMAND
		QUIT RESET READONLY READWRITE ASKING CLUSTER SENTINEL CONFIG ACL LATENCY MEMORY SLOWLOG
		MONITOR DEBUG FAILOVER REPLICAOF SLAVEOF SAVE BGSAVE BGREWRITEAOF FLUSHALL FLUSHDB SHUTDOWN`)
}

// allCommands returns the commands that scripts may name, those of Redis first.
func allCommands() []string {
	return slices.Concat(commandNames(), faults.Statements(), faults.PostgresMessages(), faults.ZooKeeperRequests(), faults.EtcdRequests())
}
