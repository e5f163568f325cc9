package sim

import (
	"slices"
	"strconv"
	"strings"
)

// keysRead returns the keys that a read-only command reads, which are the keys that Redis tracks;
// nil for other commands. command is its name in upper case. Source:
// https://redis.io/docs/latest/commands/command/
func keysRead(command string, words []string) []string {
	from := func(i int) []string { return words[min(i, len(words)):] }
	switch command {
	case "GET", "STRLEN", "GETRANGE", "SUBSTR", "GETBIT", "BITCOUNT", "BITPOS", "BITFIELD_RO",
		"TYPE", "TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME", "DUMP", "SORT_RO",
		"HGET", "HMGET", "HGETALL", "HEXISTS", "HKEYS", "HVALS", "HLEN", "HSTRLEN", "HSCAN", "HRANDFIELD",
		"HTTL", "HPTTL", "HEXPIRETIME", "HPEXPIRETIME",
		"LLEN", "LRANGE", "LINDEX", "LPOS",
		"SMEMBERS", "SISMEMBER", "SMISMEMBER", "SCARD", "SRANDMEMBER", "SSCAN",
		"ZSCORE", "ZMSCORE", "ZCARD", "ZCOUNT", "ZLEXCOUNT", "ZRANGE", "ZRANGEBYSCORE", "ZRANGEBYLEX",
		"ZREVRANGE", "ZREVRANGEBYSCORE", "ZREVRANGEBYLEX", "ZRANK", "ZREVRANK", "ZRANDMEMBER", "ZSCAN",
		"XLEN", "XRANGE", "XREVRANGE", "XPENDING",
		"GEODIST", "GEOHASH", "GEOPOS", "GEOSEARCH", "GEORADIUS_RO", "GEORADIUSBYMEMBER_RO":
		return from(1)[:min(1, len(from(1)))]
	case "MGET", "EXISTS", "TOUCH", "PFCOUNT", "SINTER", "SUNION", "SDIFF":
		return from(1)
	case "LCS":
		return from(1)[:min(2, len(from(1)))]
	case "OBJECT", "XINFO", "MEMORY":
		return from(2)[:min(1, len(from(2)))]
	case "SINTERCARD", "ZINTER", "ZINTERCARD", "ZUNION", "ZDIFF":
		if len(words) < 3 {
			return nil
		}
		count, err := strconv.Atoi(words[1])
		if err != nil || count < 0 {
			return nil
		}
		return from(2)[:min(count, len(from(2)))]
	case "XREAD":
		streams := 1 + slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, "STREAMS") })
		if streams == 0 {
			return nil
		}
		return from(streams)[:len(from(streams))/2]
	}
	return nil
}
