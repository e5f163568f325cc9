package main

import (
	"slices"

	"github.com/lockfault/lockfault/strategies"
)

// faulty returns the locks that have a bug. Each has one, which its Summary tells
// in a sentence; what it has to show, and where, is in faulty.txt, which was
// written before they were played.
func faulty() []strategies.Strategy {
	return slices.Concat(
		faultyValues(), faultyAcquires(), faultyReleases(), faultyAnswers(), faultyBuilds(), faultyWaits(),
		faultyRenewals(), faultyExtends(), faultyTokens(), faultyQuorums(), publicLocks(),
	)
}
