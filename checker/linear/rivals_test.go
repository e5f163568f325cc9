package linear

import (
	"strings"

	"github.com/anishathalye/porcupine"
)

// The specifications as porcupine is given them to be measured: each as quick as we could make it. States are small
// and comparable, and whatever has no known outcome takes effect where it can, so that no state has two
// successors. Where the time of an unknown release ends before it must have, it may also not take effect: then there are two.

// A call is an operation as porcupine gets it.
type call struct {
	op         Op
	client     int8
	ok         bool // it returned ok; else its outcome is unknown or, of a try, busy
	busy       bool
	reading    bool
	keys       uint8 // of a Multi: a bit for each
	permits    int8
	token      int64
	from, to   int64 // when it was called and returned
	until      int64 // when what it grants is over
	expired    bool  // by the server's clock its lease is over
	indefinite bool  // a release of unknown outcome whose time ends
}

// Places in a history: an event has an even one, the end of a lease the odd one before an event.
func placed(i int) int64 { return 2 * int64(i+1) }

// calls turns events into porcupine's operations.
func calls(spec Spec, events []Event, strict bool) []porcupine.Operation {
	var ops []porcupine.Operation
	number := map[string]int8{}
	under := map[string]int{}   // by client: the operation under way
	loose := map[string][]int{} // releases of unknown outcome whose client has not acquired since
	put := func(i int, c call) {
		ops[i] = porcupine.Operation{Input: c, Call: c.from, Return: c.to}
	}
	for i, e := range events {
		if number[e.Client] == 0 {
			number[e.Client] = int8(len(number) + 1)
		}
		at := placed(i)
		if e.Op == Use {
			ops = append(ops, porcupine.Operation{Call: at, Return: at, Input: call{op: Use, client: number[e.Client], ok: true, token: e.Token, from: at, to: at}})
			continue
		}
		if e.Phase == Expired {
			ops = append(ops, porcupine.Operation{Call: at, Return: at, Input: call{expired: true, client: number[e.Client], ok: true, from: at, to: at}})
			continue
		}
		if e.Phase == Invoke {
			c := call{op: e.Op, client: number[e.Client], reading: e.Shared, permits: int8(max(1, e.Permits)), from: at, to: never}
			for _, k := range strings.Fields(e.Key) {
				c.keys |= 1 << (k[0] - 'x')
			}
			under[e.Client] = len(ops)
			ops = append(ops, porcupine.Operation{})
			put(len(ops)-1, c)
			continue
		}
		j := under[e.Client]
		c := ops[j].Input.(call)
		switch e.Phase {
		case ReturnUnknown:
			if c.op == Release {
				loose[e.Client] = append(loose[e.Client], j)
			}
			continue
		case ReturnFail:
			c.busy, c.to = strict && c.op == TryAcquire, at
			if !c.busy {
				c.op = 0 // it says nothing
			}
		case ReturnOK:
			c.ok, c.to, c.token = true, at, e.Token
			if c.until = never; spec.kind == leaseKind || spec.kind == fencedKind {
				// Times are the numbers of events, so a lease ends just before one.
				if c.until = placed(int(e.Lease)) - 1; spec.expiry == NotKnown {
					c.until = at + 1
				}
			}
			if c.op != Release {
				for _, r := range loose[e.Client] {
					l := ops[r].Input.(call)
					l.to, l.indefinite = c.from-1, true
					put(r, l)
				}
				delete(loose, e.Client)
			}
		}
		put(j, c)
	}
	return ops
}

// rival returns porcupine's model of a specification.
func rival[S comparable](begin S, step func(s S, c *call) (S, bool), calls []porcupine.Operation) porcupine.Model {
	for _, o := range calls {
		if !o.Input.(call).indefinite {
			continue
		}
		model := porcupine.NondeterministicModel{
			Init: func() []any { return []any{begin} },
			Step: func(state, input, _ any) []any {
				c := input.(call)
				next, ok := step(state.(S), &c)
				switch {
				case !ok:
					return nil
				case c.indefinite && next != state.(S):
					return []any{next, state}
				}
				return []any{next}
			},
		}
		return model.ToModel()
	}
	return porcupine.Model{
		Init: func() any { return begin },
		Step: func(state, input, _ any) (bool, any) {
			c := input.(call)
			next, ok := step(state.(S), &c)
			return ok, next
		},
	}
}

func rivalOf(spec Spec, calls []porcupine.Operation) porcupine.Model {
	switch spec.kind {
	case reentrantKind:
		return rival(owned{}, func(s owned, c *call) (owned, bool) { return s.step(c, int8(min(spec.limit-1, 100)+1)) }, calls)
	case leaseKind, fencedKind:
		return rival(leased{}, func(s leased, c *call) (leased, bool) { return s.step(c, spec) }, calls)
	case multiKind:
		return rival(listed{}, listed.step, calls)
	case semaphoreKind:
		return rival(counted{}, func(s counted, c *call) (counted, bool) { return s.step(c, int8(spec.limit)) }, calls)
	case tokensKind:
		return rival(tokened{}, tokened.step, calls)
	case readWriteKind:
		return rival(shared{}, shared.step, calls)
	}
	return rival(owned{}, func(s owned, c *call) (owned, bool) { return s.step(c, 1) }, calls)
}

