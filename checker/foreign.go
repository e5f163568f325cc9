package checker

import "sort"

// ForeignRelease: see [Descriptions].
const ForeignRelease Anomaly = "foreign-release"

var foreignReleaseEntry = Description{
	Name: ForeignRelease, Letter: "R", Short: "f-release", Class: Safety,
	Meaning:    "a client removed, or shortened, a key that another client owned",
	ServerSide: true,
	find:       foreignRelease,
}

// foreignRelease finds the commands that removed a key of another client or shortened its lease.
func foreignRelease(f *index, yield func(*Witness) bool) {
	for i := range f.changes {
		ch := &f.changes[i]
		if !ch.foreign() {
			continue
		}
		did := ""
		// Compare with the expiry last granted: many small steps add up to a large one.
		switch sooner := max(ch.before.expires, ch.before.granted) - ch.after.expires; {
		case ch.after.value == "" && ch.after.owner < 0:
			did = "removed"
		case ch.sameValue() && ch.before.expires > ch.after.expires && ch.after.expires != 0 && sooner > f.tolerance():
			did = "shortened the lease of"
		}
		if did != "" && !yield(f.foreignWitness(ch, did)) {
			return
		}
	}
}

// ForeignExtend: see [Descriptions].
const ForeignExtend Anomaly = "foreign-extend"

var foreignExtendEntry = Description{
	Name: ForeignExtend, Letter: "E", Short: "f-extend", Class: Safety,
	Meaning:    "a client prolonged a key that another client owned, or brought back one that it had lost",
	ServerSide: true,
	find:       foreignExtend,
}

// foreignExtend finds the commands that prolonged a key of another client, or created again a key
// that the command's own client had lost.
func foreignExtend(f *index, yield func(*Witness) bool) {
	for i := range f.changes {
		ch := &f.changes[i]
		var w *Witness
		later := ch.after.expires - ch.before.granted // not before.expires, which another client's command may have left, or a late reading on a real server
		switch {
		case ch.recreated:
			w = f.recreatedWitness(ch)
		case ch.foreign() && ch.sameValue() && ch.before.expires != 0 && (ch.after.expires == 0 || ch.after.expires > ch.before.expires && later > f.tolerance()):
			w = f.foreignWitness(ch, "prolonged the lease of")
		}
		if w != nil && !yield(w) {
			return
		}
	}
}

// foreign reports whether a client's command changed a key that another client owned.
func (ch *change) foreign() bool {
	return ch.by >= 0 && ch.before.owner >= 0 && ch.by != ch.before.owner
}

func (ch *change) sameValue() bool {
	return ch.before.owner == ch.after.owner && ch.before.value == ch.after.value
}

func (f *index) foreignWitness(ch *change, did string) *Witness {
	since := f.ownerships[ch.before.ownership].begin
	doer := f.doer(ch, since)
	return witness(f.sprintf("%s %s %s's key on %s at %s%s; the key had been %[3]s's since %[7]s.",
		f.name(ch.by), did, f.name(ch.before.owner), f.servers[ch.server].node, seconds(f.events[ch.at].Time),
		f.with(doer), seconds(f.events[since].Time)), since, doer)
}

func (f *index) recreatedWitness(ch *change) *Witness {
	at, _ := f.acquiring(f.clients[ch.by], ch.at)
	got := f.calls[at]
	doer := f.doer(ch, got.end)
	return witness(f.sprintf("%s brought its key on %s back at %s%s, without acquiring again: it had acquired at %s and lost the key since.",
		f.name(ch.by), f.servers[ch.server].node, seconds(f.events[ch.at].Time), f.with(doer), seconds(got.to)),
		got.end, doer)
}

// doer returns the request that made a change, if it came after event since; otherwise the change
// itself.
func (f *index) doer(ch *change, since int) int { return f.request(ch.at, since) }

// request returns the request, after event since, that made the change at event at. The request is
// the event directly before the change, with only other changes by the same client to the same node
// in between. Without such a request, the result is at.
func (f *index) request(at, since int) int {
	made := f.made
	if at != f.present {
		n := sort.Search(len(f.changes), func(k int) bool { return f.changes[k].at >= at })
		if n == len(f.changes) || f.changes[n].at != at {
			return at
		}
		made = f.changes[n].made
	}
	if made > since {
		return made
	}
	return at
}

// maker returns the request that made the change at event i, or -1.
func (f *index) maker(i int) int {
	if i == 0 {
		return -1
	}
	state, before := &f.events[i], &f.events[i-1]
	switch {
	case before.Client != state.Client || before.Node != state.Node:
	case before.Kind == Request:
		return i - 1
	case before.Kind == State:
		return f.made // f.made belongs to the State directly before
	}
	return -1
}

// with returns the command of event doer in parentheses, with a leading space; empty if the command
// is unknown.
func (f *index) with(doer int) string {
	if command := f.events[doer].Command; command != "" {
		return " (" + command + ")"
	}
	return ""
}
