package mutex

import (
	"testing"

	"github.com/lockfault/lockfault/locktest"
)

func TestReal(t *testing.T) {
	locktest.Real(t, subject, locktest.Only("contention", "holder-crash", "pause-in-release"))
}
