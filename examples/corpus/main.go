// Specimens is lockfault with a hundred locks and more that it should judge: ninety with a bug
// each, whose names begin with faulty-, and twenty that do all that a lease lets a
// lock do, sound-. What each must show, and what none of the sound ones may, is in
// examples/faulty_test.go, examples/sound_test.go and docs/leases.md.
//
//	go run . run --strategy 'faulty-*,sound-*'
package main

import (
	"fmt"
	"os"

	"github.com/lockfault/lockfault"
	"github.com/lockfault/lockfault/strategies"
)

func main() {
	registry, err := strategies.Registry{}.With(faulty()...)
	if err == nil {
		registry, err = registry.With(sound()...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(lockfault.Main(registry))
}
