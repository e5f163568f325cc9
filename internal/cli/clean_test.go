//go:build unix

package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/docker"
	"github.com/lockfault/lockfault/faults/docker/dockertest"
	"github.com/lockfault/lockfault/internal/cli"
	"github.com/lockfault/lockfault/reports"
)

// endless is a script in whose midst a client and a node are stopped, for as
// long as one likes.
const endless = `clients A B
patience 1h

A acquire
A pause
n1 pause
wait 1h

expect none
`

// However a run ends, none of its processes stays, running or stopped, no
// temporary directory, and nobody listens.
func TestSlowRunLeavesNothing(t *testing.T) {
	t.Parallel()
	needs(t, "redis-server")
	five := []string{"--strategy", "redlock,fenced"}
	sentinels := []string{"--strategy", "set-nx-px-lua,fenced", "--promote-by", "sentinel"}
	elects := strings.NewReplacer("clients A B", "clients A B\nreplicas 1", "A acquire", "A acquire\nn1 failover").Replace(endless)
	for _, c := range []struct {
		name   string
		script string
		args   []string
		end    func(r *run)
		status int // -1 if it is killed
	}{
		{"SIGINT", endless, five, func(r *run) { r.signal(os.Interrupt) }, cli.ExitInterrupted},
		{"SIGTERM", endless, five, func(r *run) { r.signal(syscall.SIGTERM) }, cli.ExitInterrupted},
		{"Ctrl-C for the whole group", endless, five, func(r *run) { syscall.Kill(-r.cmd.Process.Pid, syscall.SIGINT) }, cli.ExitInterrupted},
		{"SIGHUP", endless, five, func(r *run) { r.signal(syscall.SIGHUP) }, cli.ExitInterrupted},
		{"SIGHUP for the whole group", endless, five, func(r *run) { syscall.Kill(-r.cmd.Process.Pid, syscall.SIGHUP) }, cli.ExitInterrupted},
		{"SIGTERM for the whole group", endless, five, func(r *run) { syscall.Kill(-r.cmd.Process.Pid, syscall.SIGTERM) }, eitherStatus},
		{"SIGKILL", endless, five, func(r *run) { r.signal(os.Kill) }, -1},
		{"SIGKILL with sentinels", elects, sentinels, func(r *run) { r.signal(os.Kill) }, -1},
		{"SIGINT with sentinels", elects, sentinels, func(r *run) { r.signal(os.Interrupt) }, cli.ExitInterrupted},
		{"SIGKILL of the workers", endless, five, killWorkers, cli.ExitUndecided},
		{"SIGKILL while the workers are stopped", endless, five, stopAndKill, -1},
		{"SIGTERM while the workers are stopped", endless, five, func(r *run) {
			r.tellWorkers(syscall.SIGSTOP)
			r.signal(syscall.SIGTERM)
		}, cli.ExitInterrupted},
		{"no time left", endless, append(five[:2:2], "--cell-timeout", "8s"), func(*run) {}, cli.ExitUndecided},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := startRun(t, c.script, append(c.args, "--jobs", "2")...)
			// A client's process and a node's; the other worker is at it, too,
			// unless the machine was too slow for its cell.
			r.await("a cell is in its midst", func() bool { return r.stopped() >= 2 })
			addrs := r.addresses()
			if len(addrs) == 0 {
				t.Errorf("the servers listen at %q", addrs)
			}
			r.endsBy(c.end, c.status, addrs)
		})
	}
}

// eitherStatus is the exit status of a run in which two things happen at once.
const eitherStatus = -2

// ends are the ways in which a run ends that differ in who is there to clean up, each with its exit
// status: -1 for a signal.
func ends() []end {
	return []end{
		{"SIGINT", func(r *run) { r.signal(os.Interrupt) }, cli.ExitInterrupted},
		{"SIGKILL", func(r *run) { r.signal(os.Kill) }, -1},
		{"SIGKILL of the workers", killWorkers, cli.ExitUndecided},
		{"SIGKILL while the workers are stopped", stopAndKill, -1},
	}
}

type end struct {
	name   string
	end    func(r *run)
	status int
}

// endsBy ends a run, whose servers are at these addresses, and sees that nothing of it is left.
func (r *run) endsBy(end func(r *run), status int, addrs []string) {
	r.t.Helper()
	end(r)
	if got := r.wait(); got != status && status != eitherStatus {
		r.t.Errorf("exit status %d, want %d: %s", got, status, &r.stderr)
	}
	r.nothingLeft(addrs)
}

