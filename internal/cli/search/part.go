package search

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/explore"
)

// PartResult is the answer for a part of a search.
type PartResult struct {
	Result explore.Result
	Err    string // the error, if the search has no result
}

// ErrDropped ends a search whose result is no longer needed.
var ErrDropped = errors.New("nobody needs it any more")

// ReachNote is the key of the queue's note with the path length up to which parts still have to
// search.
const ReachNote = "reach"

// Reach holds the longest path, in moves, that a search must still follow; 0 means no limit. Reach
// is safe for concurrent use.
type Reach struct{ moves atomic.Int64 }

func (r *Reach) Get() int { return int(r.moves.Load()) }

func (r *Reach) Set(text string) {
	if n, err := strconv.Atoi(text); err == nil {
		r.moves.Store(int64(n))
	}
}

// CutAt ends a search with end if the process uses more memory than the limit. A search that grows
// until the system kills it would lose its findings.
func CutAt(limit kit.MemoryLimit, end context.CancelCauseFunc) {
	if limit.Exceeded() {
		end(explore.Cut("more than " + limit.Text + " of memory"))
	}
}
