package leases_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/leases"
)

// A run is a history that a test writes event by event. Times are in seconds.
type run struct{ checker.History }

func newRun(nodes ...string) *run {
	return &run{checker.History{Meta: checker.Meta{
		Format: 1, Clients: []string{"A", "B"}, Nodes: nodes,
		TTL: 30 * time.Second, Grace: 15 * time.Second, Bound: 150 * time.Second,
	}}}
}

func (r *run) add(at float64, e checker.Event) *run {
	e.Index, e.Time = len(r.Events), time.Duration(at*float64(time.Second))
	r.Events = append(r.Events, e)
	return r
}

// hold adds an acquire that got the key on the nodes, for a TTL.
func (r *run) hold(at float64, client string, call int, nodes ...string) *run {
	r.add(at, checker.Event{Kind: checker.Invoke, Client: client, Op: checker.Acquire, Call: call})
	for _, n := range nodes {
		r.owns(at, client, n)
	}
	return r.add(at, checker.Event{Kind: checker.Return, Client: client, Op: checker.Acquire, Call: call, Result: checker.OK})
}

// owns adds a request that got the key on a node, for a TTL.
func (r *run) owns(at float64, client, node string) *run {
	command, value := "SET lock "+client+"1 NX PX 30000", client+"1"
	r.add(at, checker.Event{Kind: checker.Request, Client: client, Node: node, Server: node + "/0", Command: command, Sent: time.Duration(at * float64(time.Second))})
	r.add(at, checker.Event{Kind: checker.State, Client: client, Node: node, Server: node + "/0", Owner: client, Value: value, Cause: checker.ByCommand, Expires: time.Duration((at + 30) * float64(time.Second))})
	return r.add(at, checker.Event{Kind: checker.Reply, Client: client, Node: node, Command: command, Reply: "OK"})
}

func (r *run) gone(at float64, node string, cause checker.Cause) *run {
	return r.add(at, checker.Event{Kind: checker.State, Node: node, Server: node + "/0", Cause: cause})
}

// release adds a release that removed the client's key.
func (r *run) release(at float64, client string, call int, node string) *run {
	r.add(at, checker.Event{Kind: checker.Invoke, Client: client, Op: checker.Release, Call: call})
	r.add(at, checker.Event{Kind: checker.Request, Client: client, Node: node, Server: node + "/0", Command: "DEL lock", Sent: time.Duration(at * float64(time.Second))})
	r.add(at, checker.Event{Kind: checker.State, Client: client, Node: node, Server: node + "/0", Cause: checker.ByCommand})
	r.add(at, checker.Event{Kind: checker.Reply, Client: client, Node: node, Command: "DEL lock", Reply: "1"})
	return r.add(at, checker.Event{Kind: checker.Return, Client: client, Op: checker.Release, Call: call, Result: checker.OK})
}

func (r *run) fault(at float64, text string) *run {
	return r.add(at, checker.Event{Kind: checker.Fault, Text: text, Node: strings.Fields(text)[0]})
}

