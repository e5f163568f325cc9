package checker

import (
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/internal/rediscmd"
)

// IdleTraffic: see [Descriptions].
const IdleTraffic Anomaly = "idle-traffic"

var idleTrafficEntry = Description{
	Name: IdleTraffic, Letter: "I", Short: "idle", Class: Hygiene,
	Meaning: "a client that neither holds nor waits goes on sending what it sent for a hold",
	find:    idleTraffic,
}

// idleRepeats is the number of requests that prove traffic of an idle client.
const idleRepeats = 3

// idleTraffic finds the clients that sent a request three times, later than two leases after their
// last hold, operation, fault or stop, if they had sent that request before only while they held or
// waited. Numbers in requests do not count, so a renewal with a date is the same each time. A command
// that some client sent before it called acquire is background traffic: heartbeats, reapers.
func idleTraffic(f *index, yield func(*Witness) bool) {
	if f.meta.TTL <= 0 || f.meta.Service != "" || f.last <= 2*f.meta.TTL {
		return // other services keep sessions alive
	}
	late := make([]int, len(f.clients))
	background := map[string]bool{}
	f.visitRequests(func(c *client, i int, when occupation, _ int) bool {
		switch when {
		case unasked:
			background[withoutNumbers(f.events[i].Command)] = true
			background[commandPrefix(f.events[i].Command)] = true
		case idleLong:
			late[c.id]++
		}
		return true
	})
	if !slices.ContainsFunc(late, func(n int) bool { return n >= idleRepeats }) {
		return
	}
	// What is known of a client's requests, by their text.
	type traffic struct {
		needed  map[string]int // the first that was sent while the client held or waited
		since   int
		repeats map[string][]int
	}
	known := make([]traffic, len(f.clients))
	f.visitRequests(func(c *client, i int, when occupation, since int) bool {
		k := &known[c.id]
		command := f.events[i].Command
		text := withoutNumbers(command)
		if late[c.id] < idleRepeats || !namesKey(command) || background[text] || background[commandPrefix(command)] {
			return true
		}
		if k.needed == nil {
			*k = traffic{needed: map[string]int{}, repeats: map[string][]int{}}
		}
		switch sent, ok := k.needed[text]; {
		case when == engaged && !ok:
			k.needed[text] = i
		case when == idleLong && ok:
			if k.since != since {
				k.since = since
				clear(k.repeats)
			}
			if k.repeats[text] = append(k.repeats[text], i); len(k.repeats[text]) == idleRepeats {
				return yield(f.idleWitness(c, sent, since, k.repeats[text]))
			}
		}
		return true
	})
}

// An occupation says what a client was doing when it sent a request.
type occupation int

const (
	unasked  occupation = iota // it had not called acquire in this life
	engaged                    // it held the lock or had an operation under way
	idle                       // neither
	idleLong                   // neither, for longer than two leases, and no fault either
)

// visitRequests calls visit with each request, what its client was doing, and the latest event before
// that kept the client busy, until visit returns false.
func (f *index) visitRequests(visit func(c *client, at int, when occupation, since int) bool) {
	type state struct {
		since int           // the latest event that gave the client something to do
		until time.Duration // it had something to do until then
		asked bool
		open  bool // an operation is under way
		holds int  // number of its holds that have begun
	}
	states := make([]state, len(f.clients))
	for i := range f.events {
		e := &f.events[i]
		if e.Kind == Fault {
			for id := range states {
				states[id].since, states[id].until = i, max(states[id].until, e.Time)
			}
			continue
		}
		c := f.client(e.Client)
		if c == nil {
			continue
		}
		s := &states[c.id]
		for s.holds < len(c.holds) && f.holds[c.holds[s.holds]].begin < i {
			s.until = max(s.until, f.holds[c.holds[s.holds]].to)
			s.holds++
		}
		switch e.Kind {
		case State, Reply, Push, Measure, Step, End:
			continue
		case Request:
			when := idle
			switch {
			case !s.asked:
				when = unasked
			case s.open || s.holds > 0 && i < f.holds[c.holds[s.holds-1]].end:
				when = engaged
			case e.Time > s.until+2*f.meta.TTL:
				when = idleLong
			}
			if !visit(c, i, when, s.since) {
				return
			}
			continue
		case Invoke:
			s.open, s.asked = true, s.asked || e.Op.takes()
		case Return:
			s.open = false
		case Crash, Restart:
			s.open, s.asked = false, false
		}
		s.since, s.until = i, max(s.until, e.Time)
	}
}

func (f *index) idleWitness(c *client, sent, since int, repeats []int) *Witness {
	last := repeats[len(repeats)-1]
	return witness(f.sprintf("%s has neither held the lock nor asked for it since %s, and sent %s again more than two leases later, %d times until %s: nothing that it does needs that any more.",
		c.name, seconds(f.events[since].Time), f.events[last].Command, len(repeats), seconds(f.events[last].Time)), append([]int{sent, since}, repeats...)...)
}

// namesKey reports whether a command names a key or runs a script. Other commands are about connections,
// channels and servers.
func namesKey(command string) bool {
	words := strings.Fields(command)
	row := rediscmd.Of(words)
	return row.RunsScript() || len(row.KeysIn(words)) > 0
}

// commandPrefix returns the part of a command that is the same for all clients: its name and its first key,
// which ends at the first separator, because clients put their own names behind one. Of a script it is
// the script and its whole first key: one script serves a client's locks on all keys.
func commandPrefix(command string) string {
	words := strings.Fields(command)
	row := rediscmd.Of(words)
	key := ""
	if keys := row.KeysIn(words); len(keys) > 0 {
		key = keys[0]
	}
	if row.RunsScript() {
		return strings.Join(words[:min(2, len(words))], " ") + " " + key
	}
	if end := strings.IndexAny(key, ":/-_.{|"); end >= 0 {
		key = key[:end+1]
	}
	return row.Name + " " + key
}

// withoutNumbers returns a command with # in place of each number.
func withoutNumbers(command string) string {
	if !strings.ContainsAny(command, "0123456789") {
		return command
	}
	var b strings.Builder
	number := false
	for _, r := range command {
		digit := '0' <= r && r <= '9'
		switch {
		case !digit:
			b.WriteRune(r)
		case !number:
			b.WriteByte('#')
		}
		number = digit
	}
	return b.String()
}
