package mutex

import (
	"testing"

	"github.com/lockfault/lockfault/locktest"
)

func TestSearch(t *testing.T) {
	locktest.Explore(t, subject, locktest.Search{
		Faults:  map[locktest.Fault]int{"advance": 1},
		Accepts: []string{"overlap", "stale-write"},
	})
}