// TestOverlap checks what excuses an overlap.
func TestOverlap(t *testing.T) {
	all := []string{"n1", "n2", "n3"}
	for name, c := range map[string]struct {
		run  *run
		tags []string
		want leases.Outcome
	}{
		"within the lease": {
			newRun("n1").hold(0, "A", 1, "n1").gone(10, "n1", checker.ByExpiry).hold(11, "B", 2, "n1"), nil, leases.Bug},
		"after the lease": {
			newRun("n1").hold(0, "A", 1, "n1").gone(30, "n1", checker.ByExpiry).hold(31, "B", 2, "n1"), nil, leases.Limitation},
		"after the lease, of a lock that promises to notify": {
			newRun("n1").hold(0, "A", 1, "n1").gone(30, "n1", checker.ByExpiry).hold(31, "B", 2, "n1"), []string{"told"}, leases.Bug},
		"of a paused client": {
			newRun("n1").hold(0, "A", 1, "n1").add(1, checker.Event{Kind: checker.Pause, Client: "A"}).
				gone(30, "n1", checker.ByExpiry).hold(31, "B", 2, "n1"), []string{"told"}, leases.Limitation},
		"a server lost the key": {
			newRun("n1").hold(0, "A", 1, "n1").fault(5, "n1 flush").gone(5, "n1", checker.ByFlush).hold(6, "B", 2, "n1"), nil, leases.Limitation},
		"a pause does not excuse an overlap within the lease": {
			newRun("n1").hold(0, "A", 1, "n1").add(1, checker.Event{Kind: checker.Pause, Client: "A"}).
				gone(10, "n1", checker.ByExpiry).hold(11, "B", 2, "n1"), nil, leases.Bug},
		"one of three nodes lost the key, and a majority has it": {
			newRun(all...).hold(0, "A", 1, all...).fault(5, "n1 flush").gone(5, "n1", checker.ByFlush).
				gone(5.1, "n2", checker.ByExpiry).hold(6, "B", 2, "n1", "n2"), []string{"majority"}, leases.Bug},
		"one of two that had the key lost it": {
			newRun(all...).hold(0, "A", 1, "n1", "n2").fault(5, "n1 flush").gone(5, "n1", checker.ByFlush).
				hold(6, "B", 2, "n1", "n3"), []string{"majority"}, leases.Limitation},
		"a node lost the key of the one who had a majority last": {
			newRun(all...).add(0, checker.Event{Kind: checker.Invoke, Client: "A", Op: checker.Acquire, Call: 1}).owns(0, "A", "n1").
				fault(1, "n1 restart empty").gone(1, "n1", checker.ByRestart).hold(2, "B", 2, "n1", "n2").
				owns(3, "A", "n3").add(3, checker.Event{Kind: checker.Return, Client: "A", Op: checker.Acquire, Call: 1, Result: checker.OK}), []string{"majority"}, leases.Limitation},
		"a renewal that was disturbed until the end": {
			newRun("n1").hold(0, "A", 1, "n1").fault(1, "partition A").gone(30, "n1", checker.ByExpiry).
				hold(31, "B", 2, "n1"), []string{"renewing"}, leases.Weakness},
		"the release of a nested acquire": {
			newRun("n1").hold(0, "A", 1, "n1").hold(1, "A", 2, "n1").release(2, "A", 3, "n1").hold(3, "B", 4, "n1"), []string{"reentrant"}, leases.Bug},
		"the release of a nested acquire that came after the lease": {
			newRun("n1").hold(0, "A", 1, "n1").gone(30, "n1", checker.ByExpiry).hold(33, "A", 2, "n1").
				release(34, "A", 3, "n1").hold(35, "B", 4, "n1"), []string{"reentrant"}, leases.Limitation},
		"the release of a nested acquire whose reply was lost, sent again": {
			newRun("n1").hold(0, "A", 1, "n1").hold(1, "A", 2, "n1").add(2, checker.Event{Kind: checker.Invoke, Client: "A", Op: checker.Release, Call: 3}).
				add(2, checker.Event{Kind: checker.Request, Client: "A", Node: "n1", Server: "n1/0", Command: "EVALSHA 1 lock A1", Sent: 2 * time.Second}).
				add(2, checker.Event{Kind: checker.Dropped, Client: "A", Node: "n1", Direction: "reply", Command: "EVALSHA 1 lock A1"}).
				add(3, checker.Event{Kind: checker.Request, Client: "A", Node: "n1", Server: "n1/0", Command: "EVALSHA 1 lock A1", Sent: 3 * time.Second}).
				add(3, checker.Event{Kind: checker.State, Client: "A", Node: "n1", Server: "n1/0", Cause: checker.ByCommand}).
				add(3, checker.Event{Kind: checker.Return, Client: "A", Op: checker.Release, Call: 3, Result: checker.OK}).hold(4, "B", 4, "n1"), []string{"reentrant"}, leases.Weakness},
		"within the lease of a nested acquire that came after the first": {
			newRun("n1").hold(0, "A", 1, "n1").gone(30, "n1", checker.ByExpiry).hold(33, "A", 2, "n1").
				gone(34, "n1", checker.ByExpiry).hold(35, "B", 4, "n1"), []string{"reentrant"}, leases.Bug},
		"a watchdog that stops by itself": {
			newRun("n1").hold(0, "A", 1, "n1").gone(30, "n1", checker.ByExpiry).hold(31, "B", 2, "n1"), []string{"renewing"}, leases.Bug},
	} {
		t.Run(name, func(t *testing.T) {
			list := leases.Judge(c.run.add(40, checker.Event{Kind: checker.End}).History, leases.Lock{Tags: c.tags})
			i := slices.IndexFunc(list, func(f leases.Finding) bool { return f.Anomaly == checker.Overlap })
			if i < 0 || list[i].Outcome != c.want {
				t.Errorf("findings %+v, want an overlap that is a %s", list, c.want)
			}
		})
	}
}

