package faults

// FaultDoc describes one fault, or one order to the gate, for users.
type FaultDoc struct {
	Name    string // unique: the fault's word, prefixed with its target if several faults share the word
	Syntax  string // an example: a whole line of a script
	Summary string // the effect, in one line
}

// Catalog returns one entry for each fault and each order to the gate, ordered by target: clients,
// links, nodes, gate. The caller owns the slice.
func Catalog() []FaultDoc {
	return []FaultDoc{
		{"client-pause", "A pause", "stop A's process, timers included, as a long garbage collection would"},
		{"client-resume", "A resume", "let A's paused process go on"},
		{"client-crash", "A crash", "end A's process; its connections close"},
		{"client-restart", "A restart", "start A's crashed process anew, without a memory"},
		{"client-cancel", "A cancel", "end the context of the operation that A is in, as when its caller gives up"},
		{"client-clock", "A clock +1.1ttl", "move A's wall clock, once, forward or back"},

		{"latency", "latency A n1 50ms jitter 10ms", "let each message between A and n1 take 40 to 60 ms one way; without names, on all links"},
		{"bandwidth", "bandwidth A n1 200B/ttl", "let each connection of A to n1 carry 200 bytes per TTL, one way; without names, on all links"},
		{"partition", "partition A from n1 n2", "lose everything between A and the nodes, in both directions; without nodes, from all"},
		{"timeout", "timeout A from n1 after 0.5ttl", "lose everything between A and n1, and close each connection after that time"},
		{"heal", "heal A from n1 n2", "mend what partition and timeout cut; without names, everything"},
		{"node-partition", "partition n1 from n2 n3", "cut n1 off from the other members of its cluster; without from, from all"},
		{"node-heal", "heal n1 from n2 n3", "mend what partition cut between n1 and the other members; without from, all"},

		{"node-crash", "n1 crash", "end n1's server process; new connections are refused"},
		{"node-restart", "n1 restart empty", "start n1's crashed server again, with its data or empty"},
		{"node-pause", "n1 pause", "stop n1's server process; messages wait at its door"},
		{"node-resume", "n1 resume", "let n1's paused server go on"},
		{"server", "n1/1 crash", "the same to one server, here n1's first replica; so too restart, pause, resume, clock and drift"},
		{"failover", "n1 failover", "crash n1's primary and promote its replica with what was replicated so far"},
		{"split", "n1 split C D", "promote n1's replica for C and D while all others stay with the old primary"},
		{"join", "n1 join", "end a split: the old primary follows the new one and forgets what only it had"},
		{"node-clock", "n1 clock -2ttl", "move n1's clock, once, forward or back"},
		{"drift", "n1 drift 1.5", "let n1's clock run 1.5 times as fast as true time from now on"},
		{"flush", "n1 flush", "FLUSHALL on n1 by an operator"},
		{"evict", "n1 evict", "remove the lock's key from n1, as maxmemory would"},
		{"script-flush", "n1 script-flush", "SCRIPT FLUSH on n1 by an operator"},
		{"replication", "n1 replication delay 200ms", "slow, stop, break or start the stream from n1's primary to its replicas"},

		{"hold", "hold A B before GETSET on n1 times 1", "stop matching messages on their way until pass"},
		{"delay", "delay A after SET by 1.1ttl times 1", "let matching messages arrive that much later"},
		{"drop", "drop A messages", "lose matching messages"},
		{"reset", "reset A before SET times 1", "lose a matching message and close its connection"},
		{"pass", "pass A once on n1", "deliver what hold stopped; once delivers only the oldest message, here of those between A and n1"},
		{"clear", "clear A", "end all delays, drops and resets for A; without names, for all"},
	}
}
