package scenarios_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/scenarios"
)

func parse(t *testing.T, src string) *scenarios.Script {
	t.Helper()
	script, err := scenarios.Parse("x.txt", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return script
}

func TestErrors(t *testing.T) {
	text, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, cases, _ := strings.Cut(string(text), "=== ")
	for _, c := range strings.Split(cases, "\n=== ") {
		name, body, _ := strings.Cut(c, "\n")
		src, want, _ := strings.Cut(body, "---\n")
		want = strings.TrimSpace(want)
		t.Run(name, func(t *testing.T) {
			refused(t, src, want)
		})
	}
}

// These can't stand in a file of lines of text.
func TestHostileText(t *testing.T) {
	const good = "clients A\nA acquire\nexpect none\n"
	for _, c := range []struct{ name, src, want string }{
		{"NUL", good + "A\x00 acquire", "x.txt:4:2: control character U+0000: scripts are plain text"},
		{"escape in a comment", "# \x1b[31m\n" + good, "x.txt:1:3: control character U+001B: scripts are plain text"},
		{"mark of direction in a comment", good + "# a\u202eb\n", "x.txt:4:4: control character U+202E: scripts are plain text"},
		{"carriage return within a line", "clients\rA", "x.txt:1:8: control character U+000D: scripts are plain text"},
		{"not UTF-8", "clients Ä \xff", "x.txt:1:11: this is not UTF-8: save the script as UTF-8 text"},
		{"long line", "# " + strings.Repeat("x", 9_999), "x.txt:1:1: the line is longer than 10000 bytes"},
		{"large file", strings.Repeat("#\n", 1<<19) + "#", "x.txt:1:1: the script is larger than 1048576 bytes"},
		{"long word", strings.Repeat("x", 5000), `x.txt:1:1: no line begins with "` + strings.Repeat("x", 40) + `…"`},
		{"verb of a format", "clients A\nA %s", `x.txt:2:3: "%s" stands where what the client does should`},
		{"empty", "", "x.txt:1:1: the script declares no clients: add a line such as clients A B"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, c.src, c.want) })
	}
}