// TestWriteByAnOuterHold checks that a write after the release of a nested acquire is judged by the hold that
// is left.
func TestWriteByAnOuterHold(t *testing.T) {
	r := newRun("n1").hold(0, "A", 1, "n1").gone(30, "n1", checker.ByExpiry).hold(33, "A", 2, "n1").
		release(34, "A", 3, "n1").hold(35, "B", 4, "n1").
		add(36, checker.Event{Kind: checker.Write, Client: "A", Accepted: true}).release(36, "A", 5, "n1").
		add(40, checker.Event{Kind: checker.End})
	list := leases.Judge(r.History, leases.Lock{Tags: []string{"reentrant"}})
	i := slices.IndexFunc(list, func(f leases.Finding) bool { return f.Anomaly == checker.StaleWrite })
	if i < 0 || list[i].Outcome != leases.Limitation {
		t.Errorf("findings %+v, want a stale write that is a known limitation", list)
	}
}

// TestWorstOccurrenceDecides checks that a bug is reported though another occurrence is excused.
func TestWorstOccurrenceDecides(t *testing.T) {
	r := newRun("n1").hold(0, "A", 1, "n1").fault(5, "n1 flush").gone(5, "n1", checker.ByFlush).hold(6, "B", 2, "n1").
		gone(7, "n1", checker.ByExpiry)
	r.Meta.Clients = []string{"A", "B", "C"}
	r.hold(8, "C", 3, "n1").add(40, checker.Event{Kind: checker.End})
	list := leases.Judge(r.History, leases.Lock{})
	if len(list) == 0 || list[0].Outcome != leases.Bug || list[0].Occurrences[leases.Limitation] == 0 ||
		r.Events[list[0].Witness.Events[1]].Client != "C" {
		t.Errorf("findings %+v, want a bug that C's acquire shows, beside limitations", list)
	}
}

// TestFaultsOfLinksEnd checks that a fault ends only what its definition says.
func TestFaultsOfLinksEnd(t *testing.T) {
	for ends, want := range map[string]leases.Outcome{"latency A 1ms": leases.Weakness, "heal A": leases.Bug} {
		r := newRun("n1").hold(0, "A", 1, "n1").fault(1, "partition A").fault(2, ends).gone(30, "n1", checker.ByExpiry).
			hold(31, "B", 2, "n1").add(40, checker.Event{Kind: checker.End})
		if list := leases.Judge(r.History, leases.Lock{Tags: []string{"renewing"}}); len(list) == 0 || list[0].Outcome != want {
			t.Errorf("after %s: %+v, want an overlap that is a %s", ends, list, want)
		}
	}
}

