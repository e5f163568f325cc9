package registrytest_test

import (
	"context"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
)

// go-redis logs each connection that breaks, which here is the point.
func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	os.Exit(m.Run())
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
