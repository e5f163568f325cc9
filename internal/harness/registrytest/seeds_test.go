//go:build !race

package registrytest_test

import "time"

// seeds is how many seeds are drawn on which each cell must agree.
const seeds = 4

var ttls = []time.Duration{time.Second, 5 * time.Second, time.Minute}

// raced says whether the race detector is there.
const raced = false
