//go:build unix

package cli_test

import (
	"bytes"
	"flag"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/cli"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/reports"
)

// heldRun is a run of two cells, of which the second isn't finished before
// somebody lets it.
type heldRun struct {
	t                      *testing.T
	temp, script, out, key string
}

func newHeldRun(t *testing.T) heldRun {
	t.Helper()
	dir := t.TempDir()
	h := heldRun{t, filepath.Join(dir, "temp"), filepath.Join(dir, "mine.txt"), filepath.Join(dir, "report"), filepath.Join(dir, "key")}
	if err := os.Mkdir(h.temp, 0o755); err != nil {
		t.Fatal(err)
	}
	h.write(h.script, "clients A\n\nA acquire\nA release\n\nexpect none\n")
	return h
}

func (h heldRun) write(file, text string) {
	h.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// start starts the run, with flags that come last.
func (h heldRun) start(flags ...string) *run {
	h.t.Helper()
	h.write(h.key, "")
	return h.command(h.out, flags...)
}

// finish plays the run to its end, with flags that come last.
func (h heldRun) finish(flags ...string) *run {
	h.t.Helper()
	if err := os.RemoveAll(h.key); err != nil {
		h.t.Fatal(err)
	}
	r := h.command(h.out, flags...)
	r.wait()
	return r
}

func (h heldRun) command(out string, flags ...string) *run {
	h.t.Helper()
	strategies := []string{"--strategy", "fenced,held"}
	for _, flag := range flags {
		if flag == "--strategy" {
			strategies = nil
		}
	}
	args := append([]string{"run", "--scenario", h.script, "--out", out, "--jobs", "2", "--cell-timeout", "1h"}, strategies...)
	return startWith(h.t, []string{heldBy + "=" + h.key}, h.temp, append(args, flags...)...)
}

// whole plays the run to its end and returns what it leaves.
func (h heldRun) whole() map[string]string {
	h.t.Helper()
	r := h.finish()
	if status := r.cmd.ProcessState.ExitCode(); status != cli.ExitOK {
		h.t.Fatalf("exit status %d: %s%s", status, &r.stdout, &r.stderr)
	}
	return content(h.t, h.out)
}

// finished returns how many cells the unfinished run has finished.
func (h heldRun) finished() int {
	journal, _ := os.ReadFile(filepath.Join(h.out, reports.WorkDir, "cells.jsonl"))
	return max(0, bytes.Count(journal, []byte("\n"))-1)
}

// elapsed matches what differs between two runs of the same cells.
var elapsed = regexp.MustCompile(`"elapsed_ns":\d+`)

// content returns the files of a report by their names, without the times that
// passed outside of worlds, and without what an unfinished run has kept. Links are
// followed.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	var walk func(string)
	walk = func(below string) {
		entries, err := os.ReadDir(filepath.Join(dir, below))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			name := filepath.Join(below, entry.Name())
			if name == reports.WorkDir {
				continue
			}
			switch info, err := os.Stat(filepath.Join(dir, name)); {
			case err != nil && entry.Type()&fs.ModeSymlink != 0: // it will have leads nowhere
			case err != nil:
				t.Fatal(err)
			case info.IsDir():
				walk(name)
			default:
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				all[name] = elapsed.ReplaceAllString(string(text), `"elapsed_ns":0`)
			}
		}
	}
	walk("")
	return all
}

