// Package locktest tests a distributed lock on Redis with go test: it plays the
// scenarios of lockfault's library against it, in virtual time and in the test's own
// process. No server is needed, and a scenario takes milliseconds.
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
// The lock is ordinary Go on an ordinary go-redis client, and knows nothing of all
// this. [Run] plays scenarios, [Explore] searches for schedules that nobody has
// thought of, [Fuzz] lets package testing draw them, and [Real] plays on real servers. docs/locktest.md is the manual.
//
// # Settings
//
// Settings are environment variables, since go test ./... gives its flags to all
// packages and most have never heard of these. [Flags] makes flags of them.
//
//	LOCKFAULT_OUT=DIR      write the report of each Run below that directory
//	LOCKFAULT_ACCEPT=1     write what the lock shows now as what it may show from now on
//	LOCKFAULT_STORY=1      tell the whole story of a scenario that fails; of each, with -v
//	LOCKFAULT_ISOLATE=1    play each scenario in a process of its own, too, and compare
//	LOCKFAULT_SEED=N       seed of everything that is random; default 1
//	LOCKFAULT_TIMEOUT=60s  real time that one scenario may take
//	LOCKFAULT_REAL=process the world in which Real plays; LOCKFAULT_PROGRAM=FILE names lockfault
//	LOCKFAULT_FOR=10s      real time that one search may take; default 10s, 2s with -short
package locktest

import "github.com/lockfault/lockfault/strategies"

// What a lock is made of, and with: see package strategies, whose these are.
type (
	// Env is what a lock is made of: Nodes, ordinary go-redis clients; Key, its name;
	// TTL, its lease; and more.
	Env = strategies.Env
	// Lock is one client's handle on the lock. Further abilities are found by the
	// methods that it has: TryAcquire, Extend, Token, ValidUntil, Lost, Close.
	Lock = strategies.Lock
	// Change is what a Subject's Owner reads.
	Change = strategies.Change
)

// What a lock's methods return where they know what came of it. Any other error says
// that the outcome isn't known.
var (
	ErrNotAcquired = strategies.ErrNotAcquired
	ErrNotHeld     = strategies.ErrNotHeld
)

// What kind of lock a [Subject] is, where that doesn't show by itself. docs/adding-a-strategy.md
// says what each tag means.
const (
	PlainDel  = strategies.TagPlainDel
	Redisson  = strategies.TagRedisson
	Quorum    = strategies.TagQuorum
	Renewing  = strategies.TagRenewing
	Fenced    = strategies.TagFenced
	Extending = strategies.TagExtending
)