func TestClassOf(t *testing.T) {
	renewing := newRun("n1").hold(0, "A", 1, "n1")
	renewing.add(10, checker.Event{Kind: checker.Request, Client: "A", Node: "n1", Server: "n1/0", Command: "PEXPIRE lock 30000"}).
		add(10, checker.Event{Kind: checker.State, Client: "A", Node: "n1", Server: "n1/0", Owner: "A", Value: "A1", Cause: checker.ByCommand, Expires: 40 * time.Second})
	valid := newRun("n1").add(0, checker.Event{Kind: checker.Return, Client: "A", Op: checker.Acquire, Call: 1, Result: checker.OK, Until: time.Second})
	for _, c := range []struct {
		run  *run
		tags []string
		want leases.Class
	}{
		{newRun("n1"), nil, leases.Lease},
		{newRun("n1"), []string{"queue"}, leases.Queue},
		{newRun("n1"), []string{"fenced"}, leases.Fencing},
		{newRun("n1", "n2", "n3"), []string{"quorum", "renewing"}, leases.MajorityWatchdog},
		{renewing, nil, leases.Watchdog},
		{renewing, []string{"lease"}, leases.Lease},
		{valid, nil, leases.Validity},
	} {
		if got, _ := leases.ClassOf(c.run.History, leases.Lock{Tags: c.tags}); got != c.want {
			t.Errorf("%v: %s, want %s", c.tags, got, c.want)
		}
	}
}

// TestGhostOfAQuorum checks that keys stay on nodes that a quorum lock could not reach.
func TestGhostOfAQuorum(t *testing.T) {
	for _, c := range []struct {
		name string
		held string // the request that the gate held on each node
		on   []string
		want leases.Outcome
	}{
		{"its release was held", "DEL lock", []string{"n1"}, leases.Limitation},
		{"nothing kept it from its nodes", "", []string{"n1"}, leases.Bug},
		{"it had a majority, and knew of one node", "DEL lock", []string{"n1", "n2"}, leases.Limitation},
		{"it did not try to release", "PING", []string{"n1", "n2"}, leases.Bug},
	} {
		r := newRun("n1", "n2", "n3").add(0, checker.Event{Kind: checker.Invoke, Client: "A", Op: checker.Acquire, Call: 1})
		for _, n := range c.on {
			r.owns(0, "A", n)
		}
		for _, n := range c.on {
			if c.held != "" {
				r.add(0.1, checker.Event{Kind: checker.Held, Client: "A", Node: n, Direction: "request", Command: c.held})
			}
		}
		r.add(0.2, checker.Event{Kind: checker.Return, Client: "A", Op: checker.Acquire, Call: 1, Result: checker.Fail}).add(20, checker.Event{Kind: checker.End})
		list := leases.Judge(r.History, leases.Lock{Tags: []string{"majority"}})
		i := slices.IndexFunc(list, func(f leases.Finding) bool { return f.Anomaly == checker.Ghost })
		if i < 0 || list[i].Outcome != c.want {
			t.Errorf("%s: findings %+v, want a ghost that is a %s", c.name, list, c.want)
		}
	}
}

// TestUnreleasable checks that a release whose requests were lost is not blamed on the value of another
// client.
func TestUnreleasable(t *testing.T) {
	for _, c := range []struct {
		name     string
		executed bool
		want     leases.Outcome
	}{{"its request was lost", false, leases.Limitation}, {"a server executed it", true, leases.Bug}} {
		r := newRun("n1").hold(0, "A", 1, "n1").
			add(1, checker.Event{Kind: checker.Invoke, Client: "A", Op: checker.Release, Call: 2}).
			add(2, checker.Event{Kind: checker.Invoke, Client: "B", Op: checker.Acquire, Call: 3}).owns(2, "B", "n1")
		if c.executed {
			r.add(3, checker.Event{Kind: checker.Request, Client: "A", Node: "n1", Server: "n1/0", Command: "GET lock"})
		}
		r.add(3, checker.Event{Kind: checker.Dropped, Client: "A", Node: "n1", Direction: "request"}).
			add(4, checker.Event{Kind: checker.Return, Client: "A", Op: checker.Release, Call: 2, Result: checker.Unknown}).
			add(20, checker.Event{Kind: checker.End})
		list := leases.Judge(r.History, leases.Lock{})
		i := slices.IndexFunc(list, func(f leases.Finding) bool { return f.Anomaly == checker.Unreleasable })
		if i < 0 || list[i].Outcome != c.want {
			t.Errorf("%s: findings %+v, want an unreleasable lock that is a %s", c.name, list, c.want)
		}
	}
}

