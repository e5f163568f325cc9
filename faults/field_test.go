package faults_test

import (
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults"
)

func TestString(t *testing.T) {
	abc := []string{"A", "B", "C"}
	seconds := func(n time.Duration) faults.Span { return faults.Span{Abs: n * time.Second} }
	ttls := func(n float64) faults.Span { return faults.Span{TTLs: n} }
	for _, c := range []struct {
		fault faults.Fault
		want  string
	}{
		{faults.PauseClient{Client: "A"}, "A pause"},
		{faults.ResumeClient{Client: "A"}, "A resume"},
		{faults.CrashClient{Client: "A"}, "A crash"},
		{faults.RestartClient{Client: "A"}, "A restart"},
		{faults.CancelClient{Client: "A"}, "A cancel"},
		{faults.ClientClock{Client: "A", By: ttls(1.1)}, "A clock +1.1ttl"},
		{faults.ClientClock{Client: "A", By: ttls(-2)}, "A clock -2ttl"},
		{faults.ClientClock{Client: "A"}, "A clock +0s"},

		{faults.Latency{Base: seconds(1)}, "latency 1s"},
		{faults.Latency{Clients: abc[:1], Nodes: []string{"n1", "n2"}, Base: seconds(1), Jitter: ttls(0.1)}, "latency A n1 n2 1s jitter 0.1ttl"},
		{faults.Bandwidth{Rate: faults.Rate{Bytes: 200, Per: ttls(1)}}, "bandwidth 200B/ttl"},
		{faults.Bandwidth{Clients: abc[:1], Nodes: []string{"n1", "n2"}}, "bandwidth A n1 n2 unlimited"},
		{faults.Timeout{Clients: abc, After: ttls(0.5)}, "timeout A B C after 0.5ttl"},
		{faults.Timeout{Clients: abc[:1], Nodes: []string{"n1", "n2"}, After: seconds(1)}, "timeout A from n1 n2 after 1s"},
		{faults.Partition{Clients: abc}, "partition A B C"},
		{faults.Partition{Clients: abc[:1], Nodes: []string{"n1", "n2"}}, "partition A from n1 n2"},
		{faults.Heal{}, "heal"},
		{faults.Heal{Clients: abc, Nodes: []string{"n1"}}, "heal A B C from n1"},
		{faults.Heal{Nodes: []string{"n1"}}, "heal from n1"},

		{faults.PartitionNodes{Nodes: []string{"n1", "n2"}}, "partition n1 n2"},
		{faults.PartitionNodes{Nodes: []string{"n1"}, From: []string{"n2", "n3"}}, "partition n1 from n2 n3"},
		{faults.HealNodes{Nodes: []string{"n1"}}, "heal n1"},
		{faults.HealNodes{Nodes: []string{"n1"}, From: []string{"n2"}}, "heal n1 from n2"},

		{faults.CrashNode{Node: "n1"}, "n1 crash"},
		{faults.RestartNode{Node: "n1"}, "n1 restart"},
		{faults.RestartNode{Node: "n1", Empty: true}, "n1 restart empty"},
		{faults.PauseNode{Node: "n1"}, "n1 pause"},
		{faults.ResumeNode{Node: "n1"}, "n1 resume"},
		{faults.Failover{Node: "n1"}, "n1 failover"},
		{faults.Split{Node: "n1", Clients: abc[1:]}, "n1 split B C"},
		{faults.Join{Node: "n1"}, "n1 join"},
		{faults.NodeClock{Node: "n1", By: seconds(-90)}, "n1 clock -1m30s"},
		{faults.NodeDrift{Node: "n1", Rate: 1.5}, "n1 drift 1.5"},
		{faults.Flush{Node: "n1"}, "n1 flush"},
		{faults.Evict{Node: "n1"}, "n1 evict"},
		{faults.ScriptFlush{Node: "n1"}, "n1 script-flush"},
		{faults.Full{Node: "n1/1"}, "n1/1 full"},
		{faults.Full{Node: "n1", Off: true}, "n1 full off"},
		{faults.Replication{Node: "n1", Mode: faults.ReplicationStop}, "n1 replication stop"},
		{faults.Replication{Node: "n1", Mode: faults.ReplicationStart}, "n1 replication start"},
		{faults.Replication{Node: "n1", Mode: faults.ReplicationDelay, Delay: seconds(2)}, "n1 replication delay 2s"},
		{faults.Replication{Node: "n1", Mode: faults.ReplicationDelay, Delay: seconds(2), Jitter: ttls(0.1)}, "n1 replication delay 2s jitter 0.1ttl"},
		{faults.Replication{Node: "n1", Mode: faults.ReplicationBandwidth, Rate: faults.Rate{Bytes: 2000, Per: seconds(1)}}, "n1 replication bandwidth 2KB/s"},
		{faults.Replication{Node: "n1", Mode: faults.ReplicationTimeout, After: ttls(0.5)}, "n1 replication timeout 0.5ttl"},
		{faults.Replication{Node: "n1", Mode: faults.ReplicationReset}, "n1 replication reset"},

		{faults.Hold{Match: faults.Match{Clients: abc, Way: faults.Before, Commands: []string{"GETSET"}}}, "hold A B C before GETSET"},
		{faults.Hold{Match: faults.Match{Way: faults.Messages}, Times: 1}, "hold messages times 1"},
		{faults.Hold{Match: faults.Match{Way: faults.After, Nodes: []string{faults.Quorum}}, Times: 2}, "hold after any on quorum times 2"},
		{faults.Delay{Match: faults.Match{Clients: abc[:1], Way: faults.After, Commands: []string{"SETNX", "SET"}, Nodes: []string{"n1"}}, By: ttls(2), Times: 1}, "delay A after SETNX SET by 2ttl on n1 times 1"},
		{faults.Drop{Match: faults.Match{Way: faults.Before, Commands: []string{"PEXPIRE"}}}, "drop before PEXPIRE"},
		{faults.Drop{Match: faults.Match{Way: faults.Messages, OrNone: true}}, "drop messages or none"},
		{faults.Delay{Match: faults.Match{Way: faults.After, Nodes: []string{"n1"}, OrNone: true}, By: ttls(2), Times: 3}, "delay after any by 2ttl on n1 times 3 or none"},
		{faults.Reset{Match: faults.Match{Clients: abc[:1], Way: faults.Before}}, "reset A before any"},
		{faults.Pass{Clients: abc}, "pass A B C"},
		{faults.Pass{Clients: abc[:1], Once: true}, "pass A once"},
		{faults.Clear{}, "clear"},
		{faults.Clear{Clients: abc}, "clear A B C"},
	} {
		if got := c.fault.String(); got != c.want {
			t.Errorf("%#v: got %q, want %q", c.fault, got, c.want)
		}
	}
}