// A program of the user's has children, of which nobody but its group tells: they end
// with it, however the run does.
func TestRunOfAProgramLeavesNothing(t *testing.T) {
	t.Parallel()
	needs(t, "redis-server")
	program := filepath.Join(t.TempDir(), "deaf.sh")
	// It answers what it is asked, and neither it nor its children end by themselves.
	const text = `trap '' TERM HUP INT
sleep 100000 &
n=0
while read -r line; do n=$((n+1)); echo "{\"id\":$n,\"answer\":\"ok\"}"; done
wait
`
	if err := os.WriteFile(program, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range ends() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := startRun(t, endless, "--subject", "sh "+program)
			// Of A the shell and its sleep, and the node.
			r.await("a cell is in its midst", func() bool { return r.stopped() >= 3 })
			addrs := r.addresses()
			r.endsBy(c.end, c.status, addrs)
		})
	}
}

// TestServiceRunsLeaveNothing checks servers of several processes each, some of another user.
func TestServiceRunsLeaveNothing(t *testing.T) {
	t.Parallel()
	for i, lock := range []string{"etcd-mutex", "postgres-row", "pgbouncer-row", "zookeeper-lock"} {
		service, _, _ := strings.Cut(lock, "-")
		c := ends()[i]
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			if is, err := condition(service); err != nil {
				t.Fatal(err)
			} else if !is {
				t.Skipf("there are no servers of %s here: .ci/servers installs them", service)
			}
			if err := os.Chmod(filepath.Dir(t.TempDir()), 0o711); err != nil { // so that a database's user gets to its files
				t.Fatal(err)
			}
			r := startRun(t, endless, "--strategy", lock)
			r.await("the cell is in its midst", func() bool { return r.stopped() >= 2 })
			r.endsBy(c.end, c.status, nil)
		})
	}
}

// The same in virtual time, where there are workers only.
func TestRunInVirtualTimeLeavesNothing(t *testing.T) {
	t.Parallel()
	needs(t, "true")
	for _, c := range []struct {
		name   string
		end    func(r *run)
		status int
	}{
		{"SIGHUP", func(r *run) { r.signal(syscall.SIGHUP) }, cli.ExitInterrupted},
		{"SIGKILL", func(r *run) { r.signal(os.Kill) }, -1},
		{"SIGKILL while the workers are stopped", stopAndKill, -1},
		{"SIGKILL of the workers", killWorkers, cli.ExitUndecided},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := startRun(t, endless, "--world", "sim", "--strategy", "bad-mutex,bad-spin", "--jobs", "2")
			r.await("both workers play cells, and no probes", func() bool {
				_, err := os.Stat(filepath.Join(filepath.Dir(r.temp), "report", reports.WorkDir))
				return err == nil && len(r.processes()) == 3
			})
			r.endsBy(c.end, c.status, nil)
		})
	}
}

// And with processes that a strategy started, and nobody else knows of.
func TestRunLeavesNoChildOfAStrategy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		args   []string
		end    func(r *run)
		status int
	}{
		{"done", []string{"--strategy", "parent"}, func(*run) {}, cli.ExitOK},
		{"no time left", []string{"--strategy", "parent-spinning", "--cell-timeout", "2s"}, func(*run) {}, cli.ExitUndecided},
		{"SIGKILL", []string{"--strategy", "parent-spinning"}, func(r *run) { r.signal(os.Kill) }, -1},
		{"SIGKILL of the workers", []string{"--strategy", "parent-spinning"}, killWorkers, cli.ExitUndecided},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := startRun(t, "clients A\nA acquire\nA release\nexpect none\n", append(c.args, "--world", "sim", "--jobs", "1")...)
			if slices.Contains(c.args, "parent-spinning") {
				r.await("the child is there", func() bool {
					return slices.ContainsFunc(r.processes(), func(p runProcess) bool { return strings.HasPrefix(p.line, "sleep ") })
				})
			}
			r.endsBy(c.end, c.status, nil)
		})
	}
}

// TestContainerRunsLeaveNothing also checks that networks are removed.
func TestContainerRunsLeaveNothing(t *testing.T) {
	t.Parallel()
	needs(t, "redis-server")
	if !dockertest.Ready(t) {
		return
	}
	for _, c := range ends() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := startRun(t, endless, "--world", "docker", "--image", docker.LocalImage, "--strategy", "set-nx-px-lua,fenced", "--jobs", "2")
			// The other may wait for its turn to be played again, if the machine was too
			// slow for it, and its worker have ended.
			r.await("all workers have servers, and a cell is in its midst", func() bool {
				workers := 0
				for _, p := range r.processes() {
					if strings.TrimSpace(p.line) == "lockfault worker" {
						workers++
					}
				}
				return r.stopped() >= 1 && workers > 0 && len(dockertest.Left(t, r.temp)) >= 2*workers
			})
			r.endsBy(c.end, c.status, nil)
			r.await("containers and networks are gone", func() bool { return len(dockertest.Left(t, r.temp)) == 0 })
		})
	}
}

