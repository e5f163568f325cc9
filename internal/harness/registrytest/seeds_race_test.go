//go:build race

package registrytest_test

import "time"

// seeds is smaller under the race detector, which makes a cell ten times as
// expensive; make test has the larger number without it.
const seeds = 1

var ttls = []time.Duration{time.Second}

// raced says whether the race detector is there.
const raced = true