// A run that was ended, however, goes on where it ended, and comes out as one that
// was not.
func TestSlowResume(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, os.Kill} {
		t.Run(signal.String(), func(t *testing.T) {
			h := newHeldRun(t)
			want := h.whole()
			if err := os.RemoveAll(h.out); err != nil {
				t.Fatal(err)
			}
			r := h.start()
			r.await("the good cell is finished", func() bool { return h.finished() == 1 })
			if other := h.command(h.out); other.wait() != cli.ExitUsage || !strings.Contains(other.stderr.String(), "another run is writing to "+h.out) {
				t.Errorf("another run beside it: %s", &other.stderr)
			}
			r.signal(signal)
			r.wait()
			for _, c := range []struct {
				flags []string
				says  string
			}{
				{[]string{"--seed", "2"}, `its seed was "1" and is "2" now`},
				{[]string{"--ttl", "10s"}, `its ttl was "0s" and is "10s" now`},
				{[]string{"--strategy", "held"}, `its list of strategies was "fenced,held" and is "held" now`},
				{[]string{"--scenario", "flush"}, `its list of scenarios was "mine" and is "flush,mine" now`},
				{[]string{"--cell-timeout", "2h"}, `its cell-timeout was "1h0m0s" and is "2h0m0s" now`},
			} {
				other := h.finish(append(c.flags, "--resume")...)
				want := "lockfault: reports: can't go on with the run in " + h.out + ": " + c.says + ": leave out --resume to begin anew\n"
				if other.wait() != cli.ExitUsage || other.stderr.String() != want || other.stdout.Len() > 0 {
					t.Errorf("%v: %s%s, want %s", c.flags, &other.stdout, &other.stderr, want)
				}
			}
			script, err := os.ReadFile(h.script)
			if err != nil {
				t.Fatal(err)
			}
			h.write(h.script, strings.Replace(string(script), "A release", "A write\nA release", 1))
			if other := h.finish("--resume"); other.wait() != cli.ExitUsage || !strings.Contains(other.stderr.String(), "it had another text of the scenario mine: ") {
				t.Errorf("with another script: %s", &other.stderr)
			}
			// How it is written doesn't matter, nor how many are played at a time.
			h.write(h.script, "# mine\n"+string(script))
			h.write(h.script, string(script))
			next := h.finish("--resume", "--jobs", "1", "--format", "json")
			if status := next.wait(); status != cli.ExitOK {
				t.Errorf("exit status %d: %s%s", status, &next.stdout, &next.stderr)
			}
			if got := content(t, h.out); !maps.Equal(got, want) {
				t.Errorf("it comes out as %v, want %v", got, want)
			}
			if again := h.finish("--resume"); again.wait() != cli.ExitUsage || !strings.Contains(again.stderr.String(), "nothing to go on with in "+h.out) {
				t.Errorf("once more: %s", &again.stderr)
			}
		})
	}
}

// A journal that has a cell that the run doesn't have is refused, whatever name or verdict it has.
func TestResumeRefusesAForeignCell(t *testing.T) {
	t.Parallel()
	h := newHeldRun(t)
	r := h.start()
	r.await("the good cell is finished", func() bool { return h.finished() == 1 })
	r.signal(os.Kill)
	r.wait()
	journal := filepath.Join(h.out, reports.WorkDir, "cells.jsonl")
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, is, says string }{
		{`"strategy":"fenced"`, `"strategy":"evil\u001b[31m"`, `its cell 0 is "evil\x1b[31m" under "mine" in "sim", and must be "fenced" under "mine" in "sim"`},
		{`"scenario":"mine"`, `"scenario":"evil"`, `its cell 0 is "fenced" under "evil" in "sim", and must be "fenced" under "mine" in "sim"`},
		{`"world":"sim"`, `"world":"evil"`, `its cell 0 is "fenced" under "mine" in "evil", and must be "fenced" under "mine" in "sim"`},
		{`"verdict":"held"`, `"verdict":"evil"`, `the cell "fenced" under "mine" in "sim" has the verdict "evil", which there is none of`},
		{`"history":"`, `"history":"../../`, `the cell "fenced" under "mine" in "sim": the path "../../histories/sim/fenced/mine.jsonl" of its history leads out of the report's directory`},
	} {
		if !bytes.Contains(text, []byte(c.old)) {
			t.Fatalf("the journal has no %s:\n%s", c.old, text)
		}
		h.write(journal, strings.ReplaceAll(string(text), c.old, c.is))
		next := h.finish("--resume")
		want := "lockfault: reports: can't go on with the run in " + h.out + ": " + c.says + ": leave out --resume to begin anew\n"
		if status := next.wait(); status != cli.ExitUsage || next.stderr.String() != want || next.stdout.Len() > 0 {
			t.Errorf("exit status %d: %s%s, want %s", status, &next.stdout, &next.stderr, want)
		}
	}
	h.write(journal, string(text))
	if next := h.finish("--resume"); next.wait() != cli.ExitOK {
		t.Errorf("with the journal as it was: %s%s", &next.stdout, &next.stderr)
	}
}

