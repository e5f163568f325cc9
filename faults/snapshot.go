package faults

import "time"

// A Snapshot is a world as somebody sees it who sees everything at one instant. It says
// the same whenever the same has happened: owner values go by the short names of the
// [Attributor], and there are no addresses in it.
type Snapshot struct {
	// Servers are in the order of the topology: n1/0, n1/1 … n2/0 …
	Servers []ServerView
	// Held is what the gate holds, in order of arrival.
	Held []HeldView
	// Unread is what has come to clients that are stopped, which will read it when they
	// go on, in order of arrival.
	Unread []HeldView
	// Wrote is how many values each client has written, by which the next is named.
	Wrote map[string]int
	// Owners shows what is known of values that don't tell by themselves whose they
	// are, because several clients have sent them, or might.
	Owners string
}

// ServerView is a server in a [Snapshot].
type ServerView struct {
	Name string
	// Up says that its process lives, Paused that it is stopped, and Leads that it
	// is its node's primary.
	Up, Paused, Leads bool
	// Data shows all that it holds, with the dates at which it will be gone, in one
	// order.
	Data string
	// Owner is the client whose the lock is taken to be by what the server holds; empty if it
	// is nobody's, or, where Known is false, if that can't be told.
	Owner string
	Known bool
	// Knows shows what else it will go by: the scripts that it has, who waits there,
	// in their order, and what is on its way to it from its leader.
	Knows string
	// Talks names the clients that it may say something to though they have not
	// asked: those that wait there, subscribe or track. In order.
	Talks []string
	// Next is when the first key will be gone, since Begin, on the harness's clock and
	// to the millisecond; 0 if none ever will.
	Next time.Duration
}

// HeldView is a message that the gate holds, or that waits for who is to have it, in a
// [Snapshot].
type HeldView struct {
	Client, Node string
	Way          Way
	// Command is the request, or what a reply or push belongs to, as histories
	// have it.
	Command string
	// Reply is the reply or push itself.
	Reply string
	// Sent is when it set out, since Begin, to the millisecond.
	Sent time.Duration
}

// A Snapshotter is a [World] that can be looked at: those of virtual time can.
type Snapshotter interface {
	World
	// View returns how the world is. It is for the goroutine that plays the
	// script.
	View() Snapshot
}

// Instant returns a time to the millisecond: to the one before it if it is less than a
// tenth of one later, else to the next. Of two runs in which the same happens in
// another order, the steps of a script and what latency does by chance make no more of a difference.
func Instant(t time.Duration) time.Duration {
	return (t + 900*time.Microsecond).Truncate(time.Millisecond)
}