// TestFieldExpires checks that a key of which a field has a time to live is not called stuck for ever.
func TestFieldExpires(t *testing.T) {
	for command, want := range map[string]leases.Outcome{
		"HSETEX lock FNX PX 30000 FIELDS 1 owner A1": leases.Limitation, "HSET lock owner A1": leases.Bug,
	} {
		r := newRun("n1").add(0, checker.Event{Kind: checker.Invoke, Client: "A", Op: checker.Acquire, Call: 1}).
			add(0, checker.Event{Kind: checker.Request, Client: "A", Node: "n1", Server: "n1/0", Command: command}).
			add(0, checker.Event{Kind: checker.State, Client: "A", Node: "n1", Server: "n1/0", Owner: "A", Value: "A1", Cause: checker.ByCommand}).
			add(0, checker.Event{Kind: checker.Return, Client: "A", Op: checker.Acquire, Call: 1, Result: checker.Unknown}).
			add(40, checker.Event{Kind: checker.Invoke, Client: "B", Op: checker.Acquire, Call: 2}).
			add(200, checker.Event{Kind: checker.Return, Client: "B", Op: checker.Acquire, Call: 2, Result: checker.Fail}).
			add(201, checker.Event{Kind: checker.End})
		list := leases.Judge(r.History, leases.Lock{})
		i := slices.IndexFunc(list, func(f leases.Finding) bool { return f.Anomaly == checker.StuckLock })
		if i < 0 || list[i].Outcome != want {
			t.Errorf("%s: findings %+v, want a stuck lock that is a %s", command, list, want)
		}
	}
}

// TestReasonOfForeignRelease checks which cause is named of a command that removed another's key.
func TestReasonOfForeignRelease(t *testing.T) {
	request := func(at float64, command string) checker.Event {
		return checker.Event{Kind: checker.Request, Client: "A", Node: "n1", Server: "n1/0", Command: command, Sent: time.Duration(at * float64(time.Second))}
	}
	for _, c := range []struct {
		name, value, look, command, want string
	}{
		{"a plain DEL", "B1", "", "DEL lock", "A's DEL lock does not look whose the key is"},
		{"a look before", "B1", "GET lock", "DEL lock", "A looked with GET lock at 1.000s, and sent DEL lock at 3.000s: the key became B's in between"},
		{"the same value, compared in a script", "A1", "", "EVALSHA 9de2db86… 1 lock A1", "A and B write the same value"},
		{"a script that compares another key", "A1", "", "EVALSHA 9de2db86… 2 lock lock:owner A2", "A and B write the same value into the lock's key, and its owner into another"},
		{"a look at another key", "A1", "GET lock:owner", "DEL lock", "A looked at another key with GET lock:owner"},
		{"the same value, and no comparison", "A1", "", "DEL lock", "A's DEL lock does not look whose the key is"},
	} {
		r := newRun("n1").hold(0, "A", 1, "n1").add(0.9, checker.Event{Kind: checker.Invoke, Client: "A", Op: checker.Release, Call: 2})
		if c.look != "" {
			r.add(1, request(1, c.look))
		}
		r.gone(1.5, "n1", checker.ByFlush)
		r.add(2, checker.Event{Kind: checker.Request, Client: "B", Node: "n1", Server: "n1/0", Command: "SET lock " + c.value + " NX PX 30000", Sent: 2 * time.Second})
		r.add(2, checker.Event{Kind: checker.State, Client: "B", Node: "n1", Server: "n1/0", Owner: "B", Value: c.value, Cause: checker.ByCommand, Expires: 32 * time.Second})
		r.add(3, request(3, c.command))
		r.add(3, checker.Event{Kind: checker.State, Client: "A", Node: "n1", Server: "n1/0", Cause: checker.ByCommand})
		r.add(4, checker.Event{Kind: checker.End})
		list := leases.Judge(r.History, leases.Lock{})
		i := slices.IndexFunc(list, func(f leases.Finding) bool { return f.Anomaly == checker.ForeignRelease })
		if i < 0 || list[i].Outcome != leases.Bug || !strings.HasPrefix(list[i].Reason, c.want) {
			t.Errorf("%s: %+v; want a foreign-release, as %s", c.name, list, c.want)
		}
	}
}

