package worldtest

import (
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// Stories returns the stories that must have the same result in every world.
func Stories() []Story {
	return slices.Concat(ofTheGate(), ofStreams(), ofCommands(), ofLinks(), ofSlowLinks(), ofTimeouts(), ofReplication(), ofNodes(), ofServers())
}

const second = time.Second

// a returns a match of messages of client A.
func a(way faults.Way, commands ...string) faults.Match {
	return faults.Match{Clients: []string{"A"}, Way: way, Commands: commands}
}

// does returns an order that holds the messages of A about requests with the given effect.
func does(way faults.Way, effect faults.Effect) faults.Fault {
	return faults.Hold{Match: faults.Match{Clients: []string{"A"}, Way: way, Effect: effect}}
}

// names returns a list of clients.
func names(clients ...string) []string { return clients }

func span(d time.Duration) faults.Span { return faults.Span{Abs: d} }

var (
	// messages are the kinds of events about messages and the gate.
	messages = []checker.Kind{checker.Request, checker.Reply, checker.Push, checker.Held, checker.Passed, checker.Dropped}
	requests = []checker.Kind{checker.Request}
	states   = []checker.Kind{checker.State}
)

// ofTheGate returns stories in which A sends one request, SET lock A-value-1, under orders to the
// gate.
func ofTheGate() []Story {
	const set, ok = "SET lock A-value-1", "+OK"
	short := span(50 * time.Millisecond)
	return []Story{
		{Name: "nothing", Steps: []Step{Send("A", set), Hears("A", ok), Is("A", faults.ClientState{Replies: 1, RoundTrips: 1})}, Events: `
			A > n1/0 SET lock A1
			n1/0 A1 by command A
			A < n1 SET lock A1 = OK`},
		{Name: "a command that sets the connection up", Steps: []Step{
			Send("A", "SELECT 0"), Hears("A", ok), Is("A", faults.ClientState{RoundTrips: 1}),
			Send("A", set), Hears("A", ok), Is("A", faults.ClientState{Replies: 1, RoundTrips: 2}),
		}, Kinds: states, Events: `
			n1/0 A1 by command A`},
		{Name: "hold a request", Steps: []Step{
			Do(faults.Hold{Match: a(faults.Before, "SET")}), Send("A", set),
			Is("A", faults.ClientState{Held: 1, UnderWay: 1, RoundTrips: 1}), Silence("A"),
			Do(faults.Pass{Clients: names("A")}), Hears("A", ok),
			Is("A", faults.ClientState{Replies: 1, RoundTrips: 1}),
		}, Kinds: messages, Events: `
			held A request SET lock A1
			passed A request SET lock A1
			A > n1/0 SET lock A1
			A < n1 SET lock A1 = OK`},
		{Name: "hold a reply", Steps: []Step{
			Do(faults.Hold{Match: a(faults.After, "SET")}), Send("A", set),
			Is("A", faults.ClientState{Held: 1, UnderWay: 1, RoundTrips: 1}), Silence("A"),
			Do(faults.Pass{Clients: names("A")}), Hears("A", ok),
		}, Kinds: messages, Events: `
			A > n1/0 SET lock A1
			held A reply SET lock A1
			passed A reply SET lock A1
			A < n1 SET lock A1 = OK`},
		{Name: "pass somebody else", Steps: []Step{
			Do(faults.Hold{Match: a(faults.Before, "SET")}), Send("A", set), AwaitEvent("held A request SET lock A1"),
			Do(faults.Pass{Clients: names("B")}), Silence("A"),
		}, Kinds: messages, Events: `held A request SET lock A1`},
		{Name: "pass everybody", Steps: []Step{
			Do(faults.Hold{Match: a(faults.Before, "SET")}), Send("A", set), AwaitEvent("held A request SET lock A1"),
			Do(faults.Pass{}), Hears("A", ok),
		}, Events: `
			fault hold A before SET
			held A request SET lock A1
			fault pass
			passed A request SET lock A1
			A > n1/0 SET lock A1
			n1/0 A1 by command A
			A < n1 SET lock A1 = OK`},
		{Name: "delay a request", Steps: []Step{
			Do(faults.Delay{Match: a(faults.Before, "SET"), By: short}), Send("A", set), Hears("A", ok, short.Abs),
		}, Kinds: messages, Events: `
			A > n1/0 SET lock A1
			A < n1 SET lock A1 = OK`},
		{Name: "delay both ways", Steps: []Step{
			Do(faults.Delay{Match: a(faults.Before), By: short}, faults.Delay{Match: a(faults.After), By: short}),
			Send("A", set), Hears("A", ok, 2*short.Abs),
		}, Kinds: messages, Events: `
			A > n1/0 SET lock A1
			A < n1 SET lock A1 = OK`},
		{Name: "drop a request", Steps: []Step{
			Do(faults.Drop{Match: a(faults.Before, "SET")}), Send("A", set), Is("A", faults.ClientState{Lost: 1, RoundTrips: 1}), Silence("A"),
		}, Kinds: messages, Events: `dropped A request SET lock A1`},
		{Name: "drop a reply", Steps: []Step{
			Do(faults.Drop{Match: a(faults.After, "SET")}), Send("A", set), Is("A", faults.ClientState{Lost: 1, RoundTrips: 1}), Silence("A"),
		}, Kinds: messages, Events: `
			A > n1/0 SET lock A1
			dropped A reply SET lock A1`},
		{Name: "by what a command does", Steps: []Step{
			Do(does(faults.Before, faults.Reading), does(faults.After, faults.Freeing)),
			Send("A", "SET lock A-value-1"), Hears("A", ok), Send("A", "SET other A-value-1"), Hears("A", ok),
			Send("A", "GET lock"), AwaitEvent("held A request GET lock"), Do(faults.Pass{Clients: names("A"), Once: true}), Hears("A", "$9 A-value-1"),
			Send("A", "DEL other"), Hears("A", ":1"), Send("A", "DEL lock"), AwaitEvent("held A reply DEL lock"),
			Do(faults.Pass{Clients: names("A")}), Hears("A", ":1"),
			Do(does(faults.After, faults.Taking)), Send("A", "MULTI"), Hears("A", ok), Send("A", "HSET lock A-value-2 1"), Hears("A", "+QUEUED"),
			Send("A", "EXEC"), AwaitEvent("held A reply EXEC"), Do(faults.Pass{Clients: names("A")}), Hears("A", "*1 :1"),
		}, Kinds: []checker.Kind{checker.Held, checker.Passed}, Events: `
			held A request GET lock
			passed A request GET lock
			held A reply DEL lock
			passed A reply DEL lock
			held A reply EXEC
			passed A reply EXEC`},
		{Name: "reset at a request", Steps: []Step{
			Do(faults.Reset{Match: a(faults.Before, "SET")}), Send("A", set), Ends("A"), Is("A", faults.ClientState{Lost: 1, RoundTrips: 1}),
		}, Kinds: messages, Events: `dropped A request SET lock A1`},
		{Name: "reset at a reply", Steps: []Step{
			Do(faults.Reset{Match: a(faults.After, "SET")}), Send("A", set), Ends("A"),
		}, Kinds: messages, Events: `
			A > n1/0 SET lock A1
			dropped A reply SET lock A1`},
		{Name: "of another command", Steps: []Step{
			Do(faults.Drop{Match: a(faults.Before, "GET")}), Send("A", set), Hears("A", ok),
		}, Kinds: messages, Events: `
			A > n1/0 SET lock A1
			A < n1 SET lock A1 = OK`},
		{Name: "clear ends delays, not holds", Steps: []Step{
			Do(faults.Hold{Match: a(faults.Before, "GET")}, faults.Delay{Match: a(faults.Before, "SET"), By: span(time.Hour)}, faults.Clear{}),
			Send("A", set), Hears("A", ok), Send("A", "GET lock"), AwaitEvent("held A request GET lock"), Silence("A"),
		}, Kinds: messages, Events: `
			A > n1/0 SET lock A1
			A < n1 SET lock A1 = OK
			held A request GET lock`},
		{Name: "what orders met", Steps: []Step{
			Do(
				faults.Drop{Match: faults.Match{Clients: names("A", "B"), Way: faults.Before, Commands: []string{"GET"}}},
				faults.Hold{Match: a(faults.After), Times: 1}, faults.Reset{Match: faults.Match{Way: faults.Messages}},
				faults.Delay{Match: a(faults.Before, "SET"), By: short}, faults.Clear{Clients: names("A")},
			),
			Met(0, 0, 0, 0), Send("A", set), AwaitEvent("held A reply SET lock A1"), Met(0, 1, 0, 0),
			Send("B", "GET lock"), AwaitEvent("dropped B request GET lock"), Met(1, 1, 0, 0),
			Do(faults.Pass{}), Hears("A", ok), Send("A", set), Hears("A", ok), Met(1, 1, 0, 0),
			// An order does not count messages that a cut link lost.
			Do(faults.Drop{Match: faults.Match{Way: faults.Before}}, faults.Partition{Clients: names("A")}),
			Send("A", set), Is("A", faults.ClientState{Lost: 1, Replies: 2, RoundTrips: 3}), Met(1, 1, 0, 0, 0),
		}, Kinds: []checker.Kind{checker.Held, checker.Dropped}, Events: `
			held A reply SET lock A1
			dropped B request GET lock
			dropped A request SET lock A1`},
		{Name: "pass picks by node", Nodes: 3, Steps: []Step{
			Do(faults.Hold{Match: faults.Match{Way: faults.Before}}),
			Send("A", "SETNX lock value-number-1"), AwaitEvent("held A request SETNX lock A1"),
			Send("A@n2", "SETNX lock value-number-2"), AwaitEvent("held A request SETNX lock A2"),
			Send("A@n3", "SETNX lock value-number-3"), AwaitEvent("held A request SETNX lock A3"),
			Send("B@n3", "SETNX lock value-number-4"), AwaitEvent("held B request SETNX lock B1"),
			Do(faults.Pass{Clients: names("B"), Once: true, Nodes: names("n1")}), Silence("A", "A@n2", "A@n3", "B@n3"),
			// Pass the oldest held message on the named nodes; the quorum's node is n2.
			Do(faults.Pass{Clients: names("A", "B"), Once: true, Nodes: names("n3", faults.Quorum)}), Hears("A@n2", ":1"), Silence("A", "A@n3", "B@n3"),
			Do(faults.Pass{Clients: names("A"), Nodes: names("n3")}), Hears("A@n3", ":1"), Silence("A", "B@n3"),
			// A pass with a node ends holds only on that node, and only for A.
			Send("A@n3", "GET lock"), Hears("A@n3", "$14 value-number-3"),
			Send("A@n2", "GET lock"), AwaitEvent("held A request GET lock"),
			Do(faults.Pass{Clients: names("B")}), Hears("B@n3", ":0"), Silence("A", "A@n2"),
			Do(faults.Pass{}), Hears("A", ":1"), Hears("A@n2", "$14 value-number-2"),
		}, Kinds: []checker.Kind{checker.Passed, checker.Request}, Events: `
			passed A request SETNX lock A2
			A > n2/0 SETNX lock A2
			passed A request SETNX lock A3
			A > n3/0 SETNX lock A3
			A > n3/0 GET lock
			passed B request SETNX lock B1
			B > n3/0 SETNX lock B1
			passed A request SETNX lock A1
			A > n1/0 SETNX lock A1
			passed A request GET lock
			A > n2/0 GET lock`},
		{Name: "pass once takes the one held longest", Steps: []Step{
			Do(faults.Hold{Match: faults.Match{Way: faults.Before}}),
			Send("B", "SETNX lock value-number-1"), AwaitEvent("held B request SETNX lock B1"),
			Send("A", "SETNX lock value-number-2"), AwaitEvent("held A request SETNX lock A1"),
			Send("B", "SETNX lock value-number-3"),
			Is("A", faults.ClientState{Held: 1, UnderWay: 1, RoundTrips: 1}),
			Is("B", faults.ClientState{Held: 1, UnderWay: 1, RoundTrips: 1}),
			Do(faults.Pass{Clients: names("A", "B"), Once: true}), Hears("B", ":1"), Silence("A", "B"),
			Do(faults.Pass{Clients: names("A")}), Hears("A", ":0"),
			Do(faults.Pass{}), Hears("B", ":0"),
		}, Kinds: []checker.Kind{checker.Held, checker.Passed, checker.Request}, Events: `
			held B request SETNX lock B1
			held A request SETNX lock A1
			passed B request SETNX lock B1
			B > n1/0 SETNX lock B1
			held B request SETNX lock B2
			passed A request SETNX lock A1
			A > n1/0 SETNX lock A1
			passed B request SETNX lock B2
			B > n1/0 SETNX lock B2`},
	}
}

// ofStreams returns stories about the messages behind another message on its connection, which are
// lost or delayed together with it.
func ofStreams() []Story {
	var all []Story
	short := span(50 * time.Millisecond)
	for _, c := range []struct {
		name  string
		order faults.Fault
		held  string
	}{
		{"request", faults.Hold{Match: a(faults.Before, "SET")}, "held A request SET lock A1"},
		{"reply", faults.Hold{Match: a(faults.After, "SET")}, "held A reply SET lock A1"},
		{"request", faults.Delay{Match: a(faults.Before, "SET"), By: short}, ""},
		{"reply", faults.Delay{Match: a(faults.After, "SET"), By: short}, ""},
	} {
		story := Story{Name: "a pipeline waits behind a " + c.name + ": " + c.order.String(), Steps: []Step{
			Do(c.order), Send("A", "INCR n", "SET lock A-value-1", "GET lock", "INCR n"), Hears("A", ":1"),
		}, Kinds: requests, Events: `
			A > n1/0 INCR n
			A > n1/0 SET lock A1
			A > n1/0 GET lock
			A > n1/0 INCR n`}
		if c.held != "" {
			story.Steps = append(story.Steps, Silence("A"), Do(faults.Pass{}))
		}
		story.Steps = append(story.Steps, Hears("A", "+OK $9 A-value-1 :2"),
			Is("A", faults.ClientState{Replies: 4, RoundTrips: 1}))
		all = append(all, story)
	}
	return append(all,
		Story{Name: "drop loses the rest of a connection", Steps: []Step{
			Do(faults.Drop{Match: a(faults.Before, "SET"), Times: 1}),
			Send("A", "INCR n", "SET lock A-value-1", "INCR n"), Hears("A", ":1"), AwaitEvent("dropped A request INCR n"),
			Send("A", "DECR n"), Silence("A"),
			Send("A2", "SET lock A-value-2"), Hears("A2", "+OK"), // on another connection
		}, Kinds: []checker.Kind{checker.Request, checker.Dropped}, Events: `
			A > n1/0 INCR n
			dropped A request SET lock A1
			dropped A request INCR n
			dropped A request DECR n
			A > n1/0 SET lock A2`},
		Story{Name: "a held request outlives its connection", Steps: []Step{
			Do(faults.Hold{Match: a(faults.Before, "SET")}), Send("A", "SET lock A-value-1"), AwaitEvent("held A request SET lock A1"),
			Leaves("A"), Send("A2", "GET lock"), Hears("A2", "$-1"), Wait(50 * time.Millisecond),
			Is("A", faults.ClientState{Held: 1, UnderWay: 1, Replies: 1, RoundTrips: 2}),
			Do(faults.Pass{}), AwaitEvent("n1/0 A1 by command A"),
			Send("A2", "GET lock"), Hears("A2", "$9 A-value-1"),
		}, Kinds: states, Events: `n1/0 A1 by command A`},
		Story{Name: "a delayed request outlives its connection", Steps: []Step{
			Do(faults.Delay{Match: a(faults.Before), By: short}), Send("A", "SET lock A-value-1", "PEXPIRE lock 10000"),
			Is("A", faults.ClientState{UnderWay: 1, RoundTrips: 1}), Leaves("A"),
		}, Kinds: []checker.Kind{checker.Request, checker.State}, Events: `
			A > n1/0 SET lock A1
			n1/0 A1 by command A
			A > n1/0 PEXPIRE lock 10000
			n1/0 A1 for 10s by command A`},
	)
}

// ofCommands returns stories about the effects of commands and the clients that cause them.
func ofCommands() []Story {
	const script = "if_redis.call('GET',KEYS[1])==ARGV[1]_then_return_redis.call('DEL',KEYS[1])_else_return_0_end"
	return []Story{
		{Name: "a lock changes hands", Steps: []Step{
			Send("A", "SET lock A-value-1 NX PX 30000"), Hears("A", "+OK"),
			Send("B", "SET lock B-value-1 NX PX 30000"), Hears("B", "$-1"),
			Send("B", "GETSET lock B-value-2"), Hears("B", "$9 A-value-1"),
			Send("A", "PEXPIRE lock 10000"), Hears("A", ":1"),
			Send("A", "DEL lock"), Hears("A", ":1"),
			Send("A", "HINCRBY lock A-field-1 1"), Hears("A", ":1"),
		}, Kinds: states, Events: `
			n1/0 A1 for 30s by command A
			n1/0 B2 by command B
			n1/0 B2 for 10s by command A
			n1/0 gone by command A
			n1/0 A2×1 by command A`},
		{Name: "each request of a pipeline counts", Steps: []Step{
			Send("A", "SET lock A-value-1 PX 30000", "GET lock", "PEXPIRE lock 10000", "DEL lock"), Hears("A", "+OK $9 A-value-1 :1 :1"),
			Is("A", faults.ClientState{Replies: 4, RoundTrips: 1}),
		}, Kinds: states, Events: `
			n1/0 A1 for 30s by command A
			n1/0 A1 for 10s by command A
			n1/0 gone by command A`},
		{Name: "a script is its caller's doing", Steps: []Step{
			Send("A", "SET lock A-value-1"), Hears("A", "+OK"),
			Send("B", "EVAL "+script+" 1 lock B-value-1"), Hears("B", ":0"),
			Send("A", "EVAL "+script+" 1 lock A-value-1"), Hears("A", ":1"),
		}, Kinds: states, Events: `
			n1/0 A1 by command A
			n1/0 gone by command A`},
		{Name: "a transaction is one", Steps: []Step{
			Send("A", "MULTI", "SET lock A-value-1", "INCR n", "EXEC"), Hears("A", "+OK +QUEUED +QUEUED *2 +OK :1"),
			Is("A", faults.ClientState{Replies: 4, RoundTrips: 1}),
			Send("B", "GET lock"), Hears("B", "$9 A-value-1"),
		}, Kinds: []checker.Kind{checker.Request, checker.State}, Events: `
			A > n1/0 MULTI
			A > n1/0 SET lock A1
			A > n1/0 INCR n
			A > n1/0 EXEC
			n1/0 A1 by command A
			B > n1/0 GET lock`},
		{Name: "who waits for a list keeps nobody waiting", Steps: []Step{
			Send("A", "BLPOP queue 0"), AwaitEvent("A > n1/0 BLPOP queue 0"),
			Send("B", "SET lock B-value-1"), Hears("B", "+OK"), Silence("A"),
			Send("B", "RPUSH queue x"), Hears("B", ":1"), Hears("A", "*2 $5 queue $1 x"),
			Is("A", faults.ClientState{Replies: 1, RoundTrips: 1}),
		}, Kinds: requests, Events: `
			A > n1/0 BLPOP queue 0
			B > n1/0 SET lock B1
			B > n1/0 RPUSH queue x`},
		{Name: "what is pushed goes to who waits for it", Steps: []Step{
			Send("A", "BLPOP lock 0"), AwaitEvent("A > n1/0 BLPOP lock 0"), Send("B", "RPUSH lock B-value-1 B-value-2"), Hears("B", ":2"),
			Hears("A", "*2 $4 lock $9 B-value-1"), Send("A", "BLPOP lock 0"), Hears("A", "*2 $4 lock $9 B-value-2"),
			Send("A", "BRPOP lock 0"), AwaitEvent("A > n1/0 BRPOP lock 0"), Send("B", "LPUSH lock B-value-3"), Hears("B", ":1"),
			Hears("A", "*2 $4 lock $9 B-value-3"),
			Send("A", "BLMOVE lock other LEFT RIGHT 0"), AwaitEvent("A > n1/0 BLMOVE lock other LEFT RIGHT 0"), Send("B", "LPUSH lock B-value-4"),
			Hears("B", ":1"), Hears("A", "$9 B-value-4"),
			Send("A", "BZPOPMIN lock 0"), AwaitEvent("A > n1/0 BZPOPMIN lock 0"), Send("B", "ZADD lock 1 B-value-5"), Hears("B", ":1"),
			Hears("A", "*3 $4 lock $9 B-value-5 $1 1"),
		}, Kinds: states, Events: `
			n1/0 [B1 B2] by command B
			n1/0 [B2] by command A
			n1/0 gone by command A
			n1/0 [B3] by command B
			n1/0 gone by command A
			n1/0 [B4] by command B
			n1/0 gone by command A
			n1/0 {B5:1} by command B
			n1/0 gone by command A`},
		{Name: "who waits for replicas keeps nobody waiting", Replicas: 1, Steps: []Step{
			Do(faults.Replication{Node: "n1", Mode: faults.ReplicationStop}),
			Send("A", "SET lock A-value-1", "WAIT 1 0", "GET lock"), Hears("A", "+OK"), AwaitEvent("A < n1 SET lock A1 = OK"), Silence("A"),
			Send("B", "DEL lock"), Hears("B", ":1"),
			Do(faults.Replication{Node: "n1", Mode: faults.ReplicationStart}), Hears("A", ":1 $-1"),
		}, Kinds: requests, Events: `
			A > n1/0 SET lock A1
			A > n1/0 WAIT 1 0
			B > n1/0 DEL lock
			A > n1/0 GET lock`},
		{Name: "subscribers hear", Steps: []Step{
			Send("A", "SUBSCRIBE ch"), Hears("A", "*3 $9 subscribe $2 ch :1"),
			Send("B", "PUBLISH other x"), Hears("B", ":0"),
			Send("B", "PUBLISH ch free"), Hears("B", ":1"), Hears("A", "*3 $7 message $2 ch $4 free"),
			Is("A", faults.ClientState{Replies: 1, RoundTrips: 1}),
		}, Kinds: []checker.Kind{checker.Push}, Events: `A < n1 ["message" "ch" "free"]`},
		track("hears of a change once", `
			A < n1 ["invalidate" ["lock"]]`,
			Send("B", "SET lock B-value-1", "DEL lock"), Hears("B", "+OK :1")),
		track("hears of an eviction", `
			A < n1 ["invalidate" ["lock"]]
			A < n1 ["invalidate" ["lock"]]`,
			Send("B", "SET lock B-value-1"), AwaitEvent(`A < n1 ["invalidate" ["lock"]]`), Send("A", "GET lock"), AwaitEvent(`A < n1 GET lock = "B1"`), Do(faults.Evict{Node: "n1"})),
		track("hears of an expiry", `
			A < n1 ["invalidate" ["lock"]]
			A < n1 ["invalidate" ["lock"]]`,
			Send("B", "SET lock B-value-1 PX 100"), AwaitEvent(`A < n1 ["invalidate" ["lock"]]`), Send("A", "GET lock"), AwaitEvent(`A < n1 GET lock = "B1"`), Wait(300*time.Millisecond)),
		track("hears of a flush", `
			A < n1 ["invalidate" (nil)]`,
			Do(faults.Flush{Node: "n1"})),
		track("hears nothing that is dropped", `
			dropped A push`,
			Do(faults.Drop{Match: a(faults.Messages)}), Send("B", "SET lock B-value-1"), Hears("B", "+OK")),
		track("hears later what is held", `
			held A push
			passed A push
			A < n1 ["invalidate" ["lock"]]`,
			Do(faults.Hold{Match: a(faults.Messages)}), Send("B", "SET lock B-value-1"), Hears("B", "+OK"), AwaitEvent("held A push"), Do(faults.Pass{})),
		track("hears what was said while it was paused", `
			A < n1 ["invalidate" ["lock"]]`,
			Do(faults.PauseClient{Client: "A"}), Send("B", "SET lock B-value-1"), Hears("B", "+OK"), Wait(50*time.Millisecond), Do(faults.ResumeClient{Client: "A"})),
		track("is forgotten by a restart", ``,
			Do(faults.CrashNode{Node: "n1"}, faults.RestartNode{Node: "n1"}), Connects("B"), Send("B", "SET lock B-value-1"), Hears("B", "+OK")),
		push("drop", faults.Drop{Match: a(faults.Messages), Times: 1}, false, `
			dropped A push
			A < n1 ["message" "ch" "2"]`), // a server drops pushes individually
		push("hold", faults.Hold{Match: a(faults.Messages)}, true, `
			held A push
			passed A push
			A < n1 ["message" "ch" "1"]
			A < n1 ["message" "ch" "2"]`),
		push("delay", faults.Delay{Match: a(faults.Messages), By: span(50 * time.Millisecond)}, false, `
			A < n1 ["message" "ch" "1"]
			A < n1 ["message" "ch" "2"]`),
		push("reset", faults.Reset{Match: a(faults.Messages)}, false, `
			dropped A push`),
		push("replies are no messages", faults.Drop{Match: a(faults.After)}, false, `
			A < n1 ["message" "ch" "1"]
			A < n1 ["message" "ch" "2"]`),
	}
}

// track returns a story of a client that tracks the keys that it reads, and has read the lock.
func track(name, events string, steps ...Step) Story {
	return Story{
		Name: "who tracks a key " + name,
		Steps: append(append([]Step{Send("A", "HELLO 3", "CLIENT TRACKING ON", "GET lock"), AwaitEvent("A < n1 GET lock = (nil)")}, steps...),
			Wait(150*time.Millisecond)),
		Kinds: []checker.Kind{checker.Push, checker.Held, checker.Passed, checker.Dropped}, Events: events,
	}
}

// push returns a story of two messages to a subscriber.
func push(name string, order faults.Fault, pass bool, events string) Story {
	s := Story{Name: "messages: " + name, Steps: []Step{
		Send("A", "SUBSCRIBE ch"), Hears("A", "*3 $9 subscribe $2 ch :1"), Do(order),
		Send("B", "PUBLISH ch 1"), Hears("B", ":1"), Wait(50 * time.Millisecond), // otherwise the server could send both messages at once
		Send("B", "PUBLISH ch 2"), Wait(50 * time.Millisecond),
	}, Kinds: []checker.Kind{checker.Push, checker.Held, checker.Passed, checker.Dropped}, Events: events}
	if pass {
		s.Steps = append(s.Steps, AwaitEvent(`B < n1 PUBLISH ch 2 = (integer) 1`), Do(faults.Pass{}))
	}
	return s
}

func ofLinks() []Story {
	n1 := names("n1")
	return []Story{
		{Name: "a partition loses what is sent", Nodes: 2, Steps: []Step{
			Send("A", "PING"), Hears("A", "+PONG"),
			Do(faults.Partition{Clients: names("A"), Nodes: n1}),
			Send("A", "SET lock A-value-1"), AwaitEvent("dropped A request SET lock A1"),
			Send("A@n2", "SET lock A-value-2"), Hears("A@n2", "+OK"),
			Send("B", "GET lock"), Hears("B", "$-1"), Silence("A"),
			Do(faults.Heal{}), Ends("A"),
			Send("A2", "SET lock A-value-3"), Hears("A2", "+OK"), // A2 lost no message
		}, Kinds: []checker.Kind{checker.Fault, checker.Dropped, checker.State}, Events: `
			fault partition A from n1
			dropped A request SET lock A1
			n2/0 A2 by command A
			fault heal
			n1/0 A3 by command A`},
		{Name: "a partition loses replies", Steps: []Step{
			Do(faults.Hold{Match: a(faults.After)}), Send("A", "SET lock A-value-1"), AwaitEvent("held A reply SET lock A1"),
			Do(faults.Partition{}, faults.Pass{}), Silence("A"),
			Do(faults.Heal{}), Ends("A"),
		}, Kinds: messages, Events: `
			A > n1/0 SET lock A1
			held A reply SET lock A1
			passed A reply SET lock A1
			dropped A reply SET lock A1`},
		{Name: "a partition loses messages", Steps: []Step{
			Send("A", "SUBSCRIBE ch"), Hears("A", "*3 $9 subscribe $2 ch :1"),
			Do(faults.Partition{Clients: names("A")}),
			Send("B", "PUBLISH ch free"), Hears("B", ":1"), Silence("A"),
			// The connection lost a message, so it must end.
			Do(faults.Heal{}), Ends("A"),
		}, Kinds: []checker.Kind{checker.Push, checker.Dropped}, Events: `dropped A push`},
		{Name: "heal spares what lost nothing", Steps: []Step{
			Do(faults.Partition{}), Silence("A"), Do(faults.Heal{}), Send("A", "PING"), Hears("A", "+PONG"),
		}, Kinds: messages, Events: `
			A > n1/0 PING
			A < n1 PING = PONG`},
		{Name: "latency", Nodes: 2, Steps: []Step{
			Do(faults.Latency{Clients: names("A"), Nodes: n1, Base: span(50 * time.Millisecond)}),
			Send("A", "PING"), Hears("A", "+PONG", 100*time.Millisecond),
			Do(faults.Latency{Base: faults.Span{}}), Send("A", "PING"), Hears("A", "+PONG"),
			Send("A@n2", "PING"), Hears("A@n2", "+PONG"),
		}, Kinds: messages, Events: `
			A > n1/0 PING
			A < n1 PING = PONG
			A > n1/0 PING
			A < n1 PING = PONG
			A > n2/0 PING
			A < n2 PING = PONG`},
	}
}

// ofReplication returns stories about the data of a replica, as WAIT reports it.
func ofReplication() []Story {
	do := func(f faults.Replication) Step {
		f.Node = "n1"
		return Do(f)
	}
	start := do(faults.Replication{Mode: faults.ReplicationStart})
	const told = `
			A > n1/0 SET lock A1
			A > n1/0 WAIT 1 10000`
	cutOff := func(name string, steps ...Step) Story {
		return Story{Name: name, Replicas: 1, Steps: slices.Concat(steps, []Step{
			Send("A", "SET lock A-value-1", "WAIT 1 200"), Hears("A", "+OK :0"),
			start, Send("A", "WAIT 1 10000"), Hears("A", ":1"),
		}), Kinds: requests, Events: `
			A > n1/0 SET lock A1
			A > n1/0 WAIT 1 200
			A > n1/0 WAIT 1 10000`}
	}
	slow := func(name string, step Step, least time.Duration) Story {
		return Story{Name: name, Replicas: 1, Steps: []Step{
			step, Send("A", "SET lock A-value-1", "WAIT 1 10000"), Hears("A", "+OK :1", least),
		}, Kinds: requests, Events: told}
	}
	return []Story{
		cutOff("a stream that stopped", do(faults.Replication{Mode: faults.ReplicationStop})),
		cutOff("a stream that times out", do(faults.Replication{Mode: faults.ReplicationTimeout, After: span(100 * time.Millisecond)}), Wait(second)),
		slow("a stream that is late", do(faults.Replication{Mode: faults.ReplicationDelay, Delay: span(second), Jitter: span(100 * time.Millisecond)}), 800*time.Millisecond),
		slow("a stream that is slow", do(faults.Replication{Mode: faults.ReplicationBandwidth, Rate: faults.Rate{Bytes: 38, Per: span(second)}}), 900*time.Millisecond),
		slow("a stream that is reset", do(faults.Replication{Mode: faults.ReplicationReset}), 0),
	}
}

func ofSlowLinks() []Story {
	const set, ok = "SET lock A-value-1", "+OK" // 38 and 5 bytes
	slow := faults.Latency{Clients: names("A"), Base: span(time.Hour)}
	return []Story{
		{Name: "a slow link keeps nobody else waiting", Steps: []Step{
			Do(slow), Send("A", set, "GET lock"), Is("A", faults.ClientState{UnderWay: 1, RoundTrips: 1}), Silence("A"),
			Send("B", "SET lock B-value-1"), Hears("B", ok),
			Do(faults.Latency{}), Hears("A", ok+" $9 A-value-1"),
		}, Kinds: []checker.Kind{checker.Fault, checker.Request, checker.State}, Events: `
			fault latency A 1h
			B > n1/0 SET lock B1
			n1/0 B1 by command B
			fault latency 0s
			A > n1/0 SET lock A1
			n1/0 A1 by command A
			A > n1/0 GET lock`},
		{Name: "a reply on a slow link keeps nobody else waiting", Steps: []Step{
			Do(faults.Hold{Match: a(faults.Before)}), Send("A", set), AwaitEvent("held A request SET lock A1"),
			Do(slow, faults.Pass{}), AwaitEvent("n1/0 A1 by command A"), Silence("A"),
			Send("B", "GET lock"), Hears("B", "$9 A-value-1"),
			Do(faults.Latency{}), Hears("A", ok),
		}, Kinds: messages, Events: `
			held A request SET lock A1
			passed A request SET lock A1
			A > n1/0 SET lock A1
			B > n1/0 GET lock
			B < n1 GET lock = "A1"
			A < n1 SET lock A1 = OK`},
		{Name: "the gate stands at the end of a slow link", Steps: []Step{
			Do(faults.Latency{Base: span(100 * time.Millisecond)}, faults.Hold{Match: a(faults.After)}),
			Send("A", set), AwaitEvent("held A reply SET lock A1"), Do(faults.Latency{Base: span(time.Hour)}),
			Do(faults.Pass{}), Hears("A", ok, 200*time.Millisecond),
		}, Kinds: messages, Events: `
			A > n1/0 SET lock A1
			held A reply SET lock A1
			passed A reply SET lock A1
			A < n1 SET lock A1 = OK`},
		{Name: "what is on its way when a link is cut is lost", Steps: []Step{
			Do(slow), Send("A", set), Is("A", faults.ClientState{UnderWay: 1, RoundTrips: 1}),
			Do(faults.Partition{Clients: names("A")}, faults.Latency{}), AwaitEvent("dropped A request SET lock A1"),
			Silence("A"), Do(faults.Heal{}), Ends("A"),
		}, Kinds: messages, Events: `dropped A request SET lock A1`},
		{Name: "bandwidth", Steps: []Step{
			Do(faults.Bandwidth{Clients: names("A"), Rate: faults.Rate{Bytes: 200, Per: span(second)}}),
			Send("B", "SET lock B-value-1"), Send("A", set, set), Hears("A", ok+" "+ok, 81*second/200),
			Is("A", faults.ClientState{Replies: 2, RoundTrips: 1}), Hears("B", ok),
			Do(faults.Bandwidth{Rate: faults.Rate{Bytes: 1, Per: faults.Span{TTLs: 1}}}),
			Send("A", "GET lock"), Is("A", faults.ClientState{UnderWay: 1, Replies: 2, RoundTrips: 2}), Silence("A"),
			Do(faults.Bandwidth{}), Hears("A", "$9 A-value-1"),
		}, Kinds: states, Events: `
			n1/0 B1 by command B
			n1/0 A1 by command A`},
	}
}

func ofTimeouts() []Story {
	const set = "SET lock A-value-1"
	timeout := func(after time.Duration) faults.Fault {
		return faults.Timeout{Clients: names("A"), Nodes: names("n1"), After: span(after)}
	}
	return []Story{
		{Name: "a timeout closes connections", Nodes: 2, Steps: []Step{
			Send("A", "PING"), Hears("A", "+PONG"), Silence("A", "A2", "A@n2"),
			Do(timeout(200 * time.Millisecond)),
			Send("A", set), AwaitEvent("dropped A request SET lock A1"), Closes("A"), Closes("A2"),
			Do(faults.Heal{}), Send("A@n2", "GET lock"), Hears("A@n2", "$-1"), Send("B", "GET lock"), Hears("B", "$-1"),
		}, Kinds: []checker.Kind{checker.Fault, checker.Dropped, checker.State}, Events: `
			fault timeout A from n1 after 200ms
			dropped A request SET lock A1
			fault heal`},
		{Name: "a timeout loses replies", Steps: []Step{
			Do(faults.Hold{Match: a(faults.After)}), Send("A", set), AwaitEvent("held A reply SET lock A1"),
			Do(timeout(200*time.Millisecond), faults.Pass{}), Closes("A"),
		}, Kinds: messages, Events: `
			A > n1/0 SET lock A1
			held A reply SET lock A1
			passed A reply SET lock A1
			dropped A reply SET lock A1`},
		{Name: "a timeout is healed before its time", Steps: []Step{
			Send("A2", "PING"), Hears("A2", "+PONG"),
			Do(timeout(500 * time.Millisecond)), Send("A", set), AwaitEvent("dropped A request SET lock A1"),
			Do(faults.Heal{}), Ends("A"), Wait(second), Send("A2", "GET lock"), Hears("A2", "$-1"), // A2 lost no message
		}, Kinds: states},
		{Name: "a timeout ends a partition", Steps: []Step{
			Do(faults.Partition{Clients: names("A")}, faults.Timeout{Clients: names("A"), After: span(200 * time.Millisecond)}), Closes("A"),
		}, Kinds: requests},
		{Name: "a partition instead of a timeout", Steps: []Step{
			Do(timeout(500 * time.Millisecond)), Send("A", set), AwaitEvent("dropped A request SET lock A1"),
			Do(faults.Partition{Clients: names("A")}), Wait(second), Silence("A"), Do(faults.Heal{}), Ends("A"),
		}, Kinds: states},
	}
}

// oom is the reply of a server that has no memory left.
const oom = "-OOM_command_not_allowed_when_used_memory_>_'maxmemory'."

func ofNodes() []Story {
	const set = "SET lock A-value-1 PX 30000"
	take := []Step{Send("A", set), Hears("A", "+OK")}
	after := func(steps ...Step) []Step { return slices.Concat(take, steps) }
	return []Story{
		{Name: "a paused node", Steps: []Step{
			Do(faults.PauseNode{Node: "n1"}),
			Send("A", set, "GET lock"), Is("A", faults.ClientState{UnderWay: 1, RoundTrips: 1}), Silence("A"),
			Send("B", "SETNX lock B-value-1"), Silence("A", "B"), Leaves("A"), Silence("B"),
			Do(faults.ResumeNode{Node: "n1"}), Hears("B", ":0"),
		}, Kinds: []checker.Kind{checker.Fault, checker.Request, checker.State}, Events: `
			fault n1 pause
			fault n1 resume
			A > n1/0 SET lock A1 PX 30000
			n1/0 A1 for 30s by command A
			A > n1/0 GET lock
			B > n1/0 SETNX lock B1`},
		{Name: "a crash, with data", Steps: after(
			Do(faults.CrashNode{Node: "n1"}), Ends("A"), Do(faults.RestartNode{Node: "n1"}),
		), Kinds: []checker.Kind{checker.Fault, checker.State}, Events: `
			n1/0 A1 for 30s by command A
			fault n1 crash
			fault n1 restart`},
		{Name: "a crash, without", Steps: after(
			Do(faults.CrashNode{Node: "n1"}), Ends("A"), Do(faults.RestartNode{Node: "n1", Empty: true}),
		), Kinds: []checker.Kind{checker.Fault, checker.State}, Events: `
			n1/0 A1 for 30s by command A
			fault n1 crash
			fault n1 restart empty
			n1/0 gone by restart`},
		{Name: "flush", Steps: after(
			Send("A", "SET other x"), Hears("A", "+OK"), Do(faults.Flush{Node: "n1"}),
			Send("A", "EXISTS other"), Hears("A", ":0"),
		), Kinds: states, Events: `
			n1/0 A1 for 30s by command A
			n1/0 gone by flush`},
		{Name: "evict", Steps: after(
			Send("A", "SET other x"), Hears("A", "+OK"), Do(faults.Evict{Node: faults.Quorum}),
			Send("A", "EXISTS other"), Hears("A", ":1"),
		), Kinds: states, Events: `
			n1/0 A1 for 30s by command A
			n1/0 gone by eviction`},
		{Name: "script-flush", Steps: []Step{
			Send("A", "SCRIPT LOAD return_1"), Hears("A", "$40 e0e1f9fabfc9d4800c877a703b823ac0578ff8db"),
			Send("A", "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0"), Hears("A", ":1"),
			Do(faults.ScriptFlush{Node: "n1"}),
			Send("A", "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0"), Hears("A", "-NOSCRIPT_No_matching_script._Please_use_EVAL."),
		}, Kinds: states},
		{Name: "full", Steps: []Step{
			Send("A", "SET lock A-value-1 PX 30000"), Hears("A", "+OK"), Send("B", "MULTI"), Hears("B", "+OK"), Send("B", "INCR n"), Hears("B", "+QUEUED"),
			Do(faults.Full{Node: "n1"}, faults.Full{Node: "n1"}),
			Send("B", "EXEC"), Hears("B", "-EXECABORT_Transaction_discarded_because_of:_"+oom[1:]),
			Send("B", "MULTI"), Hears("B", "+OK"), Send("B", "GET lock"), Hears("B", oom), Send("B", "EXEC"), Hears("B", "-EXECABORT_Transaction_discarded_because_of_previous_errors."),
			Send("A", "SET lock A-value-2 NX"), Hears("A", oom), Send("A", "INCR n"), Hears("A", oom),
			Send("A", "GET n"), Hears("A", "$-1"), Send("A", "PEXPIRE lock 60000"), Hears("A", ":1"),
			Send("A", "EVAL return_redis.pcall('set','n','1') 0"), Hears("A", oom),
			Send("A", "EVAL redis.call('del','lock');return_redis.pcall('set','n','1') 0"), Hears("A", "+OK"), // no stop between two writes
			Do(faults.Full{Node: "n1", Off: true}), Send("A", "INCR n"), Hears("A", ":2"),
			Do(faults.Full{Node: "n1/0"}, faults.CrashNode{Node: "n1"}), Ends("A"), Do(faults.RestartNode{Node: "n1"}), Connects("C"),
			Send("C", "INCR n"), Hears("C", ":3"),
		}, Kinds: states, Events: `
			n1/0 A1 for 30s by command A
			n1/0 A1 for 60s by command A
			n1/0 gone by command A`},
		{Name: "full, a replica", Replicas: 1, Steps: []Step{
			Do(faults.Full{Node: "n1/1"}), Send("A", "SET lock A-value-1", "WAIT 1 10000"), Hears("A", "+OK :1"), // a replica has no limit
			Do(faults.Failover{Node: "n1"}), Ends("A"), Connects("C"),
			Send("C", "GET lock"), Hears("C", "$9 A-value-1"), Send("C", "SET lock C-value-1"), Hears("C", oom),
		}, Kinds: []checker.Kind{checker.Fault}, Events: `
			fault n1/1 full
			fault n1 failover`},
		{Name: "its clock jumps", Clock: true, Steps: after(
			Do(faults.NodeClock{Node: "n1", By: faults.Span{Abs: -10 * second}}), // 30 s become 40 s
			Do(faults.NodeClock{Node: "n1", By: faults.Span{TTLs: 2}}),
			Send("A", "GET lock"), Hears("A", "$-1"),
		), Kinds: states, Events: `
			n1/0 A1 for 30s by command A
			n1/0 A1 for 40s by clock
			n1/0 gone by clock`},
		{Name: "its clock drifts", Clock: true, Steps: after(
			Do(faults.NodeDrift{Node: "n1", Rate: 3}),
			Send("B", "PEXPIRE lock 60000"), Hears("B", ":1"), // a change by a command instead of the clock
		), Kinds: states, Events: `
			n1/0 A1 for 30s by command A
			n1/0 A1 for 10s by clock
			n1/0 A1 for 20s by command B`},
	}
}
