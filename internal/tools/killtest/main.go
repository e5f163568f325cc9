// Command killtest kills servers, workers and the publisher of a shared soak, and then of a shared
// search, with SIGKILL. Moments and order are random. The command checks that every window is
// counted exactly once and every part is searched: the result must be byte-identical to that of a
// single undisturbed machine.
//
// Three server processes form a cluster with a user and a password. At most one server is down at a
// time: the next kill of a server waits until all have complete data. Four workers take work.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lockfault/lockfault/internal/proc"
	"github.com/lockfault/lockfault/internal/tempdir"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("killtest: ")
	program := flag.String("lockfault", "bin/lockfault", "the program")
	kills := flag.Int("kills", 5, "how many processes to end")
	hours := flag.Int("hours", 30, "how many hours a soak has")
	seed := flag.Uint64("seed", rand.Uint64N(1_000_000_000), "what decides who is ended, and when")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *program, *kills, *hours, *seed); err != nil {
		log.Fatal(err)
	}
}

// run performs soaks and searches until the given number of kills is done.
func run(ctx context.Context, program string, kills, hours int, seed uint64) (err error) {
	if program, err = filepath.Abs(program); err != nil {
		return err
	}
	temp, err := tempdir.Make("", "lockfault-drill-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.Remove()) }()
	launcher, err := proc.NewLauncher()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, launcher.Close()) }()
	fmt.Printf("kills: -kills %d -seed %d\n", kills, seed)
	d := &drill{program: program, dir: temp.Path(), launcher: launcher, random: rand.New(rand.NewPCG(seed, 0)), left: kills, killed: map[string]int{}}
	defer func() { err = errors.Join(err, d.end()) }()
	if err := d.begin(ctx); err != nil {
		return err
	}
	began := time.Now()
	for n := uint64(0); d.left > 0; n++ {
		if err := d.soak(ctx, hours, seed+n, d.left/3); err != nil { // the other two thirds are for the search
			return err
		}
		if err := d.search(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("%d kills (%s) in %v: all %d windows were counted once, and of %d searches every part is there\n",
		kills, d.tally(), time.Since(began).Round(time.Second), d.windows, d.searches)
	return nil
}

// Numbers of processes.
const (
	servers = 3
	workers = 4
)

// drill holds the processes of the test.
type drill struct {
	program  string
	dir      string
	launcher *proc.Launcher
	random   *rand.Rand
	cluster  *cluster
	servers  [servers]*process
	workers  [workers]*process
	left     int // remaining kills
	killed   map[string]int

	windows, searches int // played so far
}

// process is a process that is restarted after a kill.
type process struct {
	args []string
	proc *proc.Proc
	out  *bytes.Buffer // output since the last start; read only after the process has ended
}

// start starts a process of the program.
func (d *drill) start(p *process) (err error) {
	cmd := exec.Command(d.program, p.args...)
	p.out = &bytes.Buffer{}
	errs, err := os.OpenFile(filepath.Join(d.dir, "stderr"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer errs.Close()
	cmd.Stdout, cmd.Stderr = p.out, errs
	p.proc, err = d.launcher.Start(cmd)
	return err
}

// begin starts the servers and, after they have formed a cluster, the workers.
func (d *drill) begin(ctx context.Context) (err error) {
	if d.cluster, err = newCluster(d.dir, servers); err != nil {
		return err
	}
	for i := range d.servers {
		d.servers[i] = &process{args: []string{"queue", "--config", d.cluster.configs[i]}}
		if err := d.start(d.servers[i]); err != nil {
			return err
		}
	}
	if err := d.cluster.ready(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, d.said())
	}
	for i := range d.workers {
		d.workers[i] = &process{args: []string{"worker", "--queue", d.cluster.urls, "--queue-creds", d.cluster.creds, "--jobs", "1"}}
		if err := d.start(d.workers[i]); err != nil {
			return err
		}
	}
	return nil
}

// end kills all remaining processes.
func (d *drill) end() error {
	var all []error
	for _, p := range append(d.workers[:], d.servers[:]...) {
		if p != nil && p.proc != nil {
			all = append(all, p.proc.Kill())
		}
	}
	return errors.Join(all...)
}

// said returns the last 4000 bytes that the processes wrote on standard error.
func (d *drill) said() string {
	text, _ := os.ReadFile(filepath.Join(d.dir, "stderr"))
	if len(text) > 4000 {
		text = text[len(text)-4000:]
	}
	return string(text)
}

// tally returns the number of kills by kind of process.
func (d *drill) tally() string {
	var list []string
	for _, who := range []string{"worker", "server", "publisher"} {
		list = append(list, fmt.Sprintf("%s %d", who, d.killed[who]))
	}
	return strings.Join(list, ", ")
}

// between returns a random duration from least to most.
func (d *drill) between(least, most time.Duration) time.Duration {
	return least + time.Duration(d.random.Int64N(int64(most-least)))
}

// soak runs a soak on one machine and again with the workers, with kills until left of them remain,
// and compares the results.
func (d *drill) soak(ctx context.Context, hours int, seed uint64, left int) error {
	const window = 2 * time.Minute
	args := []string{"soak", "set-nx-px-lua,fenced", "--nemesis", "pause:1m:10s..60s,crash:5m", "--window", window.String(),
		"--for", fmt.Sprintf("%dh", hours), "--seed", fmt.Sprint(seed), "--format", "json"}
	want, err := exec.CommandContext(ctx, d.program, args...).Output()
	if err != nil {
		return fmt.Errorf("one machine: %w", err)
	}
	got, err := d.share(ctx, args, left)
	if err != nil {
		return err
	}
	if !bytes.Equal(want, got) {
		return fmt.Errorf("the soak of seed %d: one machine counts\n%s\nand many\n%s", seed, want, got)
	}
	d.windows += 2 * hours * int(time.Hour/window)
	return nil
}

// search does the same with a search. Kills continue until none is left or the search ends.
func (d *drill) search(ctx context.Context) error {
	args := []string{"explore", "redlock", "--nodes", "3", "--restart-empty", "1", "--for", "1h", "--out"}
	one, many := filepath.Join(d.dir, "one"), filepath.Join(d.dir, "many")
	if err := exec.CommandContext(ctx, d.program, append(slices.Clone(args), one)...).Run(); !decided(err) {
		return fmt.Errorf("one machine: %w", err)
	}
	if _, err := d.share(ctx, append(slices.Clone(args), many, "--parts", "12"), 0); !decided(err) {
		return err
	}
	want, err := findings(one)
	if err != nil {
		return err
	}
	got, err := findings(many)
	if err != nil {
		return err
	}
	if want != got {
		return fmt.Errorf("the search of one machine finds\n%s\nand of many\n%s", want, got)
	}
	d.searches++
	return nil
}

// decided reports whether a search came to its end, with a bug or without.
func decided(err error) bool {
	var exit *exec.ExitError
	return err == nil || errors.As(err, &exit) && exit.ExitCode() == 1
}

// findings returns findings.json without the fields that depend on how the search was distributed.
func findings(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "findings.json"))
	if err != nil {
		return "", err
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return "", err
	}
	if list, _ := all["findings"].([]any); len(list) == 0 {
		return "", fmt.Errorf("%s/findings.json has no findings, so a search with kills is compared with nothing", dir)
	}
	delete(all, "runs")
	delete(all, "at_most")
	text, err = json.Marshal(all)
	return string(text), err
}