// A script has the name of its file, which must be text.
func TestHostileFileName(t *testing.T) {
	for name, want := range map[string]string{
		"s/\xff\xfe.txt":     `s/��.txt:1:1: invalid file name "\xff\xfe.txt": must be UTF-8 without control characters: rename the file`,
		"a\x1b[31mb.txt":     `a␛[31mb.txt:1:1: invalid file name "a\x1b[31mb.txt": must be UTF-8 without control characters: rename the file`,
		"two\nlines.txt":     `two␊lines.txt:1:1: invalid file name "two\nlines.txt": must be UTF-8 without control characters: rename the file`,
		"d\xff/\u202e.txt":   `d�/�.txt:1:1: invalid file name "\u202e.txt": must be UTF-8 without control characters: rename the file`,
		"d\xff\n/a`|[é].txt": "",
	} {
		_, err := scenarios.Parse(name, []byte("clients A\nA acquire\nexpect none\n"))
		if got := fmt.Sprint(err); want != "" && got != want || want == "" && err != nil {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func refused(t *testing.T, src, want string) {
	t.Helper()
	script, err := scenarios.Parse("x.txt", []byte(src))
	if err == nil {
		t.Fatalf("it was accepted, as\n%s", script.Format())
	}
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	var syntax *scenarios.SyntaxError
	if !errors.As(err, &syntax) || syntax.File != "x.txt" {
		t.Errorf("%#v is not a SyntaxError about x.txt", err)
	}
}

func TestTolerated(t *testing.T) {
	want := parse(t, "# doc\nclients A\n\nA acquire\nexpect none\n")
	for name, src := range map[string]string{
		"CRLF":            "# doc\r\nclients A\r\n\r\nA acquire\r\nexpect none\r\n",
		"tabs and blanks": "# doc\n \tclients\tA  \n\n  A   acquire\t\nexpect none\n",
		"byte order mark": "\ufeff# doc\nclients A\n\nA acquire\nexpect none\n",
		"no last newline": "# doc\nclients A\n\nA acquire\nexpect none",
	} {
		if got := parse(t, src); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%s", name, got.Format())
		}
	}
}

func TestSettings(t *testing.T) {
	type settings = scenarios.Settings
	with := func(change func(*settings)) settings {
		s := scenarios.Defaults()
		s.Clients = []string{"A", "B"}
		change(&s)
		return s
	}
	for line, want := range map[string]settings{
		"":                          with(func(*settings) {}),
		"ttl 5s":                    with(func(s *settings) { s.TTL = 5 * time.Second }),
		"nodes 5":                   with(func(s *settings) { s.Nodes = 5 }),
		"replicas 2":                with(func(s *settings) { s.Replicas = 2 }),
		"elsewhere x-lock @x":       with(func(s *settings) { s.Elsewhere = []scenarios.Selector{"x-lock", "@x"} }),
		"for redlock set-* @x":      with(func(s *settings) { s.For = []scenarios.Selector{"redlock", "set-*", "@x"} }),
		"grace 0s":                  with(func(s *settings) { s.Grace = faults.Span{} }),
		"bound 1.5ttl":              with(func(s *settings) { s.Bound = faults.Span{TTLs: 1.5} }),
		"patience 1m":               with(func(s *settings) { s.Patience = faults.Span{Abs: time.Minute} }),
		"retries 3":                 with(func(s *settings) { s.Retries = 3 }),
		"read-timeout 2ttl":         with(func(s *settings) { s.ReadTimeout = faults.Span{TTLs: 2} }),
		"context-timeout off":       with(func(s *settings) { s.IgnoreContext = true }),
		"context-timeout on":        with(func(*settings) {}),
		"honour validity":           with(func(s *settings) { s.HonourValidity = true }),
		"thread 7 A B":              with(func(s *settings) { s.Threads = map[string]string{"A": "7", "B": "7"} }),
		"thread 7 B\nthread x-_. A": with(func(s *settings) { s.Threads = map[string]string{"A": "x-_.", "B": "7"} }),
	} {
		got := parse(t, line+"\nclients A B\nA acquire\nexpect none\n").Settings
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, want %+v", line, got, want)
		}
	}
}

// Each line is given as it is written back; what it means is what matters.
func TestSteps(t *testing.T) {
	a, ab := []string{"A"}, []string{"A", "B"}
	second, ttls := faults.Span{Abs: time.Second}, faults.Span{TTLs: 1.1}
	match := func(way faults.Way, commands ...string) faults.Match {
		return faults.Match{Clients: ab, Way: way, Commands: commands}
	}
	for line, want := range map[string]scenarios.Action{
		"A B acquire":               scenarios.Call{Clients: ab, Op: "acquire"},
		"begin A acquire":           scenarios.Call{Clients: a, Op: "acquire", Begin: true},
		"A acquire within 1.1ttl":   scenarios.Call{Clients: a, Op: "acquire", Within: ttls},
		"A try":                     scenarios.Call{Clients: a, Op: "try"},
		"A release":                 scenarios.Call{Clients: a, Op: "release"},
		"A extend":                  scenarios.Call{Clients: a, Op: "extend"},
		"A work 1s":                 scenarios.Work{Clients: a, For: second},
		"A write":                   scenarios.Write{Clients: a},
		"A B rounds 5":              scenarios.Rounds{Clients: ab, Times: 5},
		"begin A rounds 5 work 1s":  scenarios.Rounds{Clients: a, Times: 5, Work: second, Begin: true},
		"await A B done":            scenarios.Await{Clients: ab, State: scenarios.AwaitDone},
		"await A holding within 1s": scenarios.Await{Clients: a, State: scenarios.AwaitHolding, Within: second},
		"await A replies 2":         scenarios.Await{Clients: a, State: scenarios.AwaitReplies, Count: 2},
		"wait 1s":                   scenarios.Wait{For: second},
		"measure recovery-1":        scenarios.Measure{Name: "recovery-1"},

		"A pause":       scenarios.Inject{Fault: faults.PauseClient{Client: "A"}},
		"A crash":       scenarios.Inject{Fault: faults.CrashClient{Client: "A"}},
		"A cancel":      scenarios.Inject{Fault: faults.CancelClient{Client: "A"}},
		"A clock +1s":   scenarios.Inject{Fault: faults.ClientClock{Client: "A", By: second}},
		"A clock -1s":   scenarios.Inject{Fault: faults.ClientClock{Client: "A", By: faults.Span{Abs: -time.Second}}},
		"latency 1s":    scenarios.Inject{Fault: faults.Latency{Base: second}},
		"partition A B": scenarios.Inject{Fault: faults.Partition{Clients: ab}},
		"bandwidth A B n1 quorum 200B/ttl": scenarios.Inject{Fault: faults.Bandwidth{
			Clients: ab, Nodes: []string{"n1", "quorum"}, Rate: faults.Rate{Bytes: 200, Per: faults.Span{TTLs: 1}}}},
		"bandwidth 2KB/s":                scenarios.Inject{Fault: faults.Bandwidth{Rate: faults.Rate{Bytes: 2000, Per: second}}},
		"bandwidth unlimited":            scenarios.Inject{Fault: faults.Bandwidth{}},
		"timeout A B after 1s":           scenarios.Inject{Fault: faults.Timeout{Clients: ab, After: second}},
		"timeout A from n1 after 1.1ttl": scenarios.Inject{Fault: faults.Timeout{Clients: a, Nodes: []string{"n1"}, After: ttls}},
		"heal from n1":                   scenarios.Inject{Fault: faults.Heal{Nodes: []string{"n1"}}},
		"latency A B n1 quorum 1s jitter 1.1ttl": scenarios.Inject{Fault: faults.Latency{
			Clients: ab, Nodes: []string{"n1", "quorum"}, Base: second, Jitter: ttls}},

		"partition n1":             scenarios.Inject{Fault: faults.PartitionNodes{Nodes: []string{"n1"}}},
		"partition n1 from n2":     scenarios.Inject{Fault: faults.PartitionNodes{Nodes: []string{"n1"}, From: []string{"n2"}}},
		"partition n2 from quorum": scenarios.Inject{Fault: faults.PartitionNodes{Nodes: []string{"n2"}, From: []string{"quorum"}}},
		"heal n1 quorum":           scenarios.Inject{Fault: faults.HealNodes{Nodes: []string{"n1", "quorum"}}},
		"heal n1 from n2":          scenarios.Inject{Fault: faults.HealNodes{Nodes: []string{"n1"}, From: []string{"n2"}}},
		"heal":                     scenarios.Inject{Fault: faults.Heal{}},

		"n1 crash":                scenarios.Inject{Fault: faults.CrashNode{Node: "n1"}},
		"quorum pause":            scenarios.Inject{Fault: faults.PauseNode{Node: "quorum"}},
		"n1 failover":             scenarios.Inject{Fault: faults.Failover{Node: "n1"}},
		"n1 split A B":            scenarios.Inject{Fault: faults.Split{Node: "n1", Clients: ab}},
		"n1 clock +1.1ttl":        scenarios.Inject{Fault: faults.NodeClock{Node: "n1", By: ttls}},
		"n1 drift 1.5":            scenarios.Inject{Fault: faults.NodeDrift{Node: "n1", Rate: 1.5}},
		"n1 flush":                scenarios.Inject{Fault: faults.Flush{Node: "n1"}},
		"n1 evict":                scenarios.Inject{Fault: faults.Evict{Node: "n1"}},
		"n1 script-flush":         scenarios.Inject{Fault: faults.ScriptFlush{Node: "n1"}},
		"n1 replication stop":     scenarios.Inject{Fault: faults.Replication{Node: "n1", Mode: faults.ReplicationStop}},
		"n1 replication start":    scenarios.Inject{Fault: faults.Replication{Node: "n1", Mode: faults.ReplicationStart}},
		"n1 replication delay 1s": scenarios.Inject{Fault: faults.Replication{Node: "n1", Mode: faults.ReplicationDelay, Delay: second}},
		"n1 replication delay 1s jitter 1.1ttl": scenarios.Inject{Fault: faults.Replication{
			Node: "n1", Mode: faults.ReplicationDelay, Delay: second, Jitter: ttls}},
		"n1 replication bandwidth 1KB/ttl": scenarios.Inject{Fault: faults.Replication{
			Node: "n1", Mode: faults.ReplicationBandwidth, Rate: faults.Rate{Bytes: 1000, Per: faults.Span{TTLs: 1}}}},
		"n1 replication timeout 1.1ttl": scenarios.Inject{Fault: faults.Replication{Node: "n1", Mode: faults.ReplicationTimeout, After: ttls}},
		"n1 replication reset":          scenarios.Inject{Fault: faults.Replication{Node: "n1", Mode: faults.ReplicationReset}},

		"hold A B before SETNX SET":  scenarios.Inject{Fault: faults.Hold{Match: match(faults.Before, "SETNX", "SET")}},
		"hold A B after any times 2": scenarios.Inject{Fault: faults.Hold{Match: match(faults.After), Times: 2}},
		"drop A B messages":          scenarios.Inject{Fault: faults.Drop{Match: match(faults.Messages)}},
		"drop before PEXPIRE on n1": scenarios.Inject{Fault: faults.Drop{
			Match: faults.Match{Way: faults.Before, Commands: []string{"PEXPIRE"}, Nodes: []string{"n1"}}}},
		"reset A B before JSON.SET":    scenarios.Inject{Fault: faults.Reset{Match: match(faults.Before, "JSON.SET")}},
		"hold A B before GEORADIUS_RO": scenarios.Inject{Fault: faults.Hold{Match: match(faults.Before, "GEORADIUS_RO")}},
		"delay A B after SET by 1s times 1": scenarios.Inject{Fault: faults.Delay{
			Match: match(faults.After, "SET"), By: second, Times: 1}},
		"clear":   scenarios.Inject{Fault: faults.Clear{}},
		"clear A": scenarios.Inject{Fault: faults.Clear{Clients: a}},
	} {
		rest := "\nexpect none\n"
		if name, ok := strings.CutPrefix(line, "measure "); ok {
			rest = "\nstop " + name + rest
		}
		script := parse(t, "clients A B\nnodes 2\nreplicas 1\n"+line+rest)
		if got := script.Steps[0].Do; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %#v, want %#v", line, got, want)
		}
		if got := script.Steps[0].Do.String(); got != line {
			t.Errorf("%q is written back as %q", line, got)
		}
	}
}

