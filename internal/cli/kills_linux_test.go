package cli_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/docker"
	"github.com/lockfault/lockfault/faults/docker/dockertest"
	"github.com/lockfault/lockfault/internal/proc"
	"github.com/lockfault/lockfault/internal/racetest"
)

// patience is how long what a killed process started may be there, on a machine that is not late.
const patience = 5 * time.Second

var (
	killCount = flag.Int("killruns", 6, "`number` of runs that each test of kills kills")
	killSeed  = flag.Uint64("killseed", rand.Uint64N(1_000_000), "`seed` of the tests of kills")
)

// TestSlowKills kills processes of runs on redis-server at random moments, and checks that nothing of
// them is left 5 s later. The flag -killseed repeats a run of the test as far as the machine's timing
// allows.
func TestSlowKills(t *testing.T) {
	testKills(t, stage{"redis", []string{"--strategy", "set-nx-px-lua", "--world", "process"}})
}

// TestServiceKills is TestSlowKills for other services and for containers.
func TestServiceKills(t *testing.T) {
	testKills(t,
		stage{"etcd", []string{"--strategy", "etcd-mutex", "--world", "process"}},
		stage{"postgres", []string{"--strategy", "postgres-row", "--world", "process"}},
		stage{"docker", []string{"--strategy", "set-nx-px-lua", "--world", "docker", "--image", docker.LocalImage}},
	)
}

func testKills(t *testing.T, all ...stage) {
	racetest.Skip(t)
	t.Logf("-killruns %d -killseed %d", *killCount, *killSeed)
	random := rand.New(rand.NewPCG(*killSeed, 0))
	var stages []stage
	for _, s := range all {
		if why := s.missing(t); why != "" {
			t.Logf("%s: not played: %s", s.name, why)
			continue
		}
		stages = append(stages, s)
	}
	if len(stages) == 0 {
		t.Skip("no servers of any kind")
	}
	longest := map[string]time.Duration{}
	count := map[string]int{}
	for i := range *killCount {
		s, p := stages[i%len(stages)], newPlan(random)
		t.Run(strconv.Itoa(i+1), func(t *testing.T) { // a short name: paths of sockets are limited
			t.Logf("%s: %s", s.name, p)
			took := s.kill(t, p)
			longest[s.name] = max(longest[s.name], took)
			count[s.name]++
		})
	}
	for _, s := range stages {
		t.Logf("%s: %d kills, nothing left after %v at most", s.name, count[s.name], longest[s.name].Round(time.Millisecond))
	}
}

// A stage is where a run is killed.
type stage struct {
	name string
	args []string
}

// missing says why the stage's servers can't be started here; empty if they can be.
func (s stage) missing(t *testing.T) string {
	switch s.name {
	case "redis":
		if _, err := exec.LookPath("redis-server"); err != nil {
			return err.Error()
		}
	case "docker":
		if !dockertest.Ready(t) {
			return "no engine answers"
		}
	default:
		if is, err := condition(s.name); err != nil || !is {
			return fmt.Sprintf("no servers (%v): .ci/servers installs them", err)
		}
	}
	return ""
}

// A plan says what is killed, and when.
type plan struct {
	main, workers, watchmen bool
	stopped                 bool // every process of the run is stopped first
	after                   time.Duration
	order                   uint64
}

func newPlan(random *rand.Rand) plan {
	which := 1 + random.IntN(7)
	return plan{which&1 != 0, which&2 != 0, which&4 != 0, random.IntN(2) == 0, time.Duration(random.Int64N(int64(4 * time.Second))), random.Uint64()}
}

