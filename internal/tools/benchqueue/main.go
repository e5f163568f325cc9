// Command benchqueue measures the overhead of a queue. The command runs a soak and a search on this
// machine alone and with workers of a local queue, in turns, and prints medians. A single worker
// has as many processes as the machine alone, so their durations are comparable. Several workers
// have one process each; compare them by processor time, which includes all participants.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/lockfault/lockfault/internal/ports"
	"github.com/lockfault/lockfault/internal/proc"
	"github.com/lockfault/lockfault/internal/tempdir"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("benchqueue: ")
	program := flag.String("lockfault", "bin/lockfault", "the program")
	rounds := flag.Int("rounds", 5, "how often each is measured")
	most := flag.Int("workers", 8, "up to how many workers")
	only := flag.String("only", "", "the command to measure, soak or explore; empty for both")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *program, *only, *rounds, *most); err != nil {
		log.Fatal(err)
	}
}

// commands returns the measured commands.
func commands() [][]string {
	return [][]string{
		{"soak", "set-nx-px-lua", "--for", "100h", "--nemesis", "pause:5m:10s..60s", "--format", "json"},
		{"explore", "redlock", "--nodes", "3", "--restart-empty", "1"},
	}
}

func run(ctx context.Context, program, only string, rounds, most int) (err error) {
	if program, err = filepath.Abs(program); err != nil {
		return err
	}
	launcher, err := proc.NewLauncher()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, launcher.Close()) }()
	b := bench{program, launcher}
	fmt.Println("| | workers | seconds | ratio | processor seconds | ratio |\n|---|---|---|---|---|---|")
	for _, command := range commands() {
		if only != "" && command[0] != only {
			continue
		}
		for workers := 0; workers <= most; workers = max(1, 2*workers) {
			var all, base []cost
			for range rounds {
				c, err := b.measure(ctx, command, 0)
				if err != nil {
					return err
				}
				base = append(base, c)
				if workers > 0 {
					if c, err = b.measure(ctx, command, workers); err != nil {
						return err
					}
				}
				all = append(all, c)
			}
			c := median(all)
			if workers == 0 {
				fmt.Printf("| `%s %s` | none | %.1f | | %.1f | |\n", command[0], command[1], c.took.Seconds(), c.cpu.Seconds())
				continue
			}
			alone := median(base)
			fmt.Printf("| | %d | %.1f | %.2f | %.1f | %.2f |\n", workers, c.took.Seconds(), c.took.Seconds()/alone.took.Seconds(), c.cpu.Seconds(), c.cpu.Seconds()/alone.cpu.Seconds())
		}
	}
	return nil
}

// cost is the duration and the processor time of a measurement.
type cost struct{ took, cpu time.Duration }

// median returns the medians of both values.
func median(all []cost) cost {
	of := func(by func(cost) time.Duration) time.Duration {
		var list []time.Duration
		for _, c := range all {
			list = append(list, by(c))
		}
		slices.Sort(list)
		return list[len(list)/2]
	}
	return cost{of(func(c cost) time.Duration { return c.took }), of(func(c cost) time.Duration { return c.cpu })}
}

type bench struct {
	program  string
	launcher *proc.Launcher
}

// process is a measured process.
type process struct {
	cmd  *exec.Cmd
	proc *proc.Proc
}

func (b *bench) start(args ...string) (process, error) {
	p := process{cmd: exec.Command(b.program, args...)}
	p.cmd.Stderr = os.Stderr
	var err error
	p.proc, err = b.launcher.Start(p.cmd)
	return p, err
}

// end interrupts a process, waits for it and returns the processor time of the process and its
// children.
func (p process) end() (time.Duration, error) {
	err := p.cmd.Process.Signal(os.Interrupt)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-p.proc.Ended()
	state := p.cmd.ProcessState
	return state.UserTime() + state.SystemTime(), err
}

// measure runs the command with the given number of workers, or without a queue if workers is 0.
func (b *bench) measure(ctx context.Context, command []string, workers int) (c cost, err error) {
	dir, err := tempdir.Make("", "lockfault-benchqueue-")
	if err != nil {
		return c, err
	}
	defer dir.Remove()
	var others []process
	defer func() {
		for _, p := range slices.Backward(others) {
			cpu, ended := p.end()
			c.cpu += cpu
			err = errors.Join(err, ended)
		}
	}()
	if workers > 0 {
		port, err := ports.New().Take()
		if err != nil {
			return c, err
		}
		at := ports.Address(port)
		server, err := b.start("queue", "--dir", dir.Path(), "--listen", at)
		if err != nil {
			return c, err
		}
		others = append(others, server)
		key := filepath.Join(dir.Path(), "queue.key")
		if err := await(ctx, key); err != nil {
			return c, err
		}
		for range workers {
			args := []string{"worker", "--queue", "nats://" + at, "--queue-creds", key}
			if workers > 1 {
				args = append(args, "--jobs", "1")
			}
			p, err := b.start(args...)
			if err != nil {
				return c, err
			}
			others = append(others, p)
		}
		time.Sleep(2 * time.Second) // until the workers wait for work: their start is not measured
		command = append(slices.Clone(command), "--queue", "nats://"+at, "--queue-creds", key)
	}
	began := time.Now()
	p, err := b.start(command...)
	if err != nil {
		return c, err
	}
	select {
	case <-p.proc.Ended():
	case <-ctx.Done():
		p.end()
		return c, ctx.Err()
	}
	c.took = time.Since(began)
	if code := p.cmd.ProcessState.ExitCode(); code != 0 && code != 1 {
		return c, fmt.Errorf("%v: exit status %d", command, code)
	}
	cpu, err := p.end()
	c.cpu += cpu
	return c, err
}

// await waits until the server has written its credentials to file.
func await(ctx context.Context, file string) error {
	for {
		if about, err := os.Stat(file); err == nil && about.Size() > 0 {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
