package main

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

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

// scripts yields the settled scripts by name.
func (o options) scripts() iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		for i := range o.count {
			seed, of := o.seed+uint64(i), subjects()[i%len(subjects())]
			name := fmt.Sprintf("%s-%d", of.Name, seed)
			if !yield(name, settled.Script(name, seed, of)) {
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
	// What they expect is nothing: only agreement counts.
	wrong := func(c reports.Cell) bool { return !agreesWithSim(c) }
	differing, err := o.play(ctx, dir, t, wrong, "--strategy", strings.Join(names, ","), "--scenario", strings.Join(paths, ","))
	if err != nil {
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

// write writes a script below a directory.
func write(dir, name, text string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".txt"), []byte(text), 0o644)
}