// share runs a command on the queue, with kills until left of them remain. share returns the
// standard output and the error of the publisher.
func (d *drill) share(ctx context.Context, args []string, left int) ([]byte, error) {
	publisher := &process{args: append(slices.Clone(args), "--queue", d.cluster.urls, "--queue-creds", d.cluster.creds)}
	if err := d.start(publisher); err != nil {
		return nil, err
	}
	defer func() { publisher.proc.Kill() }()
	for {
		select {
		case <-publisher.proc.Ended():
			if err := publisher.proc.Status(); err != nil {
				return nil, fmt.Errorf("the publisher: %w\n%s", err, d.said())
			}
			return publisher.out.Bytes(), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(d.between(500*time.Millisecond, 4*time.Second)):
			if d.left > left {
				if err := d.kill(ctx, publisher); err != nil {
					return nil, err
				}
			}
		}
	}
}

// kill kills a random participant and restarts it after a while.
func (d *drill) kill(ctx context.Context, publisher *process) error {
	who, p := "worker", d.workers[d.random.IntN(workers)]
	switch d.random.IntN(3) {
	case 0:
		who, p = "server", d.servers[d.random.IntN(servers)]
		// While a server is down, the other two must have complete data.
		if err := d.cluster.current(ctx); err != nil {
			return fmt.Errorf("%w\n%s", err, d.said())
		}
	case 1:
		who, p = "publisher", publisher
	}
	select {
	case <-publisher.proc.Ended():
		return nil // the command has already ended
	default:
	}
	if err := p.proc.Kill(); err != nil {
		return err
	}
	d.left--
	d.killed[who]++
	time.Sleep(d.between(0, 2*time.Second))
	return d.start(p)
}
