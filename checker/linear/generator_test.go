package linear

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A recipe says which histories are drawn.
type recipe struct {
	spec    naiveSpec
	strict  bool // tries rather than acquires
	unknown bool // there are outcomes that nobody knows
	honest  bool // nothing is turned round
	length  int  // in events
}

// A drawn history, and what the lock that answered went through. If it lied, that
// need not be what explains the history.
type drawn struct {
	events []Event
	seen   map[string]bool
}

// A drawing plays a lock, and clients that mostly use it as they should.
type drawing struct {
	recipe
	r       *rand.Rand
	now     int64
	lies    int // of a hundred returns
	lost    int // of a hundred returns
	crashes int // of a hundred events
	several bool
	retire  bool // who does not know an outcome does nothing any more, and somebody else comes
	keys    []string
	clients []*drawnClient
	came    int // how many clients there have been
	holds   []drawnHold
	late    []*drawnOp // of unknown outcome, and without effect so far
	spent   int        // operations that the oracle has to keep in mind
	last    int64      // the last token
	written int64      // the largest that was accepted
	drawn
}

type drawnClient struct {
	name   string
	id     int
	under  []*drawnOp
	tokens []int64 // that it was told, or may have been given
	unsure []Event // acquires of unknown outcome that it might well release
}

// A drawnHold is one permit, one of several times, or one key.
type drawnHold struct {
	client int // 0 is nobody: it crashed
	key    string
	list   string // Multi: with which keys it was taken
	shared bool
	by     *drawnOp // whose grant it is
	told   bool     // so that it may end
	until  int64    // 0: at any time
	loose  bool     // or later
}

type drawnOp struct {
	client *drawnClient
	call   Event
	done   bool
	busy   bool
	dead   bool
	token  int64
}

const drawnSpent = 5 // more of them cost the oracle too much

// drawHistory draws a history; the same for the same source.
func drawHistory(r *rand.Rand, p recipe) drawn {
	d := &drawing{recipe: p, r: r, now: 1, drawn: drawn{seen: map[string]bool{}}}
	if !p.honest {
		d.lies = one(r, 0, 5, 15, 30)
	}
	if p.unknown {
		d.lost = one(r, 8, 20, 40)
	}
	d.crashes = one(r, 0, 3, 8)
	d.several = r.IntN(2) == 0
	d.retire = r.IntN(4) == 0
	d.keys = []string{"x", "y", "z"}[:between(r, 2, 3)]
	for i := range between(r, 2, 4) {
		d.clients = append(d.clients, newClient(i))
	}
	d.came = len(d.clients)
	for len(d.events) < p.length {
		d.step()
	}
	if !p.honest && r.IntN(6) == 0 {
		d.move()
	}
	for i := range d.events {
		d.events[i].Line = i + 1
	}
	return d.drawn
}

func newClient(i int) *drawnClient {
	return &drawnClient{name: string('A' + rune(i)), id: i + 1}
}

func (d *drawing) pct(p int) bool { return d.r.IntN(100) < p }

func (d *drawing) tell(c *drawnClient, e Event) {
	e.Time, e.Client = time.Duration(d.now)*time.Second, c.name
	d.events = append(d.events, e)
}

// step lets time pass and something happen.
func (d *drawing) step() {
	d.now += one(d.r, int64(0), 1, 1, 1)
	d.pass()
	c := one(d.r, d.clients...)
	switch {
	case d.pct(d.crashes):
		d.crash(c)
	case len(c.under) > 0 && (len(c.under) > 1 || d.spec.kind != naiveMulti || d.pct(80)):
		if d.spec.tokens() && d.pct(15) {
			d.use(c)
			return
		}
		d.back(c, d.r.IntN(len(c.under)))
	case d.spec.tokens() && d.pct(30):
		d.use(c)
	default:
		d.call(c)
	}
}