// What a command leaves that is killed together with all its workers and watchmen, the next one
// removes.
func TestTheNextRunSweeps(t *testing.T) {
	needs(t, "redis-server")
	dir := t.TempDir()
	script := filepath.Join(dir, "mine.txt")
	if err := os.WriteFile(script, []byte(endless), 0o644); err != nil {
		t.Fatal(err)
	}
	r := startCommand(t, dir, "trace", "fenced", script, "--world", "process")
	r.await("the cell is in its midst", func() bool { return len(r.addresses()) == 1 && r.stopped() >= 2 })
	all := r.processes()
	for _, p := range all { // the watchmen must not see the others end
		syscall.Kill(p.pid, syscall.SIGSTOP)
	}
	slices.SortFunc(all, func(a, b runProcess) int { return strings.Compare(a.line, b.line) }) // watchmen first, /bin/sh
	for _, p := range all {
		syscall.Kill(p.pid, syscall.SIGKILL)
	}
	r.wait()
	waitFor(t, func() bool { return len(r.processes()) == 0 })
	if left, _ := filepath.Glob(filepath.Join(dir, "lockfault-trace-*")); len(left) != 1 {
		t.Errorf("it leaves %q", left)
	}
	if err := os.WriteFile(script, []byte("clients A\n\nA acquire\nA release\n\nexpect none\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	next := startCommand(t, dir, "run", "--strategy", "fenced", "--scenario", script, "--world", "process", "--out", filepath.Join(dir, "report"))
	if status := next.wait(); status != cli.ExitOK {
		t.Errorf("exit status %d: %s%s", status, &next.stdout, &next.stderr)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "lockfault-*-*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// So it is when a run ends by itself, with a cell that went wrong.
func TestFailedCellsLeaveNothing(t *testing.T) {
	t.Parallel()
	needs(t, "redis-server")
	const script = "clients A B\n\nA acquire\nB pause\nn1 pause\n\nexpect none\n"
	server := filepath.Join(t.TempDir(), "server")
	text := "#!/bin/sh\ncase $1 in --version) exec redis-server --version;; *n2-0/*) echo out of luck; exit 3;; esac\nexec redis-server \"$@\"\n"
	if err := os.WriteFile(server, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"a strategy panics", []string{"--strategy", "bad-panic"}, "out of cheese"},
		{"a server doesn't start", []string{"--strategy", "redlock", "--redis-server", server}, "out of luck"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := startRun(t, script, c.args...)
			if status := r.wait(); status != cli.ExitUndecided {
				t.Errorf("exit status %d: %s", status, &r.stderr)
			}
			if !strings.Contains(r.stdout.String(), c.says) {
				t.Errorf("the reason is not told: %s", &r.stdout)
			}
			r.nothingLeft(nil)
		})
	}
}

// Behind nohup a run outlives its terminal.
func TestRunBehindNohup(t *testing.T) {
	t.Parallel()
	needs(t, "nohup")
	dir := t.TempDir()
	cmd := exec.Command("nohup", "lockfault", "run", "--strategy", "set-nx-px-lua", "--out", filepath.Join(dir, "report"))
	cmd.Dir = dir // where nohup would put what goes to a terminal
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	for hangups := 0; ; {
		select {
		case err := <-ended:
			if err != nil || hangups == 0 {
				t.Errorf("after %d hangups: %v: %s", hangups, err, &out)
			}
			return
		case <-time.After(10 * time.Millisecond):
			// nohup must have become lockfault first.
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
			if err == nil && string(name) == "lockfault\n" && syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP) == nil {
				hangups++
			}
		}
	}
}

func needs(t *testing.T, program string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("this system doesn't tell the environment of processes")
	}
	if _, err := exec.LookPath(program); err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
}

// run is a run of lockfault. Its processes, and no others, have its own place
// for temporary files.
type run struct {
	t              *testing.T
	temp           string
	cmd            *exec.Cmd
	ended          chan struct{}
	stdout, stderr bytes.Buffer // valid after ended
}

func startRun(t *testing.T, script string, args ...string) *run {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.txt")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(args, "--world") {
		args = append(args, "--world", "process")
	}
	temp := filepath.Join(dir, "temp")
	if err := os.Mkdir(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	return startCommand(t, temp, append([]string{
		"run", "--cell-timeout", "1h", "--scenario", file, "--out", filepath.Join(dir, "report")}, args...)...)
}

// startCommand starts a command of lockfault with that place for temporary
// files.
func startCommand(t *testing.T, temp string, args ...string) *run {
	t.Helper()
	return startWith(t, nil, temp, args...)
}

// startWith does so with more variables in its environment.
func startWith(t *testing.T, env []string, temp string, args ...string) *run {
	t.Helper()
	return startWithFiles(t, nil, env, temp, args...)
}

