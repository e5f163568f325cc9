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

// itemLabel is the label that identifies a container or network before it has an ID.
const itemLabel = "lockfault.item"

// pendingCreates tracks requests to the engine that have not been answered. The engine completes a
// request even if the requester has ended, and shows nothing of the object until then, which may
// take long: a cleanup must wait for these objects. It is safe for concurrent use.
type pendingCreates struct {
	watchman *reaper.Reaper // receives every change; may be nil

	mu    sync.Mutex
	count int
	items map[string]bool
}

// makeLimit is the maximum time for the engine to make an object.
const makeLimit = time.Minute

// one calls do, which asks the engine to make an object with the given value of the item label.
// Canceling ctx doesn't interrupt do: the outcome would be unknown.
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
		return err // the object may still appear
	}
	m.mu.Lock()
	delete(m.items, item)
	m.mu.Unlock()
	return errors.Join(err, send(m.watchman, reaperMessage{Made: item}))
}

// left returns the items that have not been answered.
func (m *pendingCreates) left() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.items)
}
