package locktest

import (
	"context"
	"fmt"
	"log"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/internal/vtime"
)

// quietRedis keeps what go-redis logs in virtual time out of the output, unless -v is given: scenarios
// break connections, so each lost one says nothing. Other lines are logged as go-redis does by default.
func quietRedis() {
	if !testing.Verbose() {
		redis.SetLogger(outsideBubbles{log.New(os.Stderr, "redis: ", log.LstdFlags|log.Lshortfile)})
	}
}

// outsideBubbles is a logger of go-redis that discards the lines of goroutines in virtual time.
type outsideBubbles struct{ log *log.Logger }

// Printf implements go-redis's logger.
func (o outsideBubbles) Printf(_ context.Context, format string, args ...any) {
	if vtime.Current() == "" {
		_ = o.log.Output(2, fmt.Sprintf(format, args...)) // go-redis ignores it, too
	}
}