// pass lets what may happen by itself happen.
func (d *drawing) pass() {
	if d.spec.kind == naiveServed {
		d.expire()
	}
	d.holds = slices.DeleteFunc(d.holds, func(h drawnHold) bool {
		switch {
		case h.client == 0:
			return d.pct(15)
		case !d.spec.leases() || !h.told:
			return false
		case h.until == 0:
			return d.pct(8)
		case h.until > d.now:
			return false
		}
		return d.spec.sharp() && !h.loose || d.pct(40)
	})
	var pending []*drawnOp
	for _, c := range d.clients {
		pending = append(pending, c.under...)
	}
	pending = append(pending, d.late...)
	d.r.Shuffle(len(pending), func(i, j int) { pending[i], pending[j] = pending[j], pending[i] })
	for _, o := range pending {
		d.look(o)
		if d.pct(30) {
			d.effect(o)
		}
	}
	d.late = slices.DeleteFunc(d.late, func(o *drawnOp) bool { return o.done })
}

// expire has the server say that leases have ended.
func (d *drawing) expire() {
	for _, c := range d.clients {
		switch held := d.heldBy(c.id); {
		case held >= 0 && d.pct(15):
			d.holds = slices.Delete(d.holds, held, held+1)
			d.tell(c, Event{Phase: Expired})
		case slices.ContainsFunc(d.events, func(e Event) bool { return e.Client == c.name }) && d.pct(1+d.lies/3):
			d.tell(c, Event{Phase: Expired})
		}
	}
}

// noteFailedTries notes what a try sees.
func (d *drawing) look(o *drawnOp) {
	if o.call.Op != TryAcquire || o.done || o.busy || d.fits(o) {
		return
	}
	o.busy = true
	if !slices.ContainsFunc(d.holds, func(h drawnHold) bool { return h.client != 0 }) {
		d.seen["a try looks when nothing but a crash has left something"] = true
	}
}

func (d *drawing) fits(o *drawnOp) bool {
	others := slices.ContainsFunc(d.holds, func(h drawnHold) bool { return h.client != o.client.id })
	switch d.spec.kind {
	case naiveReentrant:
		return !others && (d.spec.limit < 1 || len(d.holds) < d.spec.limit)
	case naiveSemaphore:
		return len(d.holds)+permitsOfEvent(o.call) <= d.spec.limit
	case naiveMulti:
		return !slices.ContainsFunc(d.holds, func(h drawnHold) bool { return slices.Contains(strings.Fields(o.call.Key), h.key) })
	case naiveReadWrite:
		writer := slices.IndexFunc(d.holds, func(h drawnHold) bool { return !h.shared })
		if writer >= 0 {
			return d.holds[writer].client == o.client.id
		}
		return o.call.Shared || len(d.holds) == 0
	}
	return len(d.holds) == 0
}

func permitsOfEvent(e Event) int { return max(1, e.Permits) }

// effect lets an operation take effect if it can.
func (d *drawing) effect(o *drawnOp) {
	id := o.client.id
	switch {
	case o.done:
	case acquires(o.call.Op):
		if !d.fits(o) {
			return
		}
		if o.dead && d.pct(50) {
			id = 0
		}
		keys := []string{""}
		switch d.spec.kind {
		case naiveMulti:
			keys = strings.Fields(o.call.Key)
		case naiveSemaphore:
			keys = make([]string, permitsOfEvent(o.call))
		}
		for _, k := range keys {
			d.holds = append(d.holds, drawnHold{client: id, key: k, list: o.call.Key, shared: o.call.Shared, by: o})
		}
		if d.spec.tokens() {
			d.last += one(d.r, int64(1), 1, 1, 2)
			o.token = d.last
			o.client.tokens = append(o.client.tokens, o.token)
		}
		o.done = true
	case o.call.Op == Release:
		n := permitsOfEvent(o.call)
		if d.spec.kind == naiveMulti {
			n = len(strings.Fields(o.call.Key))
		}
		mine := func(h drawnHold) bool {
			return h.client == id && h.list == o.call.Key && h.shared == o.call.Shared
		}
		if d.count(mine) < n {
			return
		}
		d.holds = slices.DeleteFunc(d.holds, func(h drawnHold) bool {
			if n == 0 || !mine(h) {
				return false
			}
			n--
			return true
		})
		o.done = true
	default:
		if i := d.heldBy(id); i >= 0 {
			d.holds[i].by, d.holds[i].told, o.done = o, false, true
		}
	}
}

