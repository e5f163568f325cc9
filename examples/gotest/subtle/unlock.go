package mutex

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Unlock gives the mutex up. It returns ErrLost if its lease was over.
func (m *Mutex) Unlock(ctx context.Context) error {
	owner, err := m.client.Get(ctx, m.key).Result()
	if errors.Is(err, redis.Nil) || err == nil && owner != m.value {
		return ErrLost
	}
	if err != nil {
		return err
	}
	return m.client.Del(ctx, m.key).Err()
}
