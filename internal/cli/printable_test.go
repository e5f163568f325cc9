package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/tui"
	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

// evil is text that acts on what shows it: on a terminal, in Markdown, HTML, XML and in the log of a
// GitHub workflow.
const evil = "\x1b[31mred\x1b]0;pwn\x07\u009b2J \u202eevil\u2066 \u200f<b>| a | `x` ]]> [l](http://x) %0A\r\n::error::x\x7f"

// An evilRun runs the program, as a process of its own, in a directory.
type evilRun struct {
	t   *testing.T
	dir string
}

func (r evilRun) write(name, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(r.dir, name)), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// apart are the commands that are run as processes of their own: those that start worker processes,
// and that whose output package cobra chooses.
var apart = []string{"completion", "run", "trace", "explore", "soak", "map", "shrink", "subject-check", "bench"}

// do runs a command in the working directory, and checks what it prints. It returns standard output
// and the exit status.
func (r evilRun) do(args ...string) (string, int) {
	r.t.Helper()
	var stdout, stderr bytes.Buffer
	status := 0
	if slices.Contains(apart, args[0]) && !strings.Contains(strings.Join(args[1:2], ""), evil) {
		status = r.exec(&stdout, &stderr, args)
	} else {
		status = run(r.t.Context(), newApp(strategies.Builtin(), kit.Product, []Option{WithPlay(tui.Show)}), args, strings.NewReader(evil), &stdout, &stderr)
	}
	for name, text := range map[string]string{"standard output": stdout.String(), "standard error": stderr.String()} {
		r.check(strings.Join(args, " ")+": "+name, text)
		if strings.Contains(strings.NewReplacer(" ", "", "\t", "").Replace("\n"+text), "\n::error::x") {
			r.t.Errorf("%q: %s has a line that a CI system takes for an annotation:\n%s", args, name, text)
		}
	}
	return stdout.String(), status
}

// exec runs a command as a process of its own and returns the exit status.
func (r evilRun) exec(stdout, stderr *bytes.Buffer, args []string) int {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Args[0] = kit.Product
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "XDG_CACHE_HOME="+r.dir)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		r.t.Fatalf("%q: %v", args, err)
	}
	if strings.HasPrefix(stderr.String(), "panic: ") {
		r.t.Errorf("%q ends in a panic:\n%s", args, stderr)
	}
	return cmd.ProcessState.ExitCode()
}

// check checks that nothing in a text acts on what shows it.
func (r evilRun) check(what, text string) {
	r.t.Helper()
	if !utf8.ValidString(text) {
		r.t.Errorf("%q is not UTF-8", what)
	}
	if at := strings.IndexFunc(text, func(c rune) bool { return printable.Unprintable(c) && c != '\n' && c != '\t' }); at >= 0 {
		r.t.Errorf("%q has an unprintable character: %.80q", what, text[max(0, at-40):])
	}
}

// checkFile checks a file.
func (r evilRun) checkFile(name string) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	r.check(name, string(text))
}

// spoil puts evil text into each string of a file of JSON lines or JSON but for those on which
// reading it depends.
func (r evilRun) spoil(name string) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	var out []byte
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var value any
		if err := d.Decode(&value); err != nil {
			r.t.Fatal(err)
		}
		line, err := json.Marshal(spoiled("", value))
		if err != nil {
			r.t.Fatal(err)
		}
		out = append(append(out, line...), '\n')
	}
	r.write(name, string(out))
}

