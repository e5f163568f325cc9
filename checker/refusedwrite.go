package checker

// refusal is a refused write of a client that held the lock.
type refusal struct {
	at       int
	client   int
	acquired int   // the Return of the client's latest successful acquire
	token    int64 // the token of the write, or else of the acquire
	newer    int   // the accepted write with the largest token so far
}

// RefusedWrite: see [Descriptions].
const RefusedWrite Anomaly = "refused-write"

var refusedWriteEntry = Description{
	Name: RefusedWrite, Letter: "F", Short: "refused", Class: Liveness,
	Meaning:    "the resource refused a write of the client that had the lock",
	ServerSide: true,
	find:       refusedWrite,
}

// refusedWrite finds the writes of the lock's owner that the resource refused.
func refusedWrite(f *index, yield func(*Witness) bool) {
	for _, r := range f.refusals {
		newer := &f.events[r.newer]
		if !yield(witness(f.sprintf("The resource refused a write of %s, who had acquired at %s, at %s, although the lock was %[1]s's still: "+
			"its fencing token was %[4]d, and a write of %[5]s with %[6]d had been accepted at %[7]s.",
			f.name(r.client), seconds(f.events[r.acquired].Time), seconds(f.events[r.at].Time),
			r.token, newer.Client, newer.Token, seconds(newer.Time)),
			r.acquired, r.newer, r.at)) {
			return
		}
	}
}

// wrote processes a Write event.
func (f *index) wrote(c *client, i int, e *Event) {
	if e.Accepted {
		f.writes = append(f.writes, write{i, c.id, c.last, c.since})
		if e.Token != 0 && (f.newest < 0 || e.Token > f.events[f.newest].Token) {
			f.newest = i
		}
		return
	}
	if !f.meta.Fenced || f.newest < 0 || c.hold < 0 {
		return
	}
	given := f.events[c.acquired].Token
	token := e.Token
	if token == 0 {
		token = given
	}
	// A token older than the acquire's is refused correctly. A write without a token, or without a
	// newer accepted token, is refused for another reason than its token.
	if token == 0 || token < given || token >= f.events[f.newest].Token || !f.has(c, e) {
		return
	}
	f.refusals = append(f.refusals, refusal{i, c.id, c.acquired, token, f.newest})
}

// has reports whether c certainly has the lock: it has owned the key on more than half of the nodes
// since before its latest acquire returned, and the key has not expired there.
func (f *index) has(c *client, e *Event) bool {
	nodes := 0
	for _, name := range f.meta.Nodes {
		if n := f.nodeNamed(name); n != nil && n.owner == c.id && n.since < c.acquired && f.lasts(n, e) {
			nodes++
		}
	}
	return 2*nodes > len(f.meta.Nodes)
}

// lasts reports whether the key is unexpired on every counting server of the node. The check is
// needed because some servers report an expiry only when they are asked.
func (f *index) lasts(n *node, e *Event) bool {
	for _, id := range n.counting {
		if expires := f.servers[id].key.expires; expires != 0 && expires <= e.Time {
			return false
		}
	}
	return true
}
