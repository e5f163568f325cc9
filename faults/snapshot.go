package faults

import (
	"regexp"
	"time"
)

// Snapshot is the complete state of a world at one instant. Snapshots are equal whenever the same
// events have happened: owner values appear by the short names of the [Attributor], and a Snapshot
// contains no addresses.
type Snapshot struct {
	// Servers are in the order of the topology: n1/0, n1/1 … n2/0 …
	Servers []ServerView
	// Held lists the messages that the gate holds, in order of arrival.
	Held []HeldView
	// Unread lists the messages that have arrived at paused clients, in order of arrival. The
	// clients read them after they resume.
	Unread []HeldView
	// Wrote is the number of values that each client has written. The number determines the next
	// short name.
	Wrote map[string]int
	// Owners shows what is known of values that do not identify their owner, because several
	// clients have sent them or might send them.
	Owners string
}

// ServerView is a server in a [Snapshot].
type ServerView struct {
	Name string
	// Up reports that the server's process runs, Paused that the process is stopped, and Leads that
	// the server is its node's primary.
	Up, Paused, Leads bool
	// Data shows the server's keys with their expiry, in a fixed order.
	Data string
	// Owner is the client that owns the lock according to the server's data. Owner is empty if the
	// lock is free or, where Known is false, if the owner is unknown.
	Owner string
	Known bool
	// Knows shows the other state that affects the server's behavior. This state is its cached
	// scripts, the blocked clients in their order, and the replication data on its way from its
	// leader.
	Knows string
	// Talks names, in order, the clients to which the server may send a message without a new
	// request: clients that are blocked, subscribe or track keys.
	Talks []string
	// Next is when the first key expires, since Begin, on the harness's clock and rounded to
	// milliseconds; 0 if no key expires.
	Next time.Duration
}

// HeldView is a message in a [Snapshot] that the gate holds or that its receiver has not read yet.
type HeldView struct {
	Client, Node string
	Way          Way
	// Command is the request, or the command to which a reply or push belongs, as histories record
	// it.
	Command string
	// Reply is the reply or push itself; empty for a request.
	Reply string
	// Sent is when the message was sent, since Begin, rounded to milliseconds.
	Sent time.Duration
}

// Snapshotter is a [World] whose state can be read. Worlds in virtual time implement it.
type Snapshotter interface {
	World
	// View returns the present state of the world. Only the goroutine that runs the script may call
	// it.
	View() Snapshot
}

// Instant rounds t to milliseconds: down if the remainder is below 0.25 ms, otherwise up. Two runs
// with the same events in a different order differ in time only by the script's steps, below 0.25 ms
// together, and by random latency, from 0.3 to 0.7 ms each way; the rounding removes these differences.
func Instant(t time.Duration) time.Duration {
	return (t + 750*time.Microsecond).Truncate(time.Millisecond)
}

var durations = regexp.MustCompile(`\b(\d+(\.\d+)?(ns|µs|us|ms|s|m|h))+\b`)

// Untimed returns a text of a lock without its durations: they differ between two runs as [Instant] says.
func Untimed(text string) string { return durations.ReplaceAllString(text, "0s") }
