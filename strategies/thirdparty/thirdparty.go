// Package thirdparty adapts lock libraries by other people to the strategies'
// interfaces. The libraries are as their authors published them and are used
// through their public constructors; an adapter only translates results.
//
// A [strategies.Env] comes in, a [strategies.Lock] goes out. Of this module the
// package imports strategies alone.
package thirdparty

import (
	"time"

	"github.com/lockfault/lockfault/strategies"
)

// retryDelay is how long the adapters ask a library to wait between attempts
// where its own default is none.
const retryDelay = 100 * time.Millisecond

// All returns the adapted libraries, in the order in which reports list them.
// The slice is the caller's to keep.
func All() []strategies.Strategy {
	return []strategies.Strategy{
		redsyncOne(),
		redsyncFive(),
		redislockStrategy(),
		rueidislockStrategy(),
	}
}
