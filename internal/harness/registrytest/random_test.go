package registrytest_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/oracle"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/all"
)

// drawScript draws a script for a strategy: any steps that the language allows,
// with faults or without.
func drawScript(t *rapid.T, strategy strategies.Strategy, faulty bool) *scenarios.Script {
	nodes := max(1, strategy.Nodes)
	clients := []string{"A", "B", "C"}[:rapid.IntRange(1, 3).Draw(t, "clients")]
	replicas := 0
	if faulty {
		replicas = rapid.IntRange(0, 2).Draw(t, "replicas")
	}
	lines := []string{
		"ttl 2s", "clients " + strings.Join(clients, " "), fmt.Sprint("nodes ", nodes), fmt.Sprint("replicas ", replicas),
		"patience 1.5ttl", "read-timeout 0.2ttl",
	}
	if faulty {
		lines = append(lines, fmt.Sprint("retries ", rapid.IntRange(0, 2).Draw(t, "retries")))
	}
	client := rapid.SampledFrom(clients)
	node := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint("n", rapid.IntRange(1, nodes).Draw(t, "node")) })
	span := rapid.SampledFrom([]string{"1ms", "0.1ttl", "0.4ttl", "1.1ttl"})
	pick := func(words ...string) string { return rapid.SampledFrom(words).Draw(t, "word") }

	calm := func() string {
		c := client.Draw(t, "client")
		switch rapid.IntRange(0, 2).Draw(t, "calm") {
		case 0:
			return fmt.Sprintf("%s rounds %d work %s", c, rapid.IntRange(1, 3).Draw(t, "rounds"), pick("1ms", "50ms", "0.2ttl"))
		case 1:
			return fmt.Sprintf("%s rounds 1", strings.Join(clients, " "))
		}
		return "wait " + span.Draw(t, "wait")
	}
	past := map[string]bool{} // what resume, restart and join need to have happened
	stormy := func() string {
		c, n := client.Draw(t, "client"), node.Draw(t, "node")
		begin := pick("", "begin ")
		switch rapid.IntRange(0, 28).Draw(t, "stormy") {
		case 0, 1, 2:
			return begin + c + pick(" acquire", " try", " acquire within 0.5ttl")
		case 3, 4:
			return begin + c + " release"
		case 5:
			return begin + c + pick(" write", " extend", " work 0.3ttl", " rounds 2 work 0.1ttl")
		case 6:
			return "wait " + span.Draw(t, "wait")
		case 7:
			return fmt.Sprintf("await %s %s within 0.5ttl", c, pick("done", "holding", "replies 1"))
		case 8:
			past["pause"+c] = true
			return c + " pause"
		case 9:
			if past["pause"+c] {
				return c + " resume"
			}
		case 10:
			past["crash"+c] = true
			return c + " crash"
		case 11:
			if past["crash"+c] {
				return c + " restart"
			}
		case 12:
			return fmt.Sprintf("%s clock %s", c, pick("+1.5ttl", "-1.5ttl"))
		case 13:
			past["hold"+c] = true
			return fmt.Sprintf("hold %s %s any times %d", c, pick("before", "after"), rapid.IntRange(1, 3).Draw(t, "times"))
		case 14:
			if past["hold"+c] {
				return fmt.Sprintf("pass %s%s", c, pick("", " once", " once on "+n, " on "+n))
			}
		case 15:
			return fmt.Sprintf("%s %s %s any times 1", pick("drop", "reset"), c, pick("before", "after"))
		case 16:
			return fmt.Sprintf("delay %s %s any by %s times 2", c, pick("before", "after"), span.Draw(t, "by"))
		case 17:
			return fmt.Sprintf("latency %s %s 20ms jitter 15ms", c, n)
		case 18:
			return fmt.Sprintf("partition %s from %s", c, n)
		case 19:
			return "heal"
		case 20:
			past["down"+n] = true
			return n + " crash"
		case 21:
			if past["down"+n] {
				return n + " restart" + pick("", " empty")
			}
		case 22:
			return fmt.Sprintf("%s %s", n, pick(append(operations(), "clock +1.1ttl", "clock -0.5ttl", "drift 1.5", "pause", "resume")...))
		case 23:
			if replicas > 0 {
				return fmt.Sprintf("%s replication %s", n, pick("stop", "start", "delay 0.1ttl", "delay 0.1ttl jitter 0.1ttl",
					"bandwidth 1KB/ttl", "timeout 0.2ttl", "reset"))
			}
		case 24:
			// A second failover needs a second replica, and so does one after
			// the node crashed.
			if replicas > 0 && !past["failover"+n] && !past["down"+n] {
				past["failover"+n] = true
				return n + " failover"
			}
		case 25:
			return fmt.Sprintf("bandwidth %s %s %s", c, n, pick("500B/ttl", "2KB/s", "unlimited"))
		case 26:
			return fmt.Sprintf("timeout %s from %s after %s", c, n, span.Draw(t, "after"))
		case 27, 28:
			return c + " cancel"
		}
		return "wait 10ms"
	}
	for range rapid.IntRange(1, 14).Draw(t, "steps") {
		if !faulty {
			lines = append(lines, calm())
			continue
		}
		line := stormy()
		if strings.HasSuffix(line, "resume") && strings.HasPrefix(line, "n") && !past["nodepause"+line] {
			line = "wait 10ms"
		}
		if strings.HasPrefix(line, "n") && strings.HasSuffix(line, "pause") {
			past["nodepause"+strings.Replace(line, "pause", "resume", 1)] = true
		}
		if _, err := scenarios.Parse("random.txt", []byte(strings.Join(append(lines, line, "expect none", ""), "\n"))); err != nil {
			line = "wait 10ms" // nobody could do that now
		}
		lines = append(lines, line)
	}
	source := strings.Join(append(lines, "expect none", ""), "\n")
	script, err := scenarios.Parse("random.txt", []byte(source))
	if err != nil {
		t.Fatalf("%v\n%s", err, source)
	}
	return script
}

