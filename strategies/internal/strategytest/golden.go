package strategytest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfault/lockfault/strategies"
)

var update = flag.Bool("update", false, "write the golden files anew")

// PlayGolden runs the steps, one per line, and compares the commands that reached the nodes with
// testdata/NAME.txt of the calling package. The steps are
//
//	A acquire [PATIENCE]    A try    A release    A extend
//	A begin acquire [PATIENCE]    join A    wait DURATION
//
// An additional client, whose commands are not recorded, loads the scripts first. Each command
// takes a millisecond, which orders the commands of one client.
func PlayGolden(t *testing.T, s strategies.Strategy, name string, steps string) {
	t.Helper()
	var got strings.Builder
	Run(t, s, func(_ *testing.T, r *Fixture) {
		names := newNamer()
		for i := range r.nodes {
			r.Slow(i+1, time.Millisecond)
		}
		r.loadScripts()
		r.take(names)
		r.Forget()
		begun := map[string]chan string{}
		for line := range strings.Lines(steps) {
			step := strings.Fields(line)
			if len(step) == 0 {
				continue
			}
			result := r.step(step, begun)
			synctest.Wait()
			for _, line := range r.take(names) {
				fmt.Fprintln(&got, line)
			}
			fmt.Fprintf(&got, "%s%s\n", strings.Join(step, " "), result)
		}
	})
	Golden(t, filepath.Join("testdata", name+".txt"), got.String())
}

// Golden compares the text with a file, or writes the file with -update.
func Golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run the test with -update to make it", err)
	}
	if got != string(want) {
		t.Errorf("%s differs.\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func (r *Fixture) loadScripts() {
	lock := r.Lock("Z")
	_ = lock.Acquire(context.Background())
	if extender, ok := lock.(strategies.Extender); ok {
		_ = extender.Extend(context.Background())
	}
	_ = lock.Release(context.Background())
	synctest.Wait()
}

func (r *Fixture) step(step []string, begun map[string]chan string) string {
	r.T.Helper()
	switch {
	case step[0] == "wait":
		d, err := time.ParseDuration(step[1])
		if err != nil {
			r.T.Fatal(err)
		}
		time.Sleep(d)
		return ""
	case step[0] == "join":
		return ": " + <-begun[step[1]]
	case step[1] == "begin":
		done := make(chan string, 1)
		begun[step[0]] = done
		lock := r.Lock(step[0])
		go func() { done <- call(lock, step[2:]) }()
		return ""
	default:
		return ": " + call(r.Lock(step[0]), step[1:])
	}
}

// call calls an operation and returns its result as text.
func call(lock strategies.Lock, op []string) string {
	ctx := context.Background()
	if len(op) > 1 {
		patience, err := time.ParseDuration(op[1])
		if err != nil {
			return err.Error()
		}
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx = limited
	}
	var err error
	switch op[0] {
	case "acquire":
		err = lock.Acquire(ctx)
	case "try":
		err = lock.(strategies.TryAcquirer).TryAcquire(ctx)
	case "release":
		err = lock.Release(ctx)
	case "extend":
		extender, ok := lock.(strategies.Extender)
		if !ok {
			return "can't"
		}
		err = extender.Extend(ctx)
	default:
		return "there is no " + op[0]
	}
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, strategies.ErrNotAcquired):
		return "not acquired"
	case errors.Is(err, strategies.ErrNotHeld):
		return "not held"
	default:
		return "unknown: " + err.Error()
	}
}
