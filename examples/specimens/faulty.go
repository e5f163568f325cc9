package main

import "github.com/lockfault/lockfault/strategies"

// faulty returns the locks that have a bug.
func faulty() []strategies.Strategy { return nil }
