// Command agree plays settled random scripts in virtual time and in another
// world, and says whether the two agree. It writes the scripts, hands them to a
// lockfault that was built, and reads its results.
//
//	go run ./cmd/agree -lockfault bin/lockfault -count 40 -seed 7
//
// It exits with 1 if a cell came out differently, or if more than -unknown of
// them, in percent, were not decided; what differed is left in -keep.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios/settled"
)

// subjects are the strategies to play: one of each way to keep a lock.
func subjects() []settled.Subject {
	return []settled.Subject{
		{Name: "set-nx-px-lua", Nodes: 1, Replicas: 2},
		{Name: "setnx-expire-repair", Nodes: 1, Replicas: 1},
		{Name: "redisson", Nodes: 1, Replicas: 2, Watchdog: true},
		{Name: "set-wait", Nodes: 1, Replicas: 2},
		{Name: "fenced", Nodes: 1, Replicas: 1},
		{Name: "redlock", Nodes: 5},
	}
}

type options struct {
	lockfault, world, keep string
	count                  int
	seed                   uint64
	unknown                float64
	write                  bool
	ttl                    time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.lockfault, "lockfault", "bin/lockfault", "the program, built")
	flag.StringVar(&o.world, "world", "process", "the world to compare with sim")
	flag.IntVar(&o.count, "count", 40, "how many scripts, each for one strategy")
	flag.Uint64Var(&o.seed, "seed", rand.Uint64N(1e9), "of the first script; the others' follow; drawn if not given")
	flag.Float64Var(&o.unknown, "unknown", 20, "how many cells may be undecided, in percent")
	flag.StringVar(&o.keep, "keep", "", "a directory for the scripts that came out differently")
	flag.DurationVar(&o.ttl, "ttl", 0, "lease in both worlds, for a machine that has other things to do; default that of the world")
	flag.BoolVar(&o.write, "write", false, "play nothing: write all scripts into -keep")
	flag.Parse()
	agrees, err := o.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agree:", err)
		os.Exit(3)
	}
	if !agrees {
		os.Exit(1)
	}
}

// run writes the scripts, plays them and compares.
func (o options) run() (agrees bool, err error) {
	dir, err := os.MkdirTemp("", "lockfault-agree-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("settled scripts: seeds %d to %d\n", o.seed, o.seed+uint64(o.count)-1)
	files := map[string]string{}
	var paths, names []string
	for _, of := range subjects() {
		names = append(names, of.Name)
	}
	for i := range o.count {
		seed, of := o.seed+uint64(i), subjects()[i%len(subjects())]
		name := fmt.Sprintf("%s-%d", of.Name, seed)
		files[name] = settled.Script(name, seed, of)
		if o.write {
			if err := o.save(name, files[name]); err != nil {
				return false, err
			}
			continue
		}
		path := filepath.Join(dir, name+".txt")
		paths = append(paths, path)
		if err := os.WriteFile(path, []byte(files[name]), 0o644); err != nil {
			return false, err
		}
	}
	if o.write {
		return true, nil
	}
	out := filepath.Join(dir, "report")
	cmd := exec.Command(o.lockfault, "run", "--world", "sim,"+o.world, "--strategy", strings.Join(names, ","), "--scenario", strings.Join(paths, ","),
		"--out", out, "--format", "json")
	if o.ttl != 0 {
		cmd.Args = append(cmd.Args, "--ttl", o.ttl.String())
	}
	cmd.Stderr = os.Stderr
	played := cmd.Run() // what it expects is none: that it differs says nothing
	cells, undecided, differing := 0, 0, 0
	_, err = reports.Scan(filepath.Join(out, reports.ResultsFile), func(c reports.Cell) error {
		if c.World == "sim" || c.Verdict == reports.NotApplicable {
			return nil
		}
		cells++
		switch {
		case c.Verdict == reports.Unknown:
			undecided++
			fmt.Printf("%s: %s\n", c.Scenario, c.Reason)
		case c.AgreesWithSim == nil || !*c.AgreesWithSim:
			differing++
			fmt.Printf("%s differs: %s %v %s\n", c.Scenario, c.Verdict, c.Anomalies, c.Reason)
			return o.save(c.Scenario, files[c.Scenario])
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("%w (lockfault run: %v)", err, played)
	}
	fmt.Printf("%s agrees with sim in %d of %d settled scripts, %d differ, %d undecided\n", o.world, cells-undecided-differing, cells, differing, undecided)
	return cells > 0 && differing == 0 && float64(undecided) <= o.unknown/100*float64(cells), nil
}

// save keeps a script.
func (o options) save(name, text string) error {
	if o.keep == "" {
		return nil
	}
	if err := os.MkdirAll(o.keep, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.keep, name+".txt"), []byte(text), 0o644)
}