// TestReaper checks which requests of an owner keep others from removing its key: those that it sent
// within a lease.
func TestReaper(t *testing.T) {
	for _, c := range []struct {
		name, command string
		sent          float64
		want          leases.Outcome
	}{
		{"nothing came", "", 0, leases.Limitation},
		{"a request that it had just sent", "SET alive 1", 39, leases.Bug},
		{"a request that was long under way", "SET alive 1", 1, leases.Limitation},
		{"a connection", "HELLO 3", 39, leases.Limitation},
	} {
		r := newRun("n1").hold(0, "A", 1, "n1")
		r.Events[2].Expires = time.Hour
		if c.command != "" {
			r.add(40, checker.Event{Kind: checker.Request, Client: "A", Node: "n1", Server: "n1/0", Command: c.command, Sent: time.Duration(c.sent * float64(time.Second))})
		}
		r.add(40, checker.Event{Kind: checker.Request, Client: "B", Node: "n1", Server: "n1/0", Command: "DEL lock", Sent: 40 * time.Second}).
			add(40, checker.Event{Kind: checker.State, Client: "B", Node: "n1", Server: "n1/0", Cause: checker.ByCommand}).
			add(41, checker.Event{Kind: checker.End})
		list := leases.Judge(r.History, leases.Lock{Tags: []string{"forever"}})
		i := slices.IndexFunc(list, func(f leases.Finding) bool { return f.Anomaly == checker.ForeignRelease })
		got := leases.Outcome("")
		if i >= 0 {
			got = list[i].Outcome
		}
		if got != c.want {
			t.Errorf("%s: findings %+v, want a foreign-release that is a %v", c.name, list, c.want)
		}
	}
}

