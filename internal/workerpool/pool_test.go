//go:build unix

package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/workerpool"
)

// TestMain runs the tests, or a worker, since the test binary is also the worker program.
func TestMain(m *testing.M) {
	switch os.Getenv("POOL_TEST_PROGRAM") {
	case "worker":
		if err := workerpool.Serve(os.Stdin, os.Stdout, handle, abandon); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case "chatty worker":
		fmt.Println("a package that prints when it is initialised")
		fmt.Println("{}")
		if err := workerpool.Serve(os.Stdin, os.Stdout, handle, abandon); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case "parent":
		parent()
	case "not a worker":
		fmt.Fprintln(os.Stderr, "flag provided but not defined")
		os.Exit(2)
	}
	os.Exit(m.Run())
}

type job struct {
	Do   string
	N    int
	Text string
}

type reply struct {
	N, PID int
	Text   string
}

// started is the file that a job has created.
var started atomic.Pointer[string]

// abandon ends the job first, which removes what the job waits for, and then everything else.
func abandon() {
	if file := started.Load(); file != nil {
		os.Remove(*file)
		time.Sleep(100 * time.Millisecond)
		os.Remove(*file + "-too")
	}
}

func handle(j job) (reply, bool) {
	switch j.Do {
	case "panic":
		go func() { panic("out of cheese") }()
		select {}
	case "exit":
		os.Exit(3)
	case "mutex":
		var mu sync.Mutex
		mu.Lock()
		waitForMutex(&mu)
	case "spin":
		spin()
	case "start something":
		started.Store(&j.Text) // a test that sees the file may end the job at once
		if err := os.WriteFile(j.Text, nil, 0o600); err != nil {
			panic(err)
		}
		spin()
	case "start something and see it end":
		started.Store(&j.Text)
		for _, file := range []string{j.Text + "-too", j.Text} {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				panic(err)
			}
		}
		for _, err := os.Stat(j.Text); err == nil; _, err = os.Stat(j.Text) {
			time.Sleep(time.Millisecond)
		}
		fmt.Fprintln(os.Stderr, "it has ended")
	case "stop":
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		select {}
	case "deaf": // ends only on SIGKILL
		for {
			syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
	case "garbage":
		os.Stdout.WriteString("PASS\n")
	case "half a line":
		os.Stdout.WriteString("{")
		os.Exit(0)
	case "endless line":
		for {
			os.Stdout.Write(make([]byte, 1<<20))
		}
	case "flood":
		fmt.Fprintln(os.Stderr, "the beginning")
		for range 20_000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("x", 1000))
		}
		fmt.Fprintln(os.Stderr, "the end")
		os.Exit(4)
	case "retire":
		return reply{N: j.N, PID: os.Getpid()}, true
	}
	return reply{N: j.N, PID: os.Getpid(), Text: j.Text}, false
}

func waitForMutex(mu *sync.Mutex) { mu.Lock() }

func spin() {
	//lint:ignore SA5002 spinning is what it is for
	for {
	}
}

func program(name string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "POOL_TEST_PROGRAM="+name,
			"GORACE=atexit_sleep_ms=0") // otherwise every worker takes a second to exit
		return cmd
	}
}

// within sets the same limit for every job.
func within(limit time.Duration) func(any) time.Duration {
	return func(any) time.Duration { return limit }
}

func options(workers int) workerpool.Options {
	return workerpool.Options{Workers: workers, Start: program("worker"), Limit: within(5 * time.Minute)}
}