// Lines that need others before them, and words that can stand in another
// order than they are written back.
func TestStepsAfterOthers(t *testing.T) {
	script := parse(t, `
clients A B
nodes 5
replicas 1
A B pause
A B resume
A crash
A restart
n1 quorum crash
n1 n3 restart empty
n2 pause
n2 resume
n2 split B
n2 join
measure x
stop x
delay A after SET on n1 times 1 by 1s
hold before any
pass A once
pass A on n2 n3 once
pass B A once on quorum
pass B on n5
pass B
await B held on n1 quorum within 1s
await B held
expect none
`)
	want := []string{
		"A pause", "B pause", "A resume", "B resume", "A crash", "A restart",
		"n1 crash", "quorum crash", "n1 restart empty", "n3 restart empty", "n2 pause", "n2 resume",
		"n2 split B", "n2 join", "measure x", "stop x",
		"delay A after SET by 1s on n1 times 1", "hold before any", "pass A once", "pass A once on n2 n3", "pass B A once on quorum", "pass B on n5", "pass B", "await B held on n1 quorum within 1s", "await B held",
	}
	var got []string
	for _, step := range script.Steps {
		got = append(got, step.Do.String())
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if script.Steps[0].Line != 5 || script.Steps[1].Line != 5 || script.Steps[2].Line != 6 {
		t.Error("steps don't carry their lines")
	}
}

func TestExpect(t *testing.T) {
	overlap := []checker.Anomaly{checker.Overlap}
	for line, want := range map[string]scenarios.Expect{
		"expect none":                       {},
		"expect overlap":                    {Anomalies: overlap},
		"expect overlap  # why":             {Anomalies: overlap, Reason: "why"},
		"expect ghost overlap":              {Anomalies: []checker.Anomaly{checker.Ghost, checker.Overlap}},
		"expect @single: overlap":           {For: []scenarios.Selector{"@single"}, Anomalies: overlap},
		"expect redlock set-nx-* : overlap": {For: []scenarios.Selector{"redlock", "set-nx-*"}, Anomalies: overlap},
		"expect redlock: none # it waits":   {For: []scenarios.Selector{"redlock"}, Reason: "it waits"},
	} {
		got := parse(t, "clients A\nA acquire\n"+line+"\n").Expects[0]
		want.Line = 3
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, want %+v", line, got, want)
		}
	}
}