func acquires(op Op) bool { return op == Acquire || op == TryAcquire }

func (d *drawing) count(which func(drawnHold) bool) (n int) {
	for _, h := range d.holds {
		if which(h) {
			n++
		}
	}
	return n
}

func (d *drawing) heldBy(id int) int {
	return slices.IndexFunc(d.holds, func(h drawnHold) bool { return h.client == id })
}

// crash ends what a client does; what it held is nobody's from then on.
func (d *drawing) crash(c *drawnClient) {
	known := slices.ContainsFunc(d.events, func(e Event) bool { return e.Client == c.name })
	if !known || d.spent+len(c.under) > drawnSpent {
		return
	}
	for _, o := range d.late {
		o.dead = o.dead || o.client == c
	}
	for _, o := range c.under {
		o.dead = true
		d.late = append(d.late, o)
		d.spent++
	}
	c.under = nil
	for i := range d.holds {
		if h := &d.holds[i]; h.client == c.id {
			h.client = 0
		}
	}
	d.tell(c, Event{Phase: Crash})
}

// use presents a token: one's own, an old one, one of an acquire that nobody
// knows of, or, if it lies, any.
func (d *drawing) use(c *drawnClient) {
	t := d.last
	if n := len(c.tokens); n > 0 {
		t = c.tokens[max(0, n-1-one(d.r, 0, 0, 0, 1, 2))]
	} else if !d.pct(20) {
		return
	}
	e := Event{Phase: ReturnFail, Op: Use, Token: max(1, t)}
	if slices.Contains(c.tokens, t) && t >= d.written {
		e.Phase = ReturnOK
	}
	if d.pct(d.lies) {
		e.Phase, e.Token = ReturnOK, max(1, t+one(d.r, int64(-1), 0, 1))
	}
	if e.Phase == ReturnOK {
		d.written = max(d.written, e.Token)
	}
	d.tell(c, e)
}

// call has a client call something, mostly what makes sense.
func (d *drawing) call(c *drawnClient) {
	if d.spent+d.underWay() >= naiveOps-2 {
		return
	}
	e := Event{Phase: Invoke, Op: Acquire}
	if d.strict && d.pct(70) || d.pct(20) {
		e.Op = TryAcquire
	}
	switch d.spec.kind {
	case naiveMulti:
		e.Key = one(d.r, d.keys...)
		if other := one(d.r, d.keys...); other > e.Key {
			e.Key += " " + other
		}
	case naiveSemaphore:
		if d.several {
			e.Permits = between(d.r, 1, d.spec.limit)
		}
	case naiveReadWrite:
		e.Shared = d.pct(50)
	}
	held := d.heldBy(c.id)
	switch {
	case held >= 0 && d.pct(75), held < 0 && d.pct(12):
		e.Op = Release
		if d.spec.extends() && d.pct(45) {
			e.Op = Extend
		}
		if held >= 0 && d.pct(90) {
			h := d.holds[held]
			e.Key, e.Shared = h.list, h.shared
			if d.several && d.spec.kind == naiveSemaphore {
				e.Permits = between(d.r, 1, d.count(func(h drawnHold) bool { return h.client == c.id }))
			}
		}
	case len(c.unsure) > 0 && d.pct(50):
		u := c.unsure[len(c.unsure)-1]
		c.unsure = c.unsure[:len(c.unsure)-1]
		e.Op, e.Key, e.Shared, e.Permits = Release, u.Key, u.Shared, u.Permits
		if d.spec.extends() && d.pct(30) {
			e.Op = Extend
		}
	}
	if slices.ContainsFunc(c.under, func(o *drawnOp) bool { return o.call.Key == e.Key }) {
		return
	}
	c.under = append(c.under, &drawnOp{client: c, call: e})
	d.tell(c, e)
}

