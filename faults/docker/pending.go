package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/lockfault/lockfault/internal/reaper"
)

// itemLabel is the label by which a single container or network is known
// before it has an ID.
const itemLabel = "lockfault.item"

// pendingCreates keeps what the engine was asked to make and has not answered for. It
// does what it was asked for even if the asker has gone, and shows nothing of it
// until it is done, which may take long: whoever cleans up must wait for these.
// Safe for concurrent use.
type pendingCreates struct {
	watchman *reaper.Reaper // is told; nil if there is none

	mu    sync.Mutex
	count int
	items map[string]bool
}

// makeLimit is how long an engine may take to make something.
const makeLimit = time.Minute

// one calls do, which asks the engine to make something with that value of the
// item label. It can't be interrupted: else nobody would know what came of it.
func (m *pendingCreates) one(ctx context.Context, what string, do func(ctx context.Context, item string) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeLimit)
	defer cancel()
	m.mu.Lock()
	m.count++
	item := fmt.Sprintf("%s %d", what, m.count)
	m.items[item] = true
	m.mu.Unlock()
	if err := send(m.watchman, reaperMessage{Making: item}); err != nil {
		return err
	}
	err := do(ctx, item)
	if ctx.Err() != nil {
		return err // it may still come
	}
	m.mu.Lock()
	delete(m.items, item)
	m.mu.Unlock()
	return errors.Join(err, send(m.watchman, reaperMessage{Made: item}))
}

// left returns what has not been answered for.
func (m *pendingCreates) left() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.items)
}