// What is expected doesn't change what is played: a run goes on though something else is
// expected now, and all its cells are judged by that, and accepted.
func TestResumeWithOtherExpectations(t *testing.T) {
	h := newHeldRun(t)
	file := filepath.Join(h.temp, "my.expect")
	h.write(file, "held:\n  mine.txt: starvation\n")
	now := func() {
		h.write(h.script, "clients A\n\nA acquire\nA release\n\nexpect none\nexpect fenced: overlap\n")
	}
	then, err := os.ReadFile(h.script)
	if err != nil {
		t.Fatal(err)
	}
	now()
	r := h.finish("--expect", file)
	if status := r.wait(); status != cli.ExitDiffers || !strings.Contains(r.stdout.String(), "\nfenced under mine: missing: overlap\nheld under mine: better: no starvation\n") {
		t.Fatalf("exit status %d: %s%s", status, &r.stdout, &r.stderr)
	}
	want := content(t, h.out)
	for _, accept := range []bool{false, true} {
		if err := os.RemoveAll(h.out); err != nil {
			t.Fatal(err)
		}
		h.write(h.script, string(then))
		r := h.start()
		r.await("the good cell is finished", func() bool { return h.finished() == 1 })
		r.signal(os.Interrupt)
		if status := r.wait(); status != cli.ExitInterrupted {
			t.Fatalf("exit status %d: %s%s", status, &r.stdout, &r.stderr)
		}
		now()
		flags := []string{"--resume", "--expect", file}
		if accept {
			r = h.finish(append(flags, "--accept")...)
			text, err := os.ReadFile(file)
			if want := "fenced:\n  mine.txt: none\n\nheld:\n  mine.txt: none\n"; r.wait() != cli.ExitOK || err != nil || string(text) != want {
				t.Errorf("%s%s: %v, accepted\n%s\nwant\n%s", &r.stdout, &r.stderr, err, text, want)
			}
			continue
		}
		r = h.finish(flags...)
		if status := r.wait(); status != cli.ExitDiffers {
			t.Errorf("exit status %d: %s%s", status, &r.stdout, &r.stderr)
		}
		if got := content(t, h.out); !maps.Equal(got, want) {
			t.Errorf("it comes out as %v, want %v", got, want)
		}
	}
}

// An interrupted run accepts nothing, whatever it has finished.
func TestInterruptedRunAcceptsNothing(t *testing.T) {
	h := newHeldRun(t)
	file := filepath.Join(h.temp, "my.expect")
	r := h.start("--expect", file, "--accept")
	r.await("the good cell is finished", func() bool { return h.finished() == 1 })
	r.signal(os.Interrupt)
	if status := r.wait(); status != cli.ExitInterrupted {
		t.Errorf("exit status %d: %s%s", status, &r.stdout, &r.stderr)
	}
	if text, err := os.ReadFile(file); err == nil {
		t.Errorf("it accepted\n%s", text)
	}
}