func TestNameAndHead(t *testing.T) {
	script, err := scenarios.Parse("some/where/my-lock.txt", []byte(`
# It breaks.
#
#   Indented.
# source: here
# source: there

# not the head
clients A
A acquire
expect none
`))
	if err != nil {
		t.Fatal(err)
	}
	if script.Name != "my-lock" {
		t.Errorf("name: got %q", script.Name)
	}
	if want := []string{"It breaks.", "", "  Indented.", "source: here", "source: there"}; !reflect.DeepEqual(script.Doc, want) {
		t.Errorf("head comment: got %q, want %q", script.Doc, want)
	}
	if got := script.Summary(); got != "It breaks" {
		t.Errorf("summary: got %q", got)
	}
	if got, want := script.Sources(), []string{"here", "there"}; !reflect.DeepEqual(got, want) {
		t.Errorf("sources: got %q, want %q", got, want)
	}
}

// Each example of a fault is a valid line of a script.
func TestVocabularyParses(t *testing.T) {
	for _, entry := range faults.Definitions() {
		// What some need to come before them.
		script := parse(t, `
clients A B C D
nodes 3
replicas 2
hold A before SET
A pause
A crash
A restart
n1 pause
n1/1 crash
n1/1 restart
n1 resume
n1 split B
`+entry.Example+"\nexpect none\n")
		inject, ok := script.Steps[len(script.Steps)-1].Do.(scenarios.Inject)
		if !ok {
			t.Errorf("%s: %q is not a fault", entry.Name, entry.Example)
			continue
		}
		if got := inject.Fault.String(); got != entry.Example {
			t.Errorf("%s: %q is written back as %q", entry.Name, entry.Example, got)
		}
	}
}
