package main

import (
	"github.com/redis/rueidis/rueidislock"

	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/thirdparty"
)

// onRueidislock returns rueidislock with options that might cure what it shows.
func onRueidislock() []strategies.Strategy {
	return []strategies.Strategy{
		thirdparty.Rueidislock("rueidislock-set-px", "rueidislock with FallbackSETPX: an acquire's lease is a time to live, not a date",
			func(o *rueidislock.LockerOption) { o.FallbackSETPX = true }),
		thirdparty.Rueidislock("rueidislock-extend-often", "rueidislock with an ExtendInterval of a twentieth of the lease",
			func(o *rueidislock.LockerOption) { o.ExtendInterval = o.KeyValidity / 20 }),
	}
}