// startWithFiles does so with files as the descriptors from 3.
func startWithFiles(t *testing.T, files []*os.File, env []string, temp string, args ...string) *run {
	t.Helper()
	r := &run{t: t, temp: temp, ended: make(chan struct{})}
	r.cmd = exec.Command(os.Args[0], args...)
	r.cmd.Args[0] = "lockfault"
	r.cmd.Env = append(append(os.Environ(), "GORACE=atexit_sleep_ms=0", "TMPDIR="+r.temp), env...)
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	r.cmd.ExtraFiles = files
	r.cmd.WaitDelay = 5 * time.Minute
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if signal.Ignored(syscall.SIGHUP) {
		// The tests run behind nohup, and what they start would ignore it too;
		// a signal that its parent has a handler for it has not.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		r.cmd.Wait()
	}()
	t.Cleanup(func() {
		r.cmd.Process.Kill()
		<-r.ended
		for _, p := range r.processes() { // if the test failed
			syscall.Kill(p.pid, syscall.SIGKILL)
		}
	})
	return r
}

func (r *run) signal(s os.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// wait waits for the run's end and returns its exit status.
func (r *run) wait() int {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(10 * time.Minute):
		r.t.Fatalf("the program does not end; it has %v", r.processes())
	}
	return r.cmd.ProcessState.ExitCode()
}

// await waits until something is so, as long as the run lasts.
func (r *run) await(what string, so func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !so(); time.Sleep(20 * time.Millisecond) {
		select {
		case <-r.ended:
			if so() {
				return
			}
			r.t.Fatalf("waited in vain: %s; the program has ended: %s\n%s", what, &r.stdout, &r.stderr)
		default:
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("waited in vain: %s; there are %v", what, r.processes())
		}
	}
}

// runProcess is a process of a run.
type runProcess struct {
	pid     int
	line    string
	stopped bool
}

func (p runProcess) String() string { return fmt.Sprintf("%d %s", p.pid, p.line) }

// processes returns the run's processes, itself included.
func (r *run) processes() (list []runProcess) {
	mark := []byte("TMPDIR=" + r.temp + "\x00")
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		// A server writes its title over its environment, but it lives there.
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		if !bytes.Contains(environ, mark) && !strings.HasPrefix(cwd, r.temp) {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		pid, _ := strconv.Atoi(filepath.Base(dir))
		list = append(list, runProcess{pid, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})), bytes.Contains(stat, []byte(") T "))})
	}
	return list
}

// stopped returns how many of the run's processes are stopped.
func (r *run) stopped() (n int) {
	for _, p := range r.processes() {
		if p.stopped {
			n++
		}
	}
	return n
}

// tellWorkers sends a signal to the run's workers, and returns how many there are.
func (r *run) tellWorkers(s syscall.Signal) (workers int) {
	for _, p := range r.processes() {
		if strings.Contains(p.line, " worker ") {
			syscall.Kill(p.pid, s)
			workers++
		}
	}
	return workers
}

// killWorkers kills the workers, and those that take their places, until the run
// has ended.
func killWorkers(r *run) {
	for killed := 0; r.running(); time.Sleep(5 * time.Millisecond) {
		if killed += r.tellWorkers(syscall.SIGKILL); killed == 0 {
			r.t.Error("there is no worker")
			return
		}
	}
}

// stopAndKill stops the workers, and kills the one who would see to them.
func stopAndKill(r *run) {
	if r.tellWorkers(syscall.SIGSTOP) == 0 {
		r.t.Error("there is no worker")
	}
	r.signal(os.Kill)
}

// addresses returns where the run's servers and sentinels listen.
func (r *run) addresses() (list []string) {
	files, _ := filepath.Glob(filepath.Join(r.temp, "*", "*", "*.conf"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if found := regexp.MustCompile(`(?m)^"?port"? "?(\d+)`).FindSubmatch(text); found != nil {
			list = append(list, net.JoinHostPort("127.0.0.1", string(found[1])))
		}
	}
	return list
}

// nothingLeft checks that nothing of the run, which has ended, is there any more.
// What was killed has a moment to go.
func (r *run) nothingLeft(addrs []string) {
	r.t.Helper()
	left := func() (what []string) {
		for _, p := range r.processes() {
			what = append(what, "process "+p.String())
		}
		files, err := os.ReadDir(r.temp)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, f := range files {
			what = append(what, "file "+f.Name())
		}
		for _, addr := range addrs {
			conn, err := net.DialTimeout("tcp", addr, time.Second)
			if err == nil {
				conn.Close()
			}
			if !errors.Is(err, syscall.ECONNREFUSED) {
				what = append(what, fmt.Sprintf("address %s: %v", addr, err))
			}
		}
		return what
	}
	var what []string
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if what = left(); len(what) == 0 {
			return
		}
	}
	slices.Sort(what)
	r.t.Errorf("left:\n%s", strings.Join(what, "\n"))
}
