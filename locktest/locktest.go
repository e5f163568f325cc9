// Package locktest tests a distributed lock on Redis with go test. The package runs the scenarios
// of lockfault's library against the lock, in virtual time and in the test's own process. No server
// is needed, and a scenario takes milliseconds.
//
//	func TestMyLock(t *testing.T) {
//		locktest.Run(t, locktest.Subject{
//			New: func(env locktest.Env) (locktest.Lock, error) {
//				return mylock.New(env.Nodes[0], env.Key, env.TTL), nil
//			},
//		}, locktest.Survives("holder-crash", "pause-in-release"),
//			locktest.Accepts("gc-pause-holding", "overlap"))
//	}
//
// The lock is ordinary Go on an ordinary go-redis client and needs no changes for the test. [Run]
// runs scenarios, [Explore] searches for schedules that break the lock, [Fuzz] lets package testing
// generate scripts, and [Real] runs scenarios on real servers. docs/locktest.md is the manual.
//
// # Settings
//
// Settings are environment variables, since go test ./... passes its flags to all packages, and
// most packages do not define these flags. [Flags] defines a flag for each setting.
//
//	LOCKFAULT_OUT=DIR      write the report of each Run below that directory
//	LOCKFAULT_ACCEPT=1     save the current anomalies as the accepted anomalies
//	LOCKFAULT_STORY=1      print the whole story of a failed scenario; of each scenario with -v
//	LOCKFAULT_ISOLATE=1    run each scenario in its own process, then all in one; compare
//	LOCKFAULT_SEED=N       seed of all randomness; default 1
//	LOCKFAULT_TIMEOUT=60s  limit of the real time of one scenario
//	LOCKFAULT_REAL=process the world of Real; LOCKFAULT_PROGRAM=FILE is the lockfault program
//	LOCKFAULT_FOR=10s      limit of the real time of one search; default 10s, 2s with -short
package locktest

import "github.com/lockfault/lockfault/strategies"

// Types from which a lock is built. Package strategies defines them.
type (
	// Env holds the inputs of a lock: Nodes, which are ordinary go-redis clients; Key, the lock's
	// name; TTL, the lease; and more.
	Env = strategies.Env
	// Lock is one client's handle on the lock. Optional abilities are found by the methods
	// TryAcquire, Extend, Token, ValidUntil, Lost and Close.
	Lock = strategies.Lock
	// Change is the argument of a Subject's Owner.
	Change = strategies.Change
)

// Errors that a lock's methods return if the outcome is known. Any other error means that the
// outcome is unknown.
var (
	ErrNotAcquired = strategies.ErrNotAcquired
	ErrNotHeld     = strategies.ErrNotHeld
)

// Tags of a [Subject], for properties that locktest cannot find out. docs/adding-a-strategy.md
// explains each tag.
const (
	PlainDel  = strategies.TagPlainDel
	Redisson  = strategies.TagRedisson
	Quorum    = strategies.TagQuorum
	Renewing  = strategies.TagRenewing
	Fenced    = strategies.TagFenced
	Extending = strategies.TagExtending
)