func (d *drawing) underWay() (n int) {
	for _, c := range d.clients {
		n += len(c.under)
	}
	return n
}

// back has an operation return.
func (d *drawing) back(c *drawnClient, i int) {
	o := c.under[i]
	d.look(o)
	if d.pct(80) {
		d.effect(o)
	}
	d.look(o)
	lost := d.pct(d.lost) && d.spent < drawnSpent
	waits := o.call.Op == Acquire && d.pct(80) || o.call.Op == TryAcquire && d.strict && !o.busy
	if !o.done && waits && !lost {
		return
	}
	c.under = slices.Delete(c.under, i, i+1)
	e := o.call
	switch {
	case lost:
		e.Phase = ReturnUnknown
	case o.done:
		e.Phase = ReturnOK
	default:
		e.Phase = ReturnFail
	}
	if !lost && d.pct(d.lies) {
		e.Phase = one(d.r, ReturnOK, ReturnFail)
	}
	switch e.Phase {
	case ReturnUnknown:
		d.spent++
		if acquires(e.Op) {
			c.unsure = append(c.unsure, o.call)
		}
		if !o.done {
			d.late = append(d.late, o)
		}
		d.ended(o, 0, true)
		if d.retire && len(c.under) == 0 && d.came < naiveClients {
			d.clients[slices.Index(d.clients, c)] = newClient(d.came)
			d.came++
		}
	case ReturnOK:
		d.granted(c, o, &e)
	}
	d.tell(c, e)
}

// ended says of what an operation granted when it will be over.
func (d *drawing) ended(o *drawnOp, until int64, loose bool) {
	for i := range d.holds {
		h := &d.holds[i]
		if h.by == o {
			h.told, h.until = true, until
		}
		if h.client == o.client.id && loose {
			h.loose = true
		}
	}
}

// granted writes down what a return with ok tells.
func (d *drawing) granted(c *drawnClient, o *drawnOp, e *Event) {
	if e.Op == Release {
		return
	}
	d.late = slices.DeleteFunc(d.late, func(l *drawnOp) bool {
		return l.client == c && l.call.Op == Release && l.call.Key == e.Key
	})
	if d.spec.tokens() && e.Op != Extend {
		if e.Token = o.token; e.Token == 0 {
			e.Token = d.last + 1
		}
		if d.pct(d.lies) {
			e.Token = max(1, e.Token+one(d.r, int64(-1), 1))
		}
		c.tokens = append(c.tokens, e.Token)
	}
	if !d.spec.leases() {
		return
	}
	until := d.now + one(d.r, int64(0), 1, 2, 3, 3, 4, 6)
	switch d.r.IntN(10) {
	case 0, 1:
		d.ended(o, 0, false)
		return
	case 2:
		until = max(1, d.now-1)
	}
	e.Lease = time.Duration(until) * time.Second
	if until <= d.now && d.spec.sharp() {
		d.holds = slices.DeleteFunc(d.holds, func(h drawnHold) bool { return h.by == o })
	}
	if d.spec.kind == naiveLease && d.spec.expiry == NotKnown || until <= d.now {
		until = 0
	}
	d.ended(o, until, false)
}

// move lets two events of different clients change places.
func (d *drawing) move() {
	for range 4 {
		i := d.r.IntN(len(d.events))
		if i > 0 && d.events[i].Client != d.events[i-1].Client {
			a, b := &d.events[i-1], &d.events[i]
			*a, *b = *b, *a
			a.Time, b.Time = b.Time, a.Time
			return
		}
	}
}