// What is written into the file while a run plays stays; a run that finds it spoiled
// then accepts nothing, and says so.
func TestAcceptReadsTheFileAgain(t *testing.T) {
	for _, c := range []struct {
		meanwhile, want, says string
		status                int
	}{
		{"# new\nredlock:\n  flush: ghost\n", "fenced:\n  mine.txt: none\n\nheld:\n  mine.txt: none\n\n# new\nredlock:\n  flush: ghost\n", "", cli.ExitOK},
		{"redlok:\n", "redlok:\n", "lockfault: nothing was accepted: FILE:1:1: no strategy is called \"redlok\" (did you mean \"redlock\"?)\n", cli.ExitUndecided},
	} {
		h := newHeldRun(t)
		file := filepath.Join(h.temp, "my.expect")
		h.write(file, "held:\n  mine.txt: starvation\n")
		r := h.start("--expect", file, "--accept")
		r.await("the good cell is finished", func() bool { return h.finished() == 1 })
		h.write(file, c.meanwhile)
		if err := os.Remove(h.key); err != nil {
			t.Fatal(err)
		}
		status := r.wait()
		text, err := os.ReadFile(file)
		if err != nil || status != c.status || string(text) != c.want || strings.ReplaceAll(r.stderr.String(), file, "FILE") != c.says {
			t.Errorf("exit status %d, want %d; %v\n%s\nwant\n%s\n%s%s", status, c.status, err, text, c.want, &r.stdout, &r.stderr)
		}
		if _, err := os.Stat(filepath.Join(h.out, reports.ResultsFile)); err != nil {
			t.Error("there is no report")
		}
	}
}

// running reports whether the run has not ended.
func (r *run) running() bool {
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

var kills = flag.Int("kills", 12, "how often TestSlowKilledAtAnyMoment kills a run")

// However often a run is killed, and when, there is the whole report before or
// the whole new one, and at last the new one.
func TestSlowKilledAtAnyMoment(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	dir := t.TempDir()
	command := func(out, seed, scenarios string, more ...string) *run {
		args := []string{"run", "--strategy", "set-nx-px-lua,fenced,redlock", "--scenario", scenarios, "--seed", seed, "--out", filepath.Join(dir, out)}
		return startCommand(t, dir, append(args, more...)...)
	}
	const before, after = "contention,flush", "gc-pause-holding,flush,late-release,restart-empty"
	play := func(out, seed, scenarios string, more ...string) (map[string]string, time.Duration) {
		started := time.Now()
		if r := command(out, seed, scenarios, more...); r.wait() != cli.ExitOK {
			t.Fatalf("%s%s", &r.stdout, &r.stderr)
		}
		return content(t, filepath.Join(dir, out)), time.Since(started)
	}
	want, took := play("whole", "2", after)
	old, _ := play("report", "1", before)
	out := filepath.Join(dir, "report")
	seen := map[string]int{}
	for i := range *kills {
		var more []string
		if _, err := os.Stat(filepath.Join(out, reports.WorkDir, "cells.jsonl")); err == nil && i%5 != 0 {
			more = []string{"--resume"}
		}
		r := command("report", "2", after, more...)
		if i%2 == 0 {
			time.Sleep(time.Duration(rand.Int64N(int64(took))))
		} else { // when all is there and about to take its place
			for journal := ""; strings.Count(journal, "\n") < 1+3*4 && r.running(); {
				text, _ := os.ReadFile(filepath.Join(out, reports.WorkDir, "cells.jsonl"))
				journal = string(text)
			}
			time.Sleep(time.Duration(rand.Int64N(int64(10 * time.Millisecond))))
		}
		r.cmd.Process.Kill() // unless it has ended
		r.wait()
		if stderr := r.stderr.String(); stderr != "" && !strings.Contains(stderr, "ended before it had begun") && !strings.Contains(stderr, "nothing to go on with") {
			t.Errorf("it said %s", stderr)
		}
		switch got := content(t, out); {
		case maps.Equal(got, old):
			seen["old"]++
		case maps.Equal(got, want):
			seen["new"]++
			if again, _ := play("report", "1", before); !maps.Equal(again, old) {
				t.Fatal("the report before is another one")
			}
		default:
			t.Fatalf("kill %d: there is neither the report before nor the new one: %v", i, got)
		}
	}
	t.Log("there was after a kill: ", seen)
	if got, _ := play("report", "2", after); !maps.Equal(got, want) {
		t.Errorf("at last there is %v", got)
	}
	if _, err := os.Stat(filepath.Join(out, reports.WorkDir)); err == nil {
		t.Error("something is kept of it")
	}
}
