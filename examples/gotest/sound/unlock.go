package mutex

import (
	"context"

	"github.com/redis/go-redis/v9"
)

var deleteIfMine = redis.NewScript(`
if redis.call("GET", KEYS[1]) == ARGV[1] then
	return redis.call("DEL", KEYS[1])
end
return 0`)

// Unlock gives the mutex up. It returns ErrLost if its lease was over.
func (m *Mutex) Unlock(ctx context.Context) error {
	n, err := deleteIfMine.Run(ctx, m.client, []string{m.key}, m.value).Int()
	if err == nil && n == 0 {
		return ErrLost
	}
	return err
}