// TestReasons checks that the reason of a bug names the request that led to it.
func TestReasons(t *testing.T) {
	invoke := func(client string, op checker.Op, call int) checker.Event {
		return checker.Event{Kind: checker.Invoke, Client: client, Op: op, Call: call}
	}
	result := func(client string, op checker.Op, call int, is checker.Result) checker.Event {
		return checker.Event{Kind: checker.Return, Client: client, Op: op, Call: call, Result: is}
	}
	set := checker.Event{Kind: checker.Request, Client: "B", Node: "n1", Server: "n1/0", Command: "SET lock B1 NX PX 30000"}
	short := newRun("n1").hold(0, "A", 1, "n1")
	short.Events[2].Expires = 4 * time.Second
	again := func(held bool) *run {
		r := newRun("n1").hold(0, "A", 1, "n1").add(5, invoke("A", checker.TryAcquire, 2))
		if held {
			r.add(5, checker.Event{Kind: checker.Held, Client: "A", Node: "n1", Direction: "request", Command: "SET lock A1 NX"})
		}
		return r.add(8, result("A", checker.TryAcquire, 2, checker.Unknown)).add(9, checker.Event{Kind: checker.End})
	}
	// A crashes while its key, which it took with a lease or without one, has no time to live.
	endless := func(commands ...string) *run {
		r := newRun("n1").add(0, invoke("A", checker.Acquire, 1))
		for i, command := range commands {
			var expires time.Duration
			if strings.Contains(command, "PX") {
				expires = 30 * time.Second
			}
			r.add(float64(i), checker.Event{Kind: checker.Request, Client: "A", Node: "n1", Server: "n1/0", Command: command})
			r.add(float64(i), checker.Event{Kind: checker.State, Client: "A", Node: "n1", Server: "n1/0", Owner: "A", Value: "A1", Cause: checker.ByCommand, Expires: expires})
			r.add(float64(i), checker.Event{Kind: checker.Reply, Client: "A", Node: "n1", Command: command, Reply: "OK"})
		}
		return r.add(3, checker.Event{Kind: checker.Crash, Client: "A"}).add(4, invoke("B", checker.Acquire, 2)).
			add(200, result("B", checker.Acquire, 2, checker.Fail)).add(201, checker.Event{Kind: checker.End})
	}
	for name, c := range map[string]struct {
		run     *run
		tag     string
		anomaly checker.Anomaly
		outcome leases.Outcome
		reason  string
	}{
		"silence": {
			newRun("n1").hold(0, "A", 1, "n1").add(1, invoke("B", checker.Acquire, 2)).add(1.5, set).
				add(1.5, checker.Event{Kind: checker.Reply, Client: "B", Node: "n1", Command: set.Command, Reply: "(nil)"}).
				add(2, invoke("A", checker.Release, 3)).gone(2, "n1", checker.ByCommand).add(2, result("A", checker.Release, 3, checker.OK)).
				add(200, result("B", checker.Acquire, 2, checker.Fail)).add(201, checker.Event{Kind: checker.End}),
			"lease", checker.Unavailable, leases.Bug,
			"the lock was free from 2.000s, and B, which had asked at 1.500s, sent no request before 200.000s",
		},
		"a lease that is too short": {
			short.gone(4, "n1", checker.ByExpiry).hold(5, "B", 2, "n1").add(6, checker.Event{Kind: checker.End}),
			"lease", checker.Overlap, leases.Bug,
			"A's SET lock A1 NX PX 30000 at 0.000s gave the key 4.000s and not 30.000s",
		},
		"success without a key": {
			newRun("n1").hold(0, "A", 1, "n1").add(1, invoke("B", checker.Acquire, 2)).add(2, set).
				add(3, result("B", checker.Acquire, 2, checker.OK)).add(6, checker.Event{Kind: checker.End}),
			"lease", checker.Overlap, leases.Bug,
			"B's acquire succeeded at 3.000s, though A had the key until 30.000s; the last request of B was SET lock B1 NX PX 30000, not answered",
		},
		"a key without a lease": {
			endless("SETNX lock A1"), "lease", checker.StuckLock, leases.Bug,
			"A's SETNX lock A1 at 0.000s gave the key no time to live: set it in the command that takes the key",
		},
		"a lease that was taken away": {
			endless("SET lock A1 NX PX 30000", "SET lock A1 XX"), "lease", checker.StuckLock, leases.Bug,
			"A's SET lock A1 XX at 1.000s took the key's time to live away",
		},
		"reentrant":                           {again(false), "reentrant", checker.SelfDeadlock, leases.Bug, "A had the lock, which is reentrant, and its try at 5.000s did not succeed"},
		"reentrant, and its request was held": {again(true), "reentrant", checker.SelfDeadlock, leases.Limitation, "the acquire did not reach the server: a request of A was held"},
	} {
		list := leases.Judge(c.run.History, leases.Lock{Tags: []string{c.tag}})
		i := slices.IndexFunc(list, func(f leases.Finding) bool { return f.Anomaly == c.anomaly })
		if i < 0 || list[i].Outcome != c.outcome || !strings.Contains(list[i].Reason, c.reason) {
			t.Errorf("%s: findings %+v, want the %s %s with %q", name, list, c.outcome, c.anomaly, c.reason)
		}
	}
}
