package harness_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/docker"
	"github.com/lockfault/lockfault/harness/client"
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
		if err := client.Serve(os.Stdin, out, lookup); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(watchmanProcess) != "" {
		if err := docker.Watch(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