func TestEveryJobIsAnsweredOnce(t *testing.T) {
	for _, workers := range []int{0, 1, 3} {
		var jobs []job
		for n := range 200 {
			text := ""
			if n%50 == 0 { // longer than the buffer of a pipe
				text = strings.Repeat("y", 100_000)
			}
			jobs = append(jobs, job{N: n, Text: text})
		}
		seen := map[int]bool{}
		pids := map[int]bool{}
		err := workerpool.Run(t.Context(), options(workers), slices.Values(jobs), func(j job, r workerpool.Result[reply]) error {
			if r.Failure != nil {
				t.Errorf("job %d: %v", j.N, r.Failure)
			}
			if r.Value.N != j.N || r.Value.Text != j.Text || seen[j.N] {
				t.Errorf("job %d: got the answer to %d, or twice", j.N, r.Value.N)
			}
			seen[j.N] = true
			pids[r.Value.PID] = true
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) != len(jobs) {
			t.Errorf("%d workers: %d of %d jobs answered", workers, len(seen), len(jobs))
		}
		if len(pids) > max(1, workers) || pids[os.Getpid()] {
			t.Errorf("%d workers: answers from %d processes", workers, len(pids))
		}
	}
}

// TestACrewStays checks that idle workers do the jobs of the next run, unless they have ended, and
// end when IdleWorkers is closed.
func TestACrewStays(t *testing.T) {
	var crew workerpool.IdleWorkers
	defer crew.Close(0)
	run := func(workers int) []int {
		var pids []int
		o := options(workers)
		o.Idle = &crew
		err := workerpool.Run(t.Context(), o, slices.Values(make([]job, 50)), func(_ job, r workerpool.Result[reply]) error {
			if r.Failure != nil {
				t.Error(r.Failure)
			}
			if !slices.Contains(pids, r.Value.PID) {
				pids = append(pids, r.Value.PID)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return pids
	}
	first := run(1)
	if again := run(1); !slices.Equal(again, first) {
		t.Errorf("the second run's jobs were done by %v, the first one's by %v", again, first)
	}
	if err := syscall.Kill(first[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for syscall.Kill(first[0], 0) == nil { // its parent waits for it
		time.Sleep(time.Millisecond)
	}
	third := run(2)
	if slices.Contains(third, first[0]) {
		t.Errorf("%v did jobs after it had ended", first)
	}
	crew.Close(0)
	for _, pid := range third {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("worker %d lives after its crew was closed", pid)
		}
	}
	if after := run(1); slices.Contains(third, after[0]) {
		t.Errorf("worker %d did a job after its crew was closed", after[0])
	}
}

func TestABadJobSpoilsOnlyItself(t *testing.T) {
	tests := []struct {
		do             string
		limited        bool // must be ended
		reason, output string
	}{
		{"panic", false, "panic: out of cheese: the worker process ended (exit status 2)", "pool_test.handle.func1"},
		{"exit", false, "the worker process ended (exit status 3)", ""},
		{"mutex", true, "no answer within", "waitForMutex"},
		{"spin", true, "no answer within", "pool_test.handle"},
		{"stop", true, "no answer within", "pool_test.handle"},
		{"deaf", true, "no answer within", ""},
		{"garbage", false, `no answer: "PASS"`, ""},
		{"half a line", false, "the worker process ended (exit status 0)", ""},
		{"endless line", false, "the worker process", ""},
		{"flood", false, "(exit status 4)", "the beginning"},
	}
	for _, test := range tests {
		t.Run(test.do, func(t *testing.T) {
			t.Parallel()
			o := options(1)
			if test.limited {
				// Long enough for the good jobs on any machine.
				o.Limit, o.Grace = within(8*time.Second), 8*time.Second
			}
			jobs := []job{{N: 1}, {Do: test.do, N: 2}, {N: 3}, {N: 4}}
			var order []int
			err := workerpool.Run(t.Context(), o, slices.Values(jobs), func(j job, r workerpool.Result[reply]) error {
				order = append(order, j.N)
				if j.N != 2 {
					if r.Failure != nil || r.Value.N != j.N {
						t.Errorf("job %d was spoiled: %+v", j.N, r)
					}
					return nil
				}
				if r.Failure == nil {
					t.Fatalf("no failure, but %+v", r.Value)
				}
				if !strings.Contains(r.Failure.Reason, test.reason) {
					t.Errorf("reason %q, want it to contain %q", r.Failure.Reason, test.reason)
				}
				if !strings.Contains(r.Failure.Output, test.output) {
					t.Errorf("output does not show %q:\n%s", test.output, r.Failure.Output)
				}
				if len(r.Failure.Output) > 64<<10 {
					t.Errorf("%d bytes of output were kept", len(r.Failure.Output))
				}
				if test.do == "flood" && !strings.HasSuffix(r.Failure.Output, "the end") {
					t.Error("the end of the flood is lost")
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(order, []int{1, 2, 3, 4}) {
				t.Errorf("results of jobs %v, want 1 to 4", order)
			}
		})
	}
}

func TestBusyMachinesGetLess(t *testing.T) {
	o := options(8)
	o.Busy = func(any, *workerpool.Failure) bool { return true }
	pids := map[int]bool{}
	err := workerpool.Run(t.Context(), o, slices.Values(make([]job, 50)), func(_ job, r workerpool.Result[reply]) error {
		pids[r.Value.PID] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if most := min(8, runtime.NumCPU()); len(pids) > most {
		t.Errorf("%d workers had something to do; want %d at most", len(pids), most)
	}
}

func TestARetiringWorkerIsReplaced(t *testing.T) {
	jobs := []job{{Do: "retire", N: 1}, {N: 2}, {N: 3}}
	var pids []int
	err := workerpool.Run(t.Context(), options(1), slices.Values(jobs), func(j job, r workerpool.Result[reply]) error {
		if r.Failure != nil || r.Value.N != j.N {
			t.Errorf("job %d: %+v", j.N, r)
		}
		pids = append(pids, r.Value.PID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pids[0] == pids[1] || pids[1] != pids[2] {
		t.Errorf("answers from processes %v, want the second two from another than the first", pids)
	}
}

// TestAFreshJobIsAlone checks that a fresh job has a worker of its own, and that other jobs still
// share workers.
func TestAFreshJobIsAlone(t *testing.T) {
	jobs := []job{{N: 1}, {N: 2}, {N: 3, Text: "fresh"}, {N: 4, Text: "fresh"}, {N: 5}, {N: 6}}
	o := options(1)
	o.Fresh = func(j any) bool { return j.(job).Text == "fresh" }
	var pids []int
	err := workerpool.Run(t.Context(), o, slices.Values(jobs), func(j job, r workerpool.Result[reply]) error {
		if r.Failure != nil || r.Value.N != j.N {
			t.Errorf("job %d: %+v", j.N, r)
		}
		pids = append(pids, r.Value.PID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pids[0] != pids[1] || pids[4] != pids[5] || len(slices.Compact(slices.Clone(pids))) != 4 {
		t.Errorf("answers from processes %v, want those of jobs 3 and 4 from processes of their own", pids)
	}
}

// TestAWorkerMayPrintBeforeItIsReady checks that output before a worker is ready is not taken for
// an answer.
func TestAWorkerMayPrintBeforeItIsReady(t *testing.T) {
	o := options(1)
	o.Start = program("chatty worker")
	err := workerpool.Run(t.Context(), o, slices.Values([]job{{N: 1}}), func(j job, r workerpool.Result[reply]) error {
		if r.Failure != nil || r.Value.N != 1 {
			t.Errorf("%+v", r)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCancelEndsTheWorkers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var pids []int
	endless := iter.Seq[job](func(yield func(job) bool) {
		for n := 0; yield(job{N: n}); n++ {
			if n == 20 && !yield(job{Do: "spin", N: -1}) {
				return
			}
		}
	})
	err := workerpool.Run(ctx, options(2), endless, func(j job, r workerpool.Result[reply]) error {
		if j.N == -1 {
			t.Error("the job in hand was reported")
		}
		pids = append(pids, r.Value.PID)
		if j.N == 100 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	expectGone(t, pids)
}

// TestAbandonedJobs checks that when a job is ended early, in whatever way, everything that it
// started outside of its process is ended as well.
func TestAbandonedJobs(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(cancel func())
		o    func(*workerpool.Options)
	}{
		{"the run is cancelled", func(cancel func()) { cancel() }, func(*workerpool.Options) {}},
		{"it takes too long", func(func()) {}, func(o *workerpool.Options) { o.Limit = within(500 * time.Millisecond) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "started")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := options(1)
			o.Grace = time.Minute
			c.o(&o)
			ended := make(chan error, 1)
			go func() {
				ended <- workerpool.Run(ctx, o, slices.Values([]job{{Do: "start something", Text: file}}), func(job, workerpool.Result[reply]) error { return nil })
			}()
			for {
				if _, err := os.Stat(file); err == nil {
					break
				}
				select {
				case err := <-ended: // before the test saw the file
					ended <- err
				case <-time.After(time.Millisecond):
					continue
				}
				break
			}
			c.end(cancel)
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("what it has started is left: %v", err)
			}
		})
	}
}

func TestAnErrorOfDoneEndsTheRun(t *testing.T) {
	full := errors.New("disk full")
	calls := 0
	err := workerpool.Run(t.Context(), options(2), slices.Values(make([]job, 100)), func(job, workerpool.Result[reply]) error {
		calls++
		return full
	})
	if !errors.Is(err, full) || calls != 1 {
		t.Errorf("error %v after %d calls, want %v after one", err, calls, full)
	}
}

func TestStartFails(t *testing.T) {
	o := options(2)
	o.Start = func() *exec.Cmd { return exec.Command("/nonexistent/worker") }
	err := workerpool.Run(t.Context(), o, slices.Values(make([]job, 9)), func(job, workerpool.Result[reply]) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "workerpool: start a worker") {
		t.Errorf("error %v, want it to say that a worker could not be started", err)
	}
}

// TestNotAWorker checks that a program that is not a worker is not started over and over: each job
// gets a failure with the program's output.
func TestNotAWorker(t *testing.T) {
	o := options(1)
	o.Start = program("not a worker")
	failures := 0
	err := workerpool.Run(t.Context(), o, slices.Values(make([]job, 3)), func(_ job, r workerpool.Result[reply]) error {
		if r.Failure != nil && strings.Contains(r.Failure.Output, "flag provided") {
			failures++
		}
		return nil
	})
	if err != nil || failures != 3 {
		t.Errorf("%d failures and error %v, want 3 and none", failures, err)
	}
}

// parent runs two workers, one with a job that starts something and never ends, and one idle, and
// prints their process ids.
func parent() {
	jobs := iter.Seq[job](func(yield func(job) bool) {
		yield(job{N: 1})
		yield(job{N: 2})
		yield(job{Do: os.Getenv("POOL_TEST_DO"), Text: os.Getenv("POOL_TEST_FILE")})
		select {}
	})
	workerpool.Run(context.Background(), options(2), jobs, func(_ job, r workerpool.Result[reply]) error {
		fmt.Println(r.Value.PID)
		return nil
	})
}

// TestNoOrphanSurvivesAKilledParent checks that a worker whose parent was killed exits, stopped or
// not, and cleans up what its job started.
func TestNoOrphanSurvivesAKilledParent(t *testing.T) {
	for _, c := range []struct {
		name, do string
		stopped  bool
	}{
		{"running", "start something", false},
		{"stopped", "start something", true},
		{"answering", "start something and see it end", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.stopped && runtime.GOOS != "linux" {
				t.Skip("this system doesn't wake them")
			}
			file := filepath.Join(t.TempDir(), "started")
			cmd := program("parent")()
			cmd.Env = append(cmd.Env, "POOL_TEST_FILE="+file, "POOL_TEST_DO="+c.do)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()
			var pids [2]int
			if _, err := fmt.Fscan(stdout, &pids[0], &pids[1]); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				for _, pid := range pids {
					if t.Failed() {
						syscall.Kill(pid, syscall.SIGKILL)
					}
				}
			})
			for _, err := os.Stat(file); err != nil; _, err = os.Stat(file) {
				time.Sleep(time.Millisecond)
			}
			for _, pid := range pids {
				if c.stopped {
					syscall.Kill(pid, syscall.SIGSTOP)
				}
			}
			cmd.Process.Kill()
			expectGone(t, pids[:])
			for _, file := range []string{file, file + "-too"} {
				if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("what it has started is left: %v", err)
				}
			}
		})
	}
}

// expectGone waits until none of the processes is alive.
func expectGone(t *testing.T, pids []int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for _, pid := range pids {
		for alive(pid) {
			if time.Now().After(deadline) {
				t.Errorf("worker process %d survives", pid)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// alive reports whether the process is alive. A process that has ended but was not waited for by
// the process that inherited it is dead.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

func BenchmarkJob(b *testing.B) {
	jobs := iter.Seq[job](func(yield func(job) bool) {
		for n := 0; b.Loop() && yield(job{N: n}); n++ {
		}
	})
	err := workerpool.Run(b.Context(), options(1), jobs, func(_ job, r workerpool.Result[reply]) error { return nil })
	if err != nil {
		b.Fatal(err)
	}
}

// TestABusyWorkerEndsWithItsInput checks that the end of its input ends a worker whose parent died,
// even while the worker is busy, on systems where nothing else does.
func TestABusyWorkerEndsWithItsInput(t *testing.T) {
	cmd := program("worker")()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	if _, err := stdin.Write([]byte(`{"seq":1,"job":{"Do":"spin"}}` + "\n")); err != nil {
		t.Fatal(err)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the worker ended with %v", err)
		}
	case <-time.After(5 * time.Minute):
		t.Error("the worker goes on")
	}
}
