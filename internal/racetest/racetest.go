// Package racetest skips tests that the race detector makes too slow.
package racetest

import "testing"

// Skip skips a test under the race detector. It is for tests that play the same cells over and over:
// what the detector finds in these it finds in other tests, and it makes a cell in virtual time ten
// times as expensive.
func Skip(t testing.TB) {
	t.Helper()
	if enabled {
		t.Skip("plays the same over and over, which the race detector makes ten times as slow")
	}
}