// owned is a mutex, a reentrant lock, or a lease by the server's clock.
type owned struct{ owner, count int8 }

func (s owned) step(c *call, limit int8) (owned, bool) {
	switch {
	case c.expired && s.owner == c.client:
		return owned{}, true
	case c.op == 0:
		return s, true
	case c.busy:
		return s, s.owner != 0
	case c.op == Extend:
		return s, s.owner == c.client || !c.ok
	case c.op == Release && s.owner == c.client:
		if s.count--; s.count == 0 {
			s.owner = 0
		}
		return s, true
	case c.op != Release && (s.owner == 0 || s.owner == c.client && s.count < limit):
		return owned{c.client, s.count + 1}, true
	}
	return s, !c.ok
}

// leased is a lease, or a lock with tokens and leases. now is before when the next step cannot be.
type leased struct {
	owner          int8
	until, now     int64
	last, accepted int64
}

func (s leased) step(c *call, spec Spec) (leased, bool) {
	s.now = max(s.now, c.from)
	known := spec.kind == leaseKind && spec.expiry == Known
	acquire := c.op == Acquire || c.op == TryAcquire
	switch {
	case s.now > c.to:
		return s, false
	case c.op == 0:
		return s, true
	case c.op == Use:
		s.accepted = max(s.accepted, c.token)
		return s, c.token <= s.last && c.token == s.accepted
	case c.busy:
		return s, s.owner != 0 && (!known || s.now < s.until || s.until == 0)
	case acquire && (s.owner == 0 || c.to >= s.until):
		if s.owner != 0 {
			s.now = max(s.now, s.until)
		}
		if spec.kind == fencedKind {
			switch {
			case !c.ok:
				s.last++
			case c.token <= s.last:
				return s, false
			default:
				s.last = c.token
			}
		}
		s.owner, s.until = c.client, c.until
		return s, true
	case !acquire && s.owner == c.client && (!known || s.now < s.until || s.until == 0):
		if s.owner, s.until = 0, 0; c.op == Extend {
			s.owner, s.until = c.client, c.until
		}
		return s, true
	}
	return s, !c.ok || spec.kind == fencedKind && c.op == Release
}

// listed is a lock of several keys, each with the client and the list that has it.
type listed struct {
	owner [3]int8
	by    [3]uint8
}

func (s listed) step(c *call) (listed, bool) {
	free, mine := true, true
	for k := range s.owner {
		if c.keys>>k&1 == 1 {
			free = free && s.owner[k] == 0
			mine = mine && s.owner[k] == c.client && s.by[k] == c.keys
		}
	}
	switch {
	case c.op == 0:
		return s, true
	case c.busy:
		return s, !free
	case c.op == Release && mine, c.op != Release && free:
		for k := range s.owner {
			if c.keys>>k&1 == 1 {
				if s.owner[k], s.by[k] = 0, 0; c.op != Release {
					s.owner[k], s.by[k] = c.client, c.keys
				}
			}
		}
		return s, true
	}
	return s, !c.ok
}

// counted is a semaphore.
type counted struct {
	out int8
	by  [32]int8
}

func (s counted) step(c *call, n int8) (counted, bool) {
	switch {
	case c.op == 0:
		return s, true
	case c.busy:
		return s, s.out+c.permits > n
	case c.op == Release && s.by[c.client] >= c.permits:
		s.by[c.client] -= c.permits
		s.out -= c.permits
		return s, true
	case c.op != Release && s.out+c.permits <= n:
		s.by[c.client] += c.permits
		s.out += c.permits
		return s, true
	}
	return s, !c.ok
}

// tokened is a mutex with tokens.
type tokened struct {
	owner          int8
	last, accepted int64
}

func (s tokened) step(c *call) (tokened, bool) {
	switch {
	case c.op == 0:
		return s, true
	case c.op == Use:
		s.accepted = max(s.accepted, c.token)
		return s, c.token <= s.last && c.token == s.accepted
	case c.busy:
		return s, s.owner != 0
	case c.op == Release && s.owner == c.client:
		s.owner = 0
		return s, true
	case c.op != Release && s.owner == 0 && (!c.ok || c.token > s.last):
		s.owner, s.last = c.client, max(s.last+1, c.token)
		return s, true
	}
	return s, !c.ok
}

// shared is a lock of readers and writers.
type shared struct {
	writer, count int8
	reads         [12]int8
}

func (s shared) step(c *call) (shared, bool) {
	others := false // who read
	for i, n := range s.reads {
		others = others || n > 0 && int8(i) != c.client
	}
	room := s.writer == c.client || s.writer == 0 && (c.reading || !others && s.reads[c.client] == 0)
	switch {
	case c.op == 0:
		return s, true
	case c.busy:
		return s, !room
	case c.op == Release && c.reading && s.reads[c.client] > 0:
		s.reads[c.client]--
		return s, true
	case c.op == Release && !c.reading && s.writer == c.client:
		if s.count--; s.count == 0 {
			s.writer = 0
		}
		return s, true
	case c.op != Release && room && c.reading:
		s.reads[c.client]++
		return s, true
	case c.op != Release && room:
		s.writer, s.count = c.client, s.count+1
		return s, true
	}
	return s, !c.ok
}
