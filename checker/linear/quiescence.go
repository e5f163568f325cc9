package linear

// quiet returns the positions at which no client holds and nothing is under way, and which separate
// the history: if the whole is legal, so is the part from such a position on.
func quiet(spec Spec, strict bool, events []Event) []int {
	c := newCutter(spec, strict, events)
	q := &quiescenceFinder{reducer: c, strict: strict, last: map[string]int{}, accounts: map[string][]*tokenAccount{}}
	roles := make([]role, len(events))
	for _, l := range c.careers {
		a := &tokenAccount{}
		for i := range l.steps {
			o := &l.steps[i]
			roles[o.at] = role{a, o, false}
			if o.crashed() {
				continue // a crash concerns several accounts
			}
			q.last[l.client] = max(q.last[l.client], o.at)
			if o.ret != nil {
				roles[o.to] = role{a, o, true}
				q.last[l.client] = max(q.last[l.client], o.to)
			}
		}
		q.accounts[l.client] = append(q.accounts[l.client], a)
	}
	needed := 0 // no token is used from here on
	if c.tokens {
		for _, i := range c.used {
			if events[i].Phase == ReturnOK {
				needed = i + 1
			}
		}
	}
	open := 0 // number of calls under way that will return, whatever their outcome
	var places []int
	for i := range events {
		e := &events[i]
		switch {
		case e.Phase == Crash:
			for _, a := range q.accounts[e.Client] {
				q.change(a, q.crash)
			}
		case roles[i].tokenAccount != nil:
			q.change(roles[i].tokenAccount, func(a *tokenAccount) { q.step(a, roles[i]) })
		}
		switch {
		case e.Op == Use, e.Phase == Crash, e.Phase == Expired:
		case e.Phase != Invoke:
			open--
		case roles[i].o == nil || roles[i].o.ret != nil:
			open++
		}
		if i >= q.last[e.Client] {
			for _, a := range q.accounts[e.Client] {
				q.change(a, q.retire)
			}
		}
		if open == 0 && q.dirty == 0 && i+1 >= needed && i+1 < len(events) {
			places = append(places, i+1)
		}
	}
	return places
}

// quiescenceFinder is the state of quiet.
type quiescenceFinder struct {
	*reducer
	strict   bool
	accounts map[string][]*tokenAccount // by client
	last     map[string]int             // by client: its last event that did not fail
	dirty    int                        // number of accounts that may hold something
}

// A role is the part of an event in an operation that did not fail.
type role struct {
	tokenAccount *tokenAccount
	o            *callOf
	back         bool // the event is its return
}

// A tokenAccount is what an actor holds: held for certain, unless something was in doubt since it
// last held nothing.
type tokenAccount struct {
	held    int
	doubt   bool // it may hold more, which matters only if a later operation uses it
	muddled bool // it is unknown which hold it used
}

func (a *tokenAccount) dirty() bool { return a.held != 0 || a.doubt || a.muddled }

func (q *quiescenceFinder) change(a *tokenAccount, by func(*tokenAccount)) {
	before := a.dirty()
	by(a)
	switch after := a.dirty(); {
	case after && !before:
		q.dirty++
	case before && !after:
		q.dirty--
	}
}

// step processes an event of an operation, or the end of a lease.
func (q *quiescenceFinder) step(a *tokenAccount, r role) {
	o := r.o
	n := 1
	if q.counted {
		n = max(1, o.e.Permits)
	}
	switch {
	case o.expired():
		a.held = 0
	case o.outcome != certain:
		a.doubt = a.doubt || o.e.Op != Extend
	case !r.back:
	case o.e.Op == Release && (a.doubt || a.held < n && !q.lax):
		a.muddled = true
	case o.e.Op == Release && q.lax:
		a.held = 0
	case o.e.Op == Release:
		a.held -= n
	case o.e.Op == Extend:
		a.muddled = a.muddled || a.held == 0
	case q.lax:
		a.held = 1
	default:
		a.held += n
	}
}

// crash passes the holds to nobody: they may end at once, unless a busy result depends on them.
func (q *quiescenceFinder) crash(a *tokenAccount) {
	if q.strict {
		a.muddled = a.muddled || a.dirty()
		return
	}
	a.held, a.muddled = 0, false
}

// retire drops the doubtful holds of a client that does nothing more, unless a busy result may
// depend on them.
func (q *quiescenceFinder) retire(a *tokenAccount) {
	if !q.strict && a.held == 0 && !a.muddled {
		a.doubt = false
	}
}