func spoiled(key string, value any) any {
	switch v := value.(type) {
	case string:
		switch key {
		case "tool", "verdict", "history", "kind", "op", "result", "direction", "cause", "service", "anomaly", "file", "script":
			return v
		}
		return v + evil
	case []any:
		for i := range v {
			v[i] = spoiled(key, v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = spoiled(k, v[k])
		}
	}
	return value
}

// Whatever name, error or file of others a command prints, no character of it acts on the terminal.
func TestSlowOutputsArePrintable(t *testing.T) {
	r := evilRun{t, t.TempDir()}
	t.Chdir(r.dir)
	r.write("s.txt", "clients A B\n\nA acquire\nB acquire\nA release\n\nexpect none\n")
	r.write("bad.txt", "clients A\n\nA "+evil+"\n")
	r.write("word.txt", "clients A\n\nA acqu\u00ad[31m\u2068\n")
	r.write("a\x1b[31mb.txt", "clients A\n\nA acquire\n\nexpect none\n")
	r.write("h.jsonl", `{"time":1,"client":"A\u202e\u200f","event":"acquire,call\u001b[31m"}`+"\n")
	r.write("h.csv", "time,client,event,result,key\n1,A\u202e,acquire,call,k\u2066\n2,A\u202e,acquire,ok,k\u2066\n3,B,acquire,call,k\u2066\n4,B,acquire,ok,k\u2066\n")
	r.write("h.edn", "{:type :invoke, :f :acq\x1b[31m, :process \"A\u202e\"}\n")
	r.write("e.expect", "evil:\n  flush: none\u202e\x1b\n")
	r.write("foreign.sh", `while read -r line; do
  echo '`+strings.ReplaceAll(strings.ReplaceAll(evil, "\r\n", " "), "'", "")+`' >&2
  id=$(echo "$line" | sed 's/.*"id": *\([0-9]*\).*/\1/')
  case $line in
  *'"do":"init"'*) echo '{"id":'$id',"answer":"ok"}' ;;
  *) echo '{"id":'$id',"answer":"error","error":"`+string(asJSON(t, evil))[1:]+`}' ;;
  esac
done
`)

	// What a lock's own errors make of a report.
	if out, status := r.do("run", "--strategy", "evil", "--scenario", "s.txt", "--out", "r", "--verbose", "--format", "table"); status != kit.ExitUndecided || !strings.Contains(out, "red␛]0;pwn␇") {
		t.Fatalf("exit status %d: %s", status, out)
	}
	r.checkFile("r/report.md")
	r.checkFile("r/index.html")
	if _, err := exec.LookPath("redis-server"); err == nil {
		for _, args := range [][]string{{"run", "--subject", "sh foreign.sh", "--world", "process", "--scenario", "flush", "--out", "o"}, {"subject-check", "sh foreign.sh"}} {
			if out, status := r.do(args...); !strings.Contains(out, "red␛]0;pwn␇") {
				t.Errorf("%q: exit status %d, without the program's error:\n%s", args, status, out)
			}
		}
	}
	r.do("run", "--strategy", "set-nx-px-lua,fenced", "--scenario", "s.txt,gc-pause-holding", "--out", "r2")
	for _, name := range []string{"r/results.json", "r2/results.json"} {
		r.spoil(name)
	}
	histories, err := filepath.Glob(filepath.Join(r.dir, "r2", "histories", "*", "*", "*.jsonl"))
	if err != nil || len(histories) == 0 {
		t.Fatal(histories, err)
	}
	for _, name := range histories {
		name, _ = filepath.Rel(r.dir, name)
		r.spoil(name)
	}
	cell := "fenced" + evil + "/s" + evil

	commands := map[string][][]string{
		"run": {
			{"--strategy", "fenced", "--scenario", "./" + evil + ".txt"}, {"--strategy", "fenced", "--scenario", "a\x1b[31mb.txt"}, {"--strategy", "fenced", "--scenario", "."},
			{"--strategy", "fenced", "--scenario", "s.txt", "--expect", "e.expect"}, {"--strategy", "fenced", "--scenario", "s.txt", "--out", "o" + "\x1b[31m\u202e"},
			{"--strategy", "fenced", "--scenario", "s.txt", "--baseline", "r2", "--out", "o"}, {"--strategy", "fenced", "--scenario", "s.txt", "--costs", "r/results.json", "--out", "o"},
			{"--strategy", "evil", "--scenario", "s.txt", "--out", "o", "--format", "github"},
		},
		"trace":         {{"evil", "s.txt"}, {"evil-error", "s.txt"}, {"fenced", "bad.txt"}, {"fenced", "word.txt"}, {"fenced", "./a\x1b[31mb.txt"}},
		"play":          {{"evil", "s.txt"}},
		"test":          {{"evil-error"}, {"evil", "--for", "1s"}, {"evil-error", "--findings", "\x1b[31m", "--report", "\x1b[31m"}},
		"explore":       {{"evil", "--moves", "3", "--out", "x"}, {"evil", "--checkpoint", "\x1b[31m/x"}},
		"soak":          {{"evil", "--for", "1m"}, {"evil", "--for", "1m", "--format", "json"}},
		"map":           {{"evil", "bad.txt"}, {"evil", "pause-lease", "--squares", "2", "--halvings", "0", "--out", "\x1b[31m"}},
		"shrink":        {{"--strategy", "evil", "--scenario", "s.txt"}},
		"merge":         {{"x"}, {"r"}, {"\x1b[31m"}},
		"check":         {{"h.jsonl"}, {"h.csv"}, {"h.csv", "--format", "json"}, {"h.csv", "--html", "h.html"}, {"h.edn"}, {"h.csv", "--explain", "--all"}, {"a\x1b[31mb.txt"}},
		"bench":         {{"--strategy", "evil", "--redis-server", "./\x1b[31m"}},
		"report":        {{"r"}, {"r2"}, {"r2", "--recheck"}, {"r2", "--cell", evil}, {"r2", "--cell", "evil" + evil + "/x"}},
		"compare":       {{"r", "r2"}},
		"list":          {{"strategies"}, {"scenarios"}, {"faults"}, {"services"}},
		"show":          {{"bad.txt"}, {"word.txt"}, {"./a\x1b[31mb.txt"}},
		"fmt":           {{"bad.txt"}, {"-d", "word.txt"}, {"-d", "./a\x1b[31mb.txt"}},
		"init":          {{"\x1b[31m"}},
		"subject-check": {{"sh foreign.sh"}},
		"version":       {{}},
		"queue":         {{"--listen", "\x1b[31m"}},
		"help":          {{}},
		"completion":    {{"bash"}, {"zsh"}, {"fish"}, {"powershell"}},
	}
	for _, form := range reports.Forms() {
		commands["report"] = append(commands["report"], []string{"r", "--format", form.Name}, []string{"r2", "--format", form.Name})
	}
	for _, form := range reports.Formats() {
		commands["report"] = append(commands["report"], []string{"r2", "--cell", cell, "--format", form})
	}
	for _, form := range reports.DiffFormats() {
		commands["compare"] = append(commands["compare"], []string{"r", "r2", "--format", form}, []string{"r2", "r", "--format", form})
	}
	// These speak a protocol with a parent process on standard output.
	protocol := map[string]bool{cells.WorkerCommand: true, cells.ClientCommand: true, cells.WatchmanCommand: true}
	walk(newRoot(newApp(strategies.Builtin(), kit.Product, []Option{WithPlay(tui.Show)})), func(c *cobra.Command) {
		if !c.HasParent() || c.Parent().HasParent() || protocol[c.Name()] {
			return
		}
		if commands[c.Name()] == nil {
			t.Errorf("no hostile input for the command %s", c.Name())
		}
		commands[c.Name()] = append(commands[c.Name()], []string{evil}, []string{evil, evil}, []string{"--" + evil}, []string{"--format=" + evil}, []string{"--world=" + evil, "x", "y"})
	})
	for name, list := range commands {
		for _, args := range list {
			r.do(append([]string{name}, args...)...)
		}
	}
	r.do(evil)
	for _, name := range []string{"r/report.md", "r/index.html", "r2/report.md", "r2/index.html", "h.html"} {
		r.checkFile(name)
	}

	// A machine reads the same strings.
	out, _ := r.do("report", "r2", "--format", "json")
	file, err := os.ReadFile(filepath.Join(r.dir, "r2", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := errors.Join(json.Unmarshal([]byte(out), &got), json.Unmarshal(file, &want)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("report --format json has other values than results.json: %v", err)
	}
	if out, _ = r.do("check", "h.csv", "--format", "json"); json.Unmarshal([]byte(out), &got) != nil || !strings.Contains(strings.Join(stringsIn(got), ""), "k\u2066") {
		t.Errorf("check --format json has other strings than the history:\n%s", out)
	}
}

func asJSON(t *testing.T, text string) []byte {
	t.Helper()
	out, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func stringsIn(value any) (list []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		for i := range v {
			list = append(list, stringsIn(v[i])...)
		}
	case map[string]any:
		for k := range v {
			list = append(list, stringsIn(v[k])...)
		}
	}
	return list
}

func walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, child := range c.Commands() {
		walk(child, visit)
	}
}
