package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios/racefree"
)

// subjects returns the strategies to play: one for each way of keeping a lock.
func subjects() []racefree.Subject {
	return []racefree.Subject{
		{Name: "set-nx-px-lua", Nodes: 1, Replicas: 2},
		{Name: "setnx-expire-repair", Nodes: 1, Replicas: 1},
		{Name: "redisson", Nodes: 1, Replicas: 2, Watchdog: true},
		{Name: "set-wait", Nodes: 1, Replicas: 2},
		{Name: "fenced", Nodes: 1, Replicas: 1},
		{Name: "redlock", Nodes: 5},
	}
}

// scripts yields the names and texts of the settled scripts.
func (o options) scripts() iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for i := range o.count {
			seed, of := o.seed+uint64(i), subjects()[i%len(subjects())]
			name := fmt.Sprintf("%s-%d", of.Name, seed)
			if !yield(name, racefree.Script(name, seed, of)) {
				return
			}
		}
	}
}

func (o options) writeScripts() error {
	for name, text := range o.scripts() {
		if err := write(o.keep, name, text); err != nil {
			return err
		}
	}
	return nil
}

func (o options) playSettled(ctx context.Context, dir string, t *tally) error {
	fmt.Printf("settled scripts: seeds %d to %d\n", o.seed, o.seed+uint64(o.count)-1)
	files := map[string]string{}
	var paths, names []string
	for _, of := range subjects() {
		names = append(names, of.Name)
	}
	for name, text := range o.scripts() {
		files[name] = text
		paths = append(paths, filepath.Join(dir, name+".txt"))
		if err := write(dir, name, text); err != nil {
			return err
		}
	}
	// These scripts have no expectations: only agreement counts.
	var failed error
	judge := func(c reports.Cell) (bool, string) {
		if agreesWithSim(c) {
			return false, ""
		}
		chance, err := o.chance(ctx, dir, c)
		failed = errors.Join(failed, err)
		if chance {
			return false, fmt.Sprintf("at the lease of %v, for which it was played again, it is chance in sim, too", c.Lease)
		}
		return true, ""
	}
	differing, err := o.play(ctx, dir, t, judge, "--strategy", strings.Join(names, ","), "--scenario", strings.Join(paths, ","))
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	for _, name := range differing {
		fmt.Printf("\n# %s\n\n%s\n", name, files[name])
		if o.keep == "" {
			continue
		}
		if err := write(o.keep, name, files[name]); err != nil {
			return err
		}
	}
	return nil
}

// chances is the largest number of seeds with which a cell is tried to see whether its result is
// random.
const chances = 16

// chance reports whether the result of a rerun cell depends on the seed in virtual time. A script
// is settled at its own lease, but not always at a longer one: waits of a strategy in absolute
// time, as in set-wait, do not grow with the lease.
func (o options) chance(ctx context.Context, dir string, c reports.Cell) (bool, error) {
	if c.Twin == nil { // played at its own lease
		return false, nil
	}
	shown := map[string]bool{}
	for seed := 1; seed <= chances && len(shown) < 2; seed++ {
		err := o.lockfaultRun(ctx, filepath.Join(dir, "chance"), func(c reports.Cell) error {
			shown[fmt.Sprint(c.Verdict, c.Anomalies)] = true
			return nil
		}, "--world", "sim", "--ttl", c.Lease.String(), "--seed", fmt.Sprint(seed), "--strategy", c.Strategy, "--scenario", filepath.Join(dir, c.Scenario+".txt"))
		if err != nil {
			return false, err
		}
	}
	return len(shown) > 1, nil
}

// write writes a script into a directory, which it creates if necessary.
func write(dir, name, text string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".txt"), []byte(text), 0o644)
}
