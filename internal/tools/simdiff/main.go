// Command simdiff plays cells in virtual time and in another world and reports whether the two
// agree. The command plays the agreement table, which contains every strategy and every kind of
// fault, or settled random scripts. To play cells, the command runs a built lockfault and reads its
// results.
//
//	go run ./internal/tools/simdiff -lockfault bin/lockfault
//	go run ./internal/tools/simdiff -lockfault bin/lockfault -settled -count 40 -seed 7
//	go run ./internal/tools/simdiff -lockfault bin/lockfault -busy 4 -runs 10
//	go run ./internal/tools/simdiff -lockfault bin/lockfault -world docker -- --image lockfault/redis:local
//
// Arguments after the flags are passed to lockfault run.
//
// The exit status is 0 if all cells agree; 1 if a cell differs, or if more than -unknown percent of
// the cells are undecided; 2 for unknown flags; and 3 if cells could not be played or the command
// was interrupted. The reports of runs with differing cells, and differing settled scripts, are
// kept in -keep. All other files are removed.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lockfault/lockfault/internal/proc"
	"github.com/lockfault/lockfault/internal/tempdir"
	"github.com/lockfault/lockfault/reports"
)

type options struct {
	lockfault, world, keep         string
	first, settled, write, reasons bool
	count, runs, busy              int
	seed                           uint64
	unknown                        float64
	ttl                            time.Duration
	more                           []string // arguments of lockfault run
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == busily {
		for n := 0; ; n++ {
			runtime.KeepAlive(n)
		}
	}
	var o options
	flag.StringVar(&o.lockfault, "lockfault", "bin/lockfault", "the program, built")
	flag.StringVar(&o.world, "world", "process", "the world to compare with sim")
	flag.BoolVar(&o.first, "first", false, "play only the first row of the table: every strategy, and most kinds of faults")
	flag.BoolVar(&o.settled, "settled", false, "play settled random scripts in place of the table")
	flag.IntVar(&o.count, "count", 40, "how many scripts, each for one strategy")
	flag.Uint64Var(&o.seed, "seed", rand.Uint64N(1e9), "of the first script; the others' follow; drawn if not given")
	flag.Float64Var(&o.unknown, "unknown", 20, "how many cells may be undecided, in percent")
	flag.StringVar(&o.keep, "keep", "", "a directory for what came out differently: scripts, reports")
	flag.DurationVar(&o.ttl, "ttl", 0, "lease in both worlds, for a machine that has other things to do; default that of the world")
	flag.BoolVar(&o.reasons, "reasons", false, "say of each cell that was played again why")
	flag.BoolVar(&o.write, "write", false, "play nothing: write all scripts into -keep")
	flag.IntVar(&o.busy, "busy", 0, "how many processes do nothing but keep the machine busy meanwhile")
	flag.IntVar(&o.runs, "runs", 1, "how often all is played; the next run has the next scripts")
	flag.Parse()
	o.more = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	agrees, err := o.run(ctx)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "simdiff:", err)
		os.Exit(3)
	case !agrees:
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) (agrees bool, err error) {
	if o.write {
		return true, o.writeScripts()
	}
	dir, err := tempdir.Make("", "lockfault-agree-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
	calm, err := keepBusy(o.busy)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, calm()) }()
	agrees = true
	for range o.runs {
		var t tally
		begun := time.Now()
		if o.settled {
			err = o.playSettled(ctx, dir.Path(), &t)
		} else {
			err = o.playTable(ctx, dir.Path(), &t)
		}
		if err != nil {
			return false, err
		}
		fmt.Printf("%s agrees with sim in %d of %d cells, %d differ, %d undecided, %d played again; %v\n",
			o.world, t.cells-t.undecided-t.differing, t.cells, t.differing, t.undecided, t.reruns, time.Since(begun).Round(time.Second))
		agrees = agrees && t.cells > 0 && t.differing == 0 && float64(t.undecided) <= o.unknown/100*float64(t.cells)
		o.seed += uint64(o.count)
	}
	return agrees, nil
}

// tally counts the applicable cells of the other world. Rows that run concurrently add to it.
type tally struct {
	mu                                  sync.Mutex
	cells, undecided, differing, reruns int
}

