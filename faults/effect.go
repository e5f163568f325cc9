package faults

import (
	"slices"
	"strings"
)

// An Effect is what a request does with the lock, however it is spelt.
type Effect string

// The effects. Whether a request is one that writes or reads shows in its words;
// whether it takes or frees, only when a server has executed it, so only its reply
// can be told by that.
const (
	// Writing is a request that names a key of the lock and may change it.
	Writing Effect = "writing"
	// Reading is a request that names a key of the lock and leaves it as it is.
	Reading Effect = "reading"
	// Taking is a request by which the lock became its client's or, where
	// nobody can tell whose it is, its key came to be.
	Taking Effect = "taking"
	// Freeing is a request by which the lock ceased to be its client's or, where
	// nobody can tell whose it is, its key went away.
	Freeing Effect = "freeing"
)

// Effects returns the effects by which messages of that way can be told.
func Effects(way Way) []Effect {
	switch way {
	case Before:
		return []Effect{Writing, Reading}
	case After:
		return []Effect{Taking, Freeing, Writing, Reading}
	}
	return nil
}

// has reports whether the message is about a request of that effect.
func (m Message) has(e Effect) bool {
	switch e {
	case Taking, Freeing:
		return m.Did == e
	}
	if m.Service {
		return false
	}
	names := len(m.Words) > 1 && slices.ContainsFunc(m.Words[1:], func(word string) bool { return slices.Contains(m.Keys, word) })
	return names && !isOfChannels(m.Command) && LeavesKeys(m.Command) == (e == Reading)
}

// did returns what a client's command did with the lock: Taking, Freeing, or
// neither. client is empty where the change was the server's own doing.
func did(was, now entry, client string) Effect {
	had, has := slices.ContainsFunc(was.keys, Key.Exists), slices.ContainsFunc(now.keys, Key.Exists)
	switch {
	case client == "":
	case now.known && now.owner == client && was.owner != client, !now.known && has && !had:
		return Taking
	case was.owner == client && now.known && now.owner != client, !was.known && had && !has:
		return Freeing
	}
	return ""
}

// LeavesKeys reports whether a command, in upper case, is known to leave every key
// as it is.
func LeavesKeys(command string) bool {
	switch command {
	case "GET", "MGET", "STRLEN", "GETRANGE", "SUBSTR", "LCS", "GETBIT", "BITCOUNT", "BITPOS", "BITFIELD_RO", "PFCOUNT",
		"EXISTS", "TYPE", "TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME", "DUMP", "OBJECT", "TOUCH", "KEYS", "SCAN", "RANDOMKEY", "SORT_RO", "DBSIZE",
		"HGET", "HMGET", "HGETALL", "HEXISTS", "HKEYS", "HVALS", "HLEN", "HSTRLEN", "HSCAN", "HRANDFIELD", "HTTL", "HPTTL", "HEXPIRETIME", "HPEXPIRETIME",
		"LLEN", "LRANGE", "LINDEX", "LPOS",
		"SMEMBERS", "SISMEMBER", "SMISMEMBER", "SCARD", "SRANDMEMBER", "SINTER", "SINTERCARD", "SUNION", "SDIFF", "SSCAN",
		"ZSCORE", "ZMSCORE", "ZCARD", "ZCOUNT", "ZLEXCOUNT", "ZRANGE", "ZRANGEBYSCORE", "ZRANGEBYLEX", "ZREVRANGE", "ZREVRANGEBYSCORE",
		"ZREVRANGEBYLEX", "ZRANK", "ZREVRANK", "ZINTER", "ZINTERCARD", "ZUNION", "ZDIFF", "ZRANDMEMBER", "ZSCAN",
		"XLEN", "XRANGE", "XREVRANGE", "XREAD", "XPENDING", "XINFO",
		"GEODIST", "GEOHASH", "GEOPOS", "GEOSEARCH", "GEORADIUS_RO", "GEORADIUSBYMEMBER_RO",
		"EVAL_RO", "EVALSHA_RO", "FCALL_RO", "MULTI", "WATCH", "UNWATCH", "DISCARD",
		"PING", "ECHO", "HELLO", "AUTH", "CLIENT", "SELECT", "INFO", "ROLE", "TIME", "COMMAND", "MEMORY", "LOLWUT", "WAIT", "WAITAOF":
		return true
	}
	return isOfChannels(command)
}

// isOfChannels reports whether a command's words are names of channels, not of
// keys.
func isOfChannels(command string) bool {
	return strings.HasSuffix(command, "SUBSCRIBE") || strings.HasSuffix(command, "PUBLISH") || command == "PUBSUB"
}
