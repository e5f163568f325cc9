// Package mutex has a lock as it may stand in anybody's code.
package mutex

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// What a mutex says where it knows what came of it.
var (
	ErrTaken = errors.New("somebody else has the lock")
	ErrLost  = errors.New("the lock is lost") // or never was this mutex's
)

// A Mutex is a lock on a key in Redis, with a lease.
type Mutex struct {
	client     redis.UniversalClient
	key, value string
	lease      time.Duration
}

// New returns a mutex that nobody holds.
func New(client redis.UniversalClient, key string, lease time.Duration) *Mutex {
	return &Mutex{client: client, key: key, lease: lease}
}

// Lock waits until the mutex is its own, or returns ErrTaken when ctx is done.
func (m *Mutex) Lock(ctx context.Context) error {
	value := rand.Text()
	for {
		won, err := m.client.SetNX(ctx, m.key, value, m.lease).Result()
		if won || err != nil { // after an error the key may be there
			m.value = value
			return err
		}
		select {
		case <-ctx.Done():
			return ErrTaken
		case <-time.After(100 * time.Millisecond):
		}
	}
}
