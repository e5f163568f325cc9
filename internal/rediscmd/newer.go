package rediscmd

// newer returns the rows of commands that the server of facts.go lacks: newer commands, commands of
// Valkey alone, and commands of sentinels. When facts.go is generated from a newer server, delete
// the rows that it then has.
//
// The first releases are from https://redis.io/docs/latest/commands/ and
// https://valkey.io/commands/, which have one page for each command. The flags and keys are from
// src/commands/ of https://github.com/redis/redis and https://github.com/valkey-io/valkey.
func newer() []Command {
	ro := []KeySpec{{Access: "RO", From: 1, Step: 1}}
	rw := []KeySpec{{Access: "RW", From: 1, Step: 1}}
	return []Command{
		{Name: "CLIENT CAPA", Group: "connection", Flags: NoScript | Loading | Stale, Valkey: "8.0.0"},
		{Name: "CLIENT NO-TOUCH", Group: "connection", Flags: NoScript | Loading | Stale, Redis: "7.2.0", Valkey: "7.2.0"},
		{Name: "CLIENT SETINFO", Group: "connection", Flags: NoScript | Loading | Stale, Redis: "7.2.0", Valkey: "7.2.0"},
		{Name: "CLUSTER MYSHARDID", Group: "cluster", Flags: Stale, Redis: "7.2.0", Valkey: "7.2.0"},
		{Name: "COMMANDLOG", Group: "server", Valkey: "8.1.0"},
		{Name: "COMMANDLOG GET", Group: "server", Flags: Admin | Loading | Stale, Valkey: "8.1.0"},
		{Name: "COMMANDLOG HELP", Group: "server", Flags: Loading | Stale, Valkey: "8.1.0"},
		{Name: "COMMANDLOG LEN", Group: "server", Flags: Admin | Loading | Stale, Valkey: "8.1.0"},
		{Name: "COMMANDLOG RESET", Group: "server", Flags: Admin | Loading | Stale, Valkey: "8.1.0"},
		{Name: "DELEX", Group: "string", Flags: Write, Keys: rw, Redis: "8.4.0"},
		{Name: "DELIFEQ", Group: "string", Flags: Write, Keys: []KeySpec{{Access: "RM", From: 1, Step: 1}}, Valkey: "9.0.0"},
		{Name: "DIGEST", Group: "string", Flags: ReadOnly, Keys: ro, Redis: "8.4.0"},
		// Valkey does not flag HEXPIRE, HEXPIREAT, HPEXPIRE and HPEXPIREAT as denyoom.
		{Name: "HEXPIRE", Group: "hash", Flags: Write | DenyOOM, Keys: rw, Redis: "7.4.0", Valkey: "9.0.0"},
		{Name: "HEXPIREAT", Group: "hash", Flags: Write | DenyOOM, Keys: rw, Redis: "7.4.0", Valkey: "9.0.0"},
		{Name: "HEXPIRETIME", Group: "hash", Flags: ReadOnly, Keys: ro, Redis: "7.4.0", Valkey: "9.0.0"},
		{Name: "HGETDEL", Group: "hash", Flags: Write, Keys: rw, Redis: "8.0.0", Valkey: "9.1.0"},
		{Name: "HGETEX", Group: "hash", Flags: Write, Keys: rw, Redis: "8.0.0", Valkey: "9.0.0"},
		{Name: "HPERSIST", Group: "hash", Flags: Write, Keys: rw, Redis: "7.4.0", Valkey: "9.0.0"},
		{Name: "HPEXPIRE", Group: "hash", Flags: Write | DenyOOM, Keys: rw, Redis: "7.4.0", Valkey: "9.0.0"},
		{Name: "HPEXPIREAT", Group: "hash", Flags: Write | DenyOOM, Keys: rw, Redis: "7.4.0", Valkey: "9.0.0"},
		{Name: "HPEXPIRETIME", Group: "hash", Flags: ReadOnly, Keys: ro, Redis: "7.4.0", Valkey: "9.0.0"},
		{Name: "HPTTL", Group: "hash", Flags: ReadOnly, Keys: ro, Redis: "7.4.0", Valkey: "9.0.0"},
		{Name: "HSETEX", Group: "hash", Flags: Write | DenyOOM, Keys: rw, Redis: "8.0.0", Valkey: "9.0.0"},
		{Name: "HTTL", Group: "hash", Flags: ReadOnly, Keys: ro, Redis: "7.4.0", Valkey: "9.0.0"},
		{Name: "MSETEX", Group: "string", Flags: Write | DenyOOM | MovableKeys, Keys: []KeySpec{{Access: "OW", From: 1, Step: 2, Counted: true}}, Redis: "8.4.0", Valkey: "9.1.0"},
		{Name: "SCRIPT SHOW", Group: "scripting", Flags: NoScript | Stale, Valkey: "8.0.0"},
		{Name: "SENTINEL", Group: "sentinel", Redis: "2.8.4", Valkey: "2.8.4"},
		{Name: "WAITAOF", Group: "generic", Flags: Blocking, Redis: "7.2.0", Valkey: "7.2.0"},
		{Name: "XACKDEL", Group: "stream", Flags: Write, Keys: rw, Redis: "8.2.0"},
		{Name: "XDELEX", Group: "stream", Flags: Write, Keys: rw, Redis: "8.2.0"},
	}
}

// newerOptions returns the options that the server of facts.go lacks, by command. The sources are
// those of newer.
func newerOptions() map[string][]Option {
	return map[string][]Option{
		"SET": {{"IFEQ", "8.4.0", "8.1.0"}, {"IFNE", "8.4.0", ""}, {"IFDEQ", "8.4.0", ""}, {"IFDNE", "8.4.0", ""}},
	}
}
