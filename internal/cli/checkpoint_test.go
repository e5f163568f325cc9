//go:build unix

package cli_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/cli"
	"github.com/lockfault/lockfault/internal/racetest"
)

// A searched is a search that is started several times, in one directory.
type searched struct {
	t   *testing.T
	dir string
}

func (s searched) file(name string) string { return filepath.Join(s.dir, name) }

func (s searched) start(out string, flags ...string) *run {
	s.t.Helper()
	args := []string{"explore", "getset-timestamp", "--advance", "1", "--for", "2m", "--jobs", "2", "--out", s.file(out)}
	return startCommand(s.t, s.dir, append(args, flags...)...)
}

// findings returns what a search wrote.
func (s searched) findings(out string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.file(out), "findings.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// sampled returns how many bytes there are in the checkpoint.
func (s searched) kept() int64 {
	info, err := os.Stat(s.file("checkpoint"))
	if err != nil {
		return 0
	}
	return info.Size()
}

// However often a search is killed, and when, it goes on, and finds the same.
func TestSlowSearchKilledAtAnyMoment(t *testing.T) {
	racetest.Skip(t)
	s := searched{t, t.TempDir()}
	flags := []string{"--checkpoint", s.file("checkpoint")}
	began := time.Now()
	if r := s.start("whole"); r.wait() != cli.ExitDiffers {
		t.Fatalf("%s%s", &r.stdout, &r.stderr)
	}
	took := time.Since(began)
	want := s.findings("whole")
	runs := regexp.MustCompile(`"runs": (\d+)`).FindStringSubmatch(want)
	if runs == nil {
		t.Fatal(want)
	}
	complete := regexp.MustCompile(`(?m)^` + runs[1] + ` runs were known from `)
	ended := 0
	for i := range *kills {
		before := s.kept()
		r := s.start("found", flags...)
		if i%3 == 0 { // while something is being written
			for s.kept() <= before && r.running() {
				time.Sleep(100 * time.Microsecond)
			}
			time.Sleep(time.Duration(rand.Int64N(int64(time.Millisecond))))
		} else {
			time.Sleep(time.Duration(rand.Int64N(int64(took / 4))))
		}
		r.cmd.Process.Kill() // unless it has ended
		status := r.wait()
		if said := r.stderr.String(); said != "" && !strings.Contains(said, "was not whole") {
			t.Errorf("it said %s", said)
		}
		if status == cli.ExitDiffers {
			ended++
			if got := s.findings("found"); got != want {
				t.Errorf("it found %s\nwant\n%s", got, want)
			}
			if err := os.Remove(s.file("checkpoint")); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d of %d searches came to an end; of the last %d bytes are kept", ended, *kills, s.kept())
	for i := range 2 {
		r := s.start("found", flags...)
		if status := r.wait(); status != cli.ExitDiffers || i == 1 && !complete.Match(r.stdout.Bytes()) {
			t.Fatalf("exit status %d: %s%s", status, &r.stdout, &r.stderr)
		}
		if got := s.findings("found"); got != want {
			t.Errorf("it found %s\nwant\n%s", got, want)
		}
	}
	// Whoever is killed leaves nothing but that.
	if err := os.RemoveAll(s.file("found")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"whole", "checkpoint"} {
		if err := os.RemoveAll(s.file(name)); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		t.Errorf("there is %v, %v", left, err)
	}
}

// Two searches don't write to one file, and who was killed has none.
func TestTwoSearchesWithOneCheckpoint(t *testing.T) {
	s := searched{t, t.TempDir()}
	flags := []string{"--checkpoint", s.file("checkpoint"), "--clients", "3", "--rounds", "2"}
	first := s.start("first", flags...)
	first.await("something is kept", func() bool { return s.kept() > 1000 })
	before, err := os.ReadFile(s.file("checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	second := s.start("second", flags...)
	says := "lockfault: --checkpoint: another search is writing to " + s.file("checkpoint") + ": wait for it, or name another file\n"
	if status := second.wait(); status != cli.ExitUsage || second.stderr.String() != says || second.stdout.Len() > 0 {
		t.Errorf("exit status %d: %s%s", status, &second.stdout, &second.stderr)
	}
	first.signal(os.Kill)
	first.wait()
	after, err := os.ReadFile(s.file("checkpoint"))
	if err != nil || !bytes.HasPrefix(after, before) {
		t.Errorf("%v; of %d bytes %d are there, or others", err, len(before), len(after))
	}
	third := s.start("third", append(flags, "--states", "300")...)
	if status := third.wait(); status != cli.ExitDiffers && status != cli.ExitOK || !strings.Contains(third.stdout.String(), " known from ") {
		t.Errorf("exit status %d: %s%s", status, &third.stdout, &third.stderr)
	}
}
