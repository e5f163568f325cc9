// Package thirdparty adapts lock libraries by other authors to the interfaces of package
// strategies. The libraries are unmodified and are used through their public constructors; an
// adapter only translates results.
//
// The input is a [strategies.Env], the output a [strategies.Lock]. The only package of this module
// that thirdparty imports is strategies.
package thirdparty

import (
	"time"

	"github.com/lockfault/lockfault/strategies"
)

// retryDelay is the delay between attempts for libraries without a default delay.
const retryDelay = 100 * time.Millisecond

// All returns the adapted libraries, in the order of the reports. The caller owns the slice.
func All() []strategies.Strategy {
	return []strategies.Strategy{
		redsyncOne(),
		redsyncFive(),
		redislockStrategy(),
		rueidislockStrategy(),
	}
}
