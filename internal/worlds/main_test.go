package worlds_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/internal/containers"
	"github.com/lockfault/lockfault/internal/harness/client"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
)

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// What in the environment makes this program a client's process, or one that
// removes what a killed host left.
const (
	clientProcess   = "LOCKFAULT_TEST_CLIENT"
	watchmanProcess = "LOCKFAULT_TEST_WATCHMAN"
)

// go-redis logs each connection that it can't make, and here many can't be.
func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	if os.Getenv(clientProcess) != "" {
		out := os.Stdout
		os.Stdout = os.Stderr
		d := &deaf{out: out}
		if err := client.Serve(os.Stdin, d, d.lookup); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(watchmanProcess) != "" {
		if err := (containers.Docker{}).Watch(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// deaf is where a client writes that doesn't understand that its caller gives up, if its
// strategy is called so.
type deaf struct {
	out io.Writer
	is  bool
}

func (d *deaf) lookup(name string) (strategies.Strategy, bool) {
	d.is = name == "deaf"
	return lookup(name)
}

func (d *deaf) Write(line []byte) (int, error) {
	if d.is {
		_, err := d.out.Write(bytes.Replace(line, []byte(`,"cancels":true`), nil, 1))
		return len(line), err
	}
	return d.out.Write(line)
}

// venue returns the venue of a place, whose clients and watchmen are this program,
// until the test ends.
func venue(t *testing.T, place worlds.Place) *worlds.Env {
	t.Helper()
	as := func(what string) func() *exec.Cmd {
		return func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), what+"=1", "GORACE=atexit_sleep_ms=0") // or each takes a second to end
			return cmd
		}
	}
	v, err := worlds.NewVenue(place, worlds.Programs{Client: as(clientProcess), Watchman: as(watchmanProcess), Containers: containers.Docker{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}