// Whatever a script does to a strategy, nothing crashes or hangs, the same cell
// gives the same bytes, every witness proves what it says, and some promises
// hold. Of a strategy that varies nothing is promised in scripts that leave its
// verdict to the order of one instant, as these may.
func TestRandomScripts(t *testing.T) {
	registry := withDrawing(t)
	rapid.Check(t, func(rt *rapid.T) {
		strategy, _ := registry.Lookup(rapid.SampledFrom(registry.Names()).Draw(rt, "strategy"))
		script := drawScript(rt, strategy, true)
		cell := harness.Cell{Strategy: strategy, Script: script, Seed: rapid.Uint64().Draw(rt, "seed")}
		first, second := harness.Play(t, cell), harness.Play(t, cell)
		if first.Status == harness.Error {
			rt.Fatalf("%s\n%s", first.Reason, script.Format())
		}
		if a, b := encode(t, first.History), encode(t, second.History); strategy.HistoryVaries == "" && !bytes.Equal(a, b) {
			rt.Fatalf("two histories, which differ from line %s\n%s", difference(a, b), script.Format())
		}
		for _, w := range first.Verdict.Witnesses {
			if err := oracle.Witness(first.History, w); err != nil {
				rt.Fatalf("%v\n%s", err, script.Format())
			}
		}
		found := first.Verdict.Anomalies()
		if strategy.Name == "set-nx-px-lua" && slices.Contains(found, checker.ForeignRelease) {
			rt.Fatalf("a release that compares and deletes in one step removed a stranger's key\n%s", script.Format())
		}
		if strategy.Name == "fenced" && slices.Contains(found, checker.StaleWrite) && !losesCounter(script) {
			rt.Fatalf("the resource took a write with an old token\n%s", script.Format())
		}
		disorder := slices.Contains(found, checker.TokenOrder) || slices.Contains(found, checker.RefusedWrite)
		if disorder && strategy.Name == "fenced" && !losesCounter(script) {
			rt.Fatalf("a token that is drawn in the step that acquires came out of order\n%s", script.Format())
		}
	})
}

// losesCounter reports whether a script does something that makes the counter of
// fencing tokens go back.
func losesCounter(script *scenarios.Script) bool {
	text := string(script.Format())
	return slices.ContainsFunc([]string{"failover", "flush", "restart empty"}, func(word string) bool {
		return strings.Contains(strings.ReplaceAll(text, "script-flush", ""), word)
	})
}

// Without faults, and with work shorter than the lease, nothing shows anything.
func TestCalmScripts(t *testing.T) {
	registry := all.Registry()
	rapid.Check(t, func(rt *rapid.T) {
		strategy, _ := registry.Lookup(rapid.SampledFrom(registry.Names()).Draw(rt, "strategy"))
		script := drawScript(rt, strategy, false)
		outcome := harness.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: rapid.Uint64().Draw(rt, "seed")})
		if outcome.Status != harness.Held {
			rt.Fatalf("%s %v\n%s\n%s", outcome.Status, outcome.Verdict.Witnesses, outcome.Reason, script.Format())
		}
	})
}

// A script of many clients is as deterministic as one of few.
func TestManyClients(t *testing.T) {
	script, err := scenarios.Parse("many.txt", []byte("clients A B C D E F G H\nA B C D E F G H rounds 3 work 20ms\nexpect none\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, strategy := range all.Registry().All() {
		cell := harness.Cell{Strategy: strategy, Script: script, Seed: 7, TTL: 10 * time.Second}
		first, second := harness.Play(t, cell), harness.Play(t, cell)
		if differs := differing(t, strategy, first, second); differs != "" {
			t.Errorf("%s: two %s", strategy.Name, differs)
		}
	}
}

// Faults that come to a client while its own timers end, 8 ms before its deadline
// for a node, which is how long go-redis pauses, don't leave it to a select which
// of the two it sees.
func TestTimersOfOneInstant(t *testing.T) {
	for _, steps := range []string{
		"hold A before any\nbegin A try\ntimeout A after 42ms",
		"hold A before any\nbegin A try\npartition A\nwait 42ms\nheal",
		"drop A before any times 1\nbegin A try\nA pause\nwait 42ms\nA resume",
		"timeout A after 1ms\nwait 2ms\nbegin A try\nwait 1ms",
	} {
		for _, patience := range []string{"10ms", "0.2ttl"} {
			script, err := scenarios.Parse("ties.txt", []byte("ttl 1s\nclients A\nretries 2\nread-timeout "+patience+"\n"+steps+"\nA release\nexpect none\n"))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"redlock", "redsync"} {
				strategy, _ := all.Registry().Lookup(name)
				cell := harness.Cell{Strategy: strategy, Script: script, Seed: 1}
				first := encode(t, harness.Play(t, cell).History)
				for range 8 {
					if again := encode(t, harness.Play(t, cell).History); !bytes.Equal(first, again) {
						t.Errorf("%s: two histories, which differ from line %s\n%s", name, difference(first, again), script.Format())
						break
					}
				}
			}
		}
	}
}

// operations returns the faults of nodes that are an operator's commands, without the nodes.
func operations() (list []string) {
	for _, d := range faults.Definitions() {
		for _, args := range d.RaceFree {
			if d.Group == "node" {
				list = append(list, strings.TrimSpace(d.Word+" "+args))
			}
		}
	}
	return list
}
