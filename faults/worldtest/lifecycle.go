package worldtest

import (
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// ofServers returns stories about servers that are stopped or down, and about the replication
// between them.
func ofServers() []Story {
	const set = "SET lock A-value-1"
	stream := func(mode faults.ReplicationMode) faults.Fault { return faults.Replication{Node: "n1", Mode: mode} }
	stop, start := stream(faults.ReplicationStop), stream(faults.ReplicationStart)
	delay := func(d time.Duration) faults.Fault {
		return faults.Replication{Node: "n1", Mode: faults.ReplicationDelay, Delay: span(d)}
	}
	crash := func(name string) faults.Fault { return faults.CrashNode{Node: name} }
	restart := func(name string) faults.Fault { return faults.RestartNode{Node: name} }
	pause := func(name string) faults.Fault { return faults.PauseNode{Node: name} }
	resume := func(name string) faults.Fault { return faults.ResumeNode{Node: name} }
	failover := faults.Failover{Node: "n1"}
	has := func(on, value string) []Step { return []Step{Send(on, "GET lock"), Hears(on, value)} }
	none := []Step{Send("A", set, "WAIT 1 200"), Hears("A", "+OK :0")}
	some := func(on string) []Step { return []Step{Send(on, "WAIT 1 15000"), Hears(on, ":1")} }
	story := func(name string, replicas int, events string, steps ...[]Step) Story {
		return Story{Name: name, Replicas: replicas, Clock: true, Steps: slices.Concat(steps...), Kinds: []checker.Kind{checker.Fault}, Events: events}
	}
	do := func(list ...faults.Fault) []Step { return []Step{Do(list...)} }
	return []Story{
		story("replicas follow a new primary", 2, "fault n1 failover",
			[]Step{Send("A", set, "WAIT 2 15000"), Hears("A", "+OK :2")}, do(failover),
			[]Step{Connects("A2"), Send("A2", "SET lock A-value-2"), Hears("A2", "+OK")}, some("A2")),
		story("replicas follow a primary that came back", 1, "fault n1 crash\nfault n1 restart",
			do(crash("n1"), restart("n1")),
			[]Step{Connects("A2"), Send("A2", set), Hears("A2", "+OK")}, some("A2")),
		story("a stream stays stopped when its primary comes back", 1, `
			fault n1 replication stop
			fault n1 crash
			fault n1 restart
			fault n1 replication start`,
			do(stop, crash("n1"), restart("n1")),
			[]Step{Connects("A2"), Send("A2", set, "WAIT 1 200"), Hears("A2", "+OK :0")}, do(start), some("A2")),
		story("a stream stays stopped when a replica comes back", 1, `
			fault n1 replication stop
			fault n1/1 crash
			fault n1/1 restart
			fault n1 replication start`,
			do(stop, crash("n1/1"), restart("n1/1")), none, do(start), some("A")),
		story("a stream stays slow when its primary comes back", 1, `
			fault n1 replication delay 1s
			fault n1 crash
			fault n1 restart`,
			do(delay(second), crash("n1"), restart("n1")),
			[]Step{Connects("A2"), Send("A2", set, "WAIT 1 15000"), Hears("A2", "+OK :1", 800*time.Millisecond)}),
		story("what is on its way when a primary dies arrives", 1, `
			fault n1 replication delay 300ms
			fault n1 crash
			fault n1 failover`,
			do(delay(300*time.Millisecond)), []Step{Send("A", set), Hears("A", "+OK")},
			do(crash("n1")), []Step{Wait(second)}, do(failover), []Step{Connects("B")}, has("B", "$9 A-value-1")),
		story("what a stopped stream has arrives when its primary is dead", 1, `
			fault n1 replication stop
			fault n1 crash
			fault n1 replication start
			fault n1 failover`,
			do(stop), []Step{Send("A", set), Hears("A", "+OK")},
			do(crash("n1"), start), []Step{Wait(second)}, do(failover), []Step{Connects("B")}, has("B", "$9 A-value-1")),
		story("what is on its way is lost at a failover", 1, `
			fault n1 replication delay 300ms
			fault n1 failover`,
			do(delay(300*time.Millisecond)), []Step{Send("A", set), Hears("A", "+OK")},
			do(failover), []Step{Wait(second), Connects("B")}, has("B", "$-1")),
		{Name: "a server that is down expires nothing", Steps: []Step{
			Send("A", set+" PX 300"), Hears("A", "+OK"), Do(crash("n1")), Wait(second), Do(restart("n1")),
			Connects("A2"), Send("A2", "GET lock"), Hears("A2", "$-1"),
		}, Kinds: []checker.Kind{checker.Fault, checker.State}, Events: `
			n1/0 A1 for 10s by command A
			fault n1 crash
			fault n1 restart
			n1/0 gone by expiry`},
		{Name: "a server that is stopped expires nothing", Steps: []Step{
			Send("A", set+" PX 300"), Hears("A", "+OK"), Do(pause("n1")), Wait(second), Do(resume("n1")),
			Send("A", "GET lock"), Hears("A", "$-1"),
		}, Kinds: []checker.Kind{checker.Fault, checker.State}, Events: `
			n1/0 A1 for 10s by command A
			fault n1 pause
			fault n1 resume
			n1/0 gone by expiry`},
		story("a replica that is down", 1, "fault n1/1 crash\nfault n1/1 restart",
			do(crash("n1/1")), none, do(restart("n1/1")), some("A")),
		story("a replica that is stopped", 1, "fault n1/1 pause\nfault n1/1 resume",
			do(pause("n1/1")), none, do(resume("n1/1")), some("A")),
		story("a replica that is stopped is not promoted", 2, "fault n1/1 pause\nfault n1 failover\nfault n1/1 resume",
			[]Step{Send("A", set, "WAIT 2 15000"), Hears("A", "+OK :2")}, do(pause("n1/1"), failover),
			[]Step{Connects("A2"), Send("A2", "SET lock A-value-2", "WAIT 1 200"), Hears("A2", "+OK :0")}, do(resume("n1/1")), some("A2"),
			[]Step{AwaitEvent("fault n1/1 resume")}),
		story("a server keeps its name", 1, "fault n1 failover\nfault n1/1 crash\nfault n1/0 restart\nfault n1/1 restart\nfault n1/0 pause\nfault n1/0 resume",
			do(failover), []Step{Connects("A2"), Send("A2", set), Hears("A2", "+OK")}, do(crash("n1/1")), []Step{Ends("A2")},
			do(restart("n1/0"), restart("n1/1")), []Step{Connects("A3")}, has("A3", "$9 A-value-1"), some("A3"),
			do(pause("n1/0")), has("A3", "$9 A-value-1"), do(resume("n1/0"))),
		{Name: "what nobody can do to a server that is down", Replicas: 1, Clock: true, Steps: []Step{
			Do(crash("n1")),
			Refuses(pause("n1"), "n1/0 is down, and has no process to stop"),
			Refuses(faults.Flush{Node: "n1"}, "n1/0 is down: restart it first"),
			Refuses(faults.Evict{Node: "n1"}, "restart it first"),
			Refuses(faults.ScriptFlush{Node: "n1"}, "restart it first"),
			Refuses(faults.NodeClock{Node: "n1", By: span(second)}, "restart it first"),
			Refuses(faults.NodeDrift{Node: "n1/0", Rate: 2}, "restart it first"),
			Do(crash("n1"), resume("n1"), restart("n1"), restart("n1")), Connects("A2"), Send("A2", "PING"), Hears("A2", "+PONG"),
		}, Kinds: []checker.Kind{checker.Fault}, Events: `
			fault n1 crash
			fault n1 crash
			fault n1 resume
			fault n1 restart
			fault n1 restart`},
		{Name: "what nobody can do to a server that is stopped", Replicas: 1, Clock: true, Steps: []Step{
			Do(pause("n1")),
			Refuses(faults.Flush{Node: "n1"}, "n1/0 is stopped: resume it first"),
			Refuses(faults.Evict{Node: "n1"}, "resume it first"),
			Refuses(faults.ScriptFlush{Node: "n1"}, "resume it first"),
			Refuses(faults.NodeClock{Node: "n1", By: span(second)}, "resume it first"),
			Refuses(faults.NodeDrift{Node: "n1", Rate: 2}, "resume it first"),
			Do(pause("n1"), resume("n1"), pause("n1/1")),
			Refuses(failover, "no replica of n1 runs"),
			Refuses(faults.Split{Node: "n1", Clients: names("A")}, "no replica of n1 runs"),
			Refuses(crash("n1/2"), "n1 has 2 servers, from n1/0 on"),
			Refuses(faults.Flush{Node: "n1/1"}, "name n1"),
			Refuses(faults.Join{Node: "n1"}, "not split"),
			Send("A", "PING"), Hears("A", "+PONG"),
		}, Kinds: []checker.Kind{checker.Fault}, Events: `
			fault n1 pause
			fault n1 pause
			fault n1 resume
			fault n1/1 pause`},
	}
}