func (t *tally) add(row *tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cells += row.cells
	t.undecided += row.undecided
	t.differing += row.differing
	t.reruns += row.reruns
}

// lockfaultRun runs cells with the program and calls f with each cell of the results. out is the
// directory of the report.
func (o options) lockfaultRun(ctx context.Context, out string, f func(reports.Cell) error, args ...string) error {
	args = append([]string{"run", "--out", out, "--format", "json"}, args...)
	cmd := exec.CommandContext(ctx, o.lockfault, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var said bytes.Buffer
	cmd.Stderr = &said
	played := cmd.Run() // random scripts have no expectations, so the exit status means nothing
	if err := context.Cause(ctx); err != nil {
		return err
	}
	_, err := reports.Scan(filepath.Join(out, reports.ResultsFile), f)
	if err != nil {
		err = fmt.Errorf("%w (lockfault run: %v: %s)", err, played, bytes.TrimSpace(said.Bytes()))
	}
	return err
}

// play runs cells with the program and counts those that apply in the other world. play prints the
// undecided and the differing ones and returns the scenarios of the latter. judge reports whether a
// decided cell is wrong, or returns in open why that is unknown.
func (o options) play(ctx context.Context, dir string, t *tally, judge func(reports.Cell) (wrong bool, open string), args ...string) (differing []string, err error) {
	out := filepath.Join(dir, "report")
	args = append([]string{"--world", "sim," + o.world}, args...)
	if o.ttl != 0 {
		args = append(args, "--ttl", o.ttl.String())
	}
	args = append(args, o.more...)
	refused := map[string]string{} // refusals in sim
	err = o.lockfaultRun(ctx, out, func(c reports.Cell) error {
		cell := c.Strategy + " under " + c.Scenario
		if c.World == "sim" {
			refused[cell] = refusal(c)
		}
		if c.World == "sim" || c.Verdict == reports.NotApplicable {
			return nil
		}
		t.cells++
		t.reruns += min(1, c.Reruns)
		if o.reasons {
			for _, reason := range c.Late {
				fmt.Printf("%s was played again: %s\n", cell, reason)
			}
		}
		if c.Verdict == reports.Error && refusal(c) != "" && refusal(c) == refused[cell] {
			return nil
		}
		wrong, open := false, cmp.Or(c.Reason, string(c.Verdict))
		if c.Verdict != reports.Unknown {
			wrong, open = judge(c)
		}
		switch {
		case open != "":
			t.undecided++
			fmt.Printf("%s: %s\n", cell, open)
		case wrong:
			t.differing++
			differing = append(differing, c.Scenario)
			fmt.Printf("%s differs: %s %v %s\n", cell, c.Verdict, c.Anomalies, c.Reason)
		}
		return nil
	}, args...)
	if len(differing) > 0 && o.keep != "" {
		err = errors.Join(err, os.CopyFS(filepath.Join(o.keep, fmt.Sprintf("report-%d", time.Now().UnixNano())), os.DirFS(out)))
	}
	return differing, err
}

// refusal returns the sentence with which a cell reports that a fault is impossible after the
// preceding steps, or "". A script cannot always rule out such a fault.
func refusal(c reports.Cell) string {
	if _, sentence, ok := strings.Cut(c.Reason, "\""); ok && strings.Contains(sentence, " is impossible: ") {
		return sentence
	}
	return ""
}

// agreesWithSim reports whether a decided cell has the same result as in sim.
func agreesWithSim(c reports.Cell) bool { return c.AgreesWithSim != nil && *c.AgreesWithSim }

// busily is the argument with which this program only keeps a processor busy.
const busily = "busily"

// keepBusy starts count processes that keep processors busy, and returns a function that ends them.
func keepBusy(count int) (calm func() error, err error) {
	launcher, err := proc.NewLauncher()
	if err != nil {
		return nil, err
	}
	var procs []*proc.Proc
	calm = func() error {
		var errs []error
		for _, p := range procs {
			errs = append(errs, p.Kill())
		}
		return errors.Join(append(errs, launcher.Close())...)
	}
	self, err := os.Executable()
	for range count {
		var p *proc.Proc
		if err == nil {
			p, err = launcher.Start(exec.Command(self, busily))
		}
		if err != nil {
			return nil, errors.Join(err, calm())
		}
		procs = append(procs, p)
	}
	return calm, err
}