func (p plan) String() string {
	var words []string
	for word, is := range map[string]bool{"main": p.main, "workers": p.workers, "watchmen": p.watchmen, "stopped": p.stopped} {
		if is {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return strings.Join(append(words, p.after.Round(time.Millisecond).String()), " ")
}

// kill starts a run and kills processes of the run by plan, and main in the end. It returns how long
// anything was left after that.
func (s stage) kill(t *testing.T, p plan) time.Duration {
	if err := os.Chmod(filepath.Dir(t.TempDir()), 0o711); err != nil { // so that a database's user gets to its files
		t.Fatal(err)
	}
	r := startRun(t, endless, append(s.args, "--jobs", "1")...)
	seen := &traces{run: r, pids: map[int]bool{}, sockets: map[string]bool{}, files: map[string]bool{}}
	for begun := time.Now(); time.Since(begun) < p.after; time.Sleep(20 * time.Millisecond) {
		seen.look()
	}
	all := seen.look()
	if p.stopped {
		for _, one := range all {
			_ = syscall.Kill(one.pid, syscall.SIGSTOP) // it may have ended
		}
	}
	var victims []int
	for _, one := range all {
		if one.pid == r.cmd.Process.Pid && p.main || isWorker(one) && p.workers || isWatchman(one) && p.watchmen {
			victims = append(victims, one.pid)
		}
	}
	rand.New(rand.NewPCG(p.order, 0)).Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	for _, pid := range victims {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if !p.main && !p.stopped {
		for begun := time.Now(); time.Since(begun) < p.after/4; time.Sleep(20 * time.Millisecond) {
			seen.look() // what replaces what was killed
		}
	}
	seen.look()
	_ = r.cmd.Process.Kill()
	r.wait()
	// A directory waits for the next run if its watchman had no time to be replaced, and a container if
	// every process that knew of it was killed.
	return seen.gone(p.watchmen && (p.main || p.workers || p.stopped || p.after < 4*time.Second), p.watchmen && p.workers)
}

func isWorker(p runProcess) bool { return strings.Contains(p.line+" ", " worker ") }

// isWatchman reports whether a process is one that cleans up after another.
func isWatchman(p runProcess) bool {
	return strings.HasPrefix(p.line, "/bin/sh -c") || strings.Contains(p.line+" ", " watchman ")
}

// traces are what a run was seen to have on the machine.
type traces struct {
	run     *run
	pids    map[int]bool
	sockets map[string]bool // inodes of those that listen
	files   map[string]bool // of shared memory
}

// playTrials notes what the run has, and returns its processes.
func (tr *traces) look() []runProcess {
	all := tr.run.processes()
	listening := listeners()
	for _, p := range all {
		tr.pids[p.pid] = true
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.pid))
		for _, fd := range fds {
			to, _ := os.Readlink(fd)
			if inode, is := strings.CutPrefix(to, "socket:["); is && listening[strings.TrimSuffix(inode, "]")] {
				tr.sockets[strings.TrimSuffix(inode, "]")] = true
			}
		}
		maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.pid))
		for line := range bytes.Lines(maps) {
			if at := bytes.Index(line, []byte("/dev/shm/")); at >= 0 {
				tr.files[string(bytes.TrimSpace(line[at:]))] = true
			}
		}
	}
	return all
}

// listeners returns the inodes of the machine's TCP sockets that listen.
func listeners() map[string]bool {
	list := map[string]bool{}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if words := strings.Fields(lines.Text()); len(words) > 9 && words[3] == "0A" {
				list[words[9]] = true
			}
		}
		f.Close()
	}
	return list
}

// left returns what is left of the run. Without files, or containers, these don't count.
func (tr *traces) left(files, containers bool) (what []string) {
	for _, p := range tr.run.processes() {
		what = append(what, "process "+p.String())
	}
	listening := listeners()
	for inode := range tr.sockets {
		if listening[inode] {
			what = append(what, "a listening port, socket "+inode)
		}
	}
	for file := range tr.files {
		if _, err := os.Stat(file); err == nil {
			what = append(what, "POSIX shared memory "+file)
		}
	}
	text, _ := os.ReadFile("/proc/sysvipc/shm")
	for line := range strings.Lines(string(text)) {
		// key id perms size cpid lpid nattch ...
		if words := strings.Fields(line); len(words) > 6 {
			if pid, err := strconv.Atoi(words[4]); err == nil && tr.pids[pid] {
				what = append(what, "System V shared memory "+strings.Join(words[:7], " "))
			}
		}
	}
	for pid := range tr.pids {
		files, _ := filepath.Glob(fmt.Sprintf("/tmp/hsperfdata_*/%d", pid))
		for _, file := range files {
			what = append(what, "file "+file)
		}
	}
	if containers && slices.Contains(tr.run.cmd.Args, "docker") {
		what = append(what, dockertest.Left(tr.run.t, tr.run.temp)...)
	}
	if files {
		entries, err := os.ReadDir(tr.run.temp)
		if err != nil {
			tr.run.t.Fatal(err)
		}
		for _, f := range entries {
			what = append(what, "file "+f.Name())
		}
	}
	return what
}

// gone waits until nothing is left and returns how long that took. A machine that is late gets more time:
// by as much as timers of this process were late, 20 times. Files, or containers, that may wait are
// removed by another run.
func (tr *traces) gone(filesWait, containersWait bool) time.Duration {
	tr.run.t.Helper()
	done := make(chan struct{})
	defer close(done)
	late := make(chan time.Duration, 1)
	late <- 0
	go proc.MeasureTimerLag(time.Second, done, func(by time.Duration) { late <- <-late + by })
	begun := time.Now()
	for {
		what := tr.left(!filesWait, !containersWait)
		took := time.Since(begun)
		if len(what) == 0 {
			if filesWait || containersWait {
				tr.nextRun()
			}
			return took
		}
		by := <-late
		late <- by
		if took > patience+20*by {
			slices.Sort(what)
			tr.run.t.Errorf("left after %v, with timers late by %v in all:\n%s", took, by, strings.Join(what, "\n"))
			return took
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// nextRun checks that another run removes what waits for it.
func (tr *traces) nextRun() {
	t := tr.run.t
	t.Helper()
	args := slices.Clone(tr.run.cmd.Args[1:])
	script := args[slices.Index(args, "--scenario")+1]
	if err := os.WriteFile(script, []byte("clients A\n\nA acquire\nA release\n\nexpect none\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	next := startCommand(t, tr.run.temp, args...)
	if status := next.wait(); status != 0 {
		t.Errorf("the next run: exit status %d: %s%s", status, &next.stdout, &next.stderr)
	}
	if left := tr.left(true, true); len(left) > 0 {
		t.Errorf("the next run left\n%s", strings.Join(left, "\n"))
	}
}
