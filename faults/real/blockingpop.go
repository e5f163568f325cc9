package real

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/resp"
)

// A value that is pushed into a list on which a client waits goes straight to that client. When
// either request is answered, the key looks as it did before the push. The history records both
// changes nevertheless, as if the world had looked in between. It records the push as soon as the
// first answer shows it: the answer to the push or the answer to the waiting request, in either
// order on the two connections.

// waits reports whether a request may wait until another client feeds a key of the lock.
func (w *World) waits(m *message) bool {
	return blocks(m.words) && slices.ContainsFunc(m.words[1:], func(word string) bool { return slices.Contains(w.cfg.Lock.Keys, word) })
}

// noteWaiters records the requests that wait on a server, and the requests that may feed them.
func (s *server) noteWaiters(m *message) {
	if s.waiting = slices.DeleteFunc(s.waiting, func(other *message) bool { return other.conn.gone }); len(s.waiting) > 0 && !faults.LeavesKeys(m.command) {
		for _, other := range s.waiting {
			other.feeders = append(other.feeders, m)
		}
	}
	if s.world.waits(m) {
		s.waiting = append(s.waiting, m)
	}
}

// served records what a request took out of a key of the lock, and the push that had put it there
// if that isn't recorded yet. It returns the effect of the request, and false if the request took
// nothing.
func (w *World) served(s *server, request *message, reply []byte) (did faults.Effect, took bool) {
	s.waiting = slices.DeleteFunc(s.waiting, func(other *message) bool { return other == request })
	p, ok := popped(request, resp.Words(reply))
	if !ok || w.record == nil || s.admin == nil || !s.Answers() {
		return "", false
	}
	s.handing = nil
	keys, late, err := w.readKeys(s)
	if err != nil {
		w.must(err)
		return "", true
	}
	before, ok := p.putBack(w.cfg.Lock.Keys, keys)
	if !ok {
		return "", false
	}
	if !faults.SameKeys(before, s.keys) {
		if feeder := request.feeder(p); feeder != nil {
			feeder.fed = true
			feeder.did = w.saw(s, before, late, checker.ByCommand, feeder.conn.wire.client, feeder.words)
		} else {
			w.stands(s, w.ledger.Somebody(s.Node.Name, s.Name, before), before, late)
		}
	}
	return w.saw(s, keys, late, checker.ByCommand, request.conn.wire.client, request.words), true
}

// pushed records a push into the lock's key whose words a waiting request took: its answer counts
// more words than the key holds now. It returns the effect of the push, and false if no waiting
// request took anything.
func (w *World) pushed(s *server, request *message, reply []byte) (did faults.Effect, handed bool) {
	if len(s.waiting) == 0 || request.fed || request.command != "LPUSH" && request.command != "RPUSH" || w.record == nil || s.admin == nil || !s.Answers() {
		return "", false
	}
	at, words := slices.Index(w.cfg.Lock.Keys, request.words[1]), slices.Clone(request.words[2:])
	if at < 0 || !slices.Equal(resp.Words(reply), []string{strconv.Itoa(len(words))}) {
		return "", false // the list was not empty
	}
	keys, late, err := w.readKeys(s)
	if err != nil {
		w.must(err)
		return "", true
	}
	if len(keys[at].Words) >= len(words) {
		return "", false
	}
	if request.command == "LPUSH" {
		slices.Reverse(words)
	}
	full := slices.Clone(keys)
	full[at] = faults.Key{Type: "list", Words: words}
	did = cmp.Or(w.saw(s, full, late, checker.ByCommand, request.conn.wire.client, request.words), request.did)
	s.handing = keys
	return did, true
}

// settleHanded records that a pushed value is gone, before anything else is recorded. The answer to
// the client that took it has not been seen.
func (w *World) settleHanded(s *server) {
	if keys := s.handing; keys != nil {
		s.handing = nil
		w.stands(s, w.ledger.Somebody(s.Node.Name, s.Name, keys), keys, s.took)
	}
}

// feeder returns the request that pushed what another request took: the last one that names the key
// and, if any request names it, the word. It returns nil if requests of several clients qualify.
func (m *message) feeder(p pop) *message {
	var may, say []*message
	for _, other := range m.feeders {
		switch {
		case blocks(other.words) || other.command != "EXEC" && !slices.Contains(other.words[1:], p.key):
		case slices.Contains(other.words[1:], p.taken[0]):
			say = append(say, other)
			fallthrough
		default:
			may = append(may, other)
		}
	}
	if len(say) > 0 {
		may = say
	}
	if len(may) == 0 || slices.ContainsFunc(may, func(other *message) bool { return other.conn.wire.client != may[0].conn.wire.client }) {
		return nil
	}
	return may[len(may)-1]
}

// A pop holds what a request took out of a key, in order; for a sorted set, members and scores
// alternate.
type pop struct {
	key     string
	taken   []string
	last    bool // from the end of a list
	scored  bool // out of a sorted set
	to      string
	toFirst bool // the words were put at the start of the list to
}

// popped returns what a request took, given the words of its answer. It returns false if the
// request never takes anything out of a key, or got nothing.
func popped(request *message, answer []string) (p pop, ok bool) {
	words := request.words
	option := func(at int, name string) bool { return at < len(words) && strings.EqualFold(words[at], name) }
	switch request.command {
	case "BLPOP", "BRPOP", "BZPOPMIN", "BZPOPMAX", "BLMPOP", "BZMPOP":
		if len(answer) < 2 {
			return pop{}, false
		}
		p = pop{key: answer[0], taken: answer[1:]}
	case "BLMOVE", "BRPOPLPUSH":
		if len(answer) != 1 || len(words) < 3 {
			return pop{}, false
		}
		p = pop{key: words[1], taken: answer, to: words[2]}
	}
	switch request.command {
	case "BRPOP":
		p.last = true
	case "BRPOPLPUSH":
		p.last, p.toFirst = true, true
	case "BLMOVE":
		p.last, p.toFirst = option(3, "RIGHT"), option(4, "LEFT")
	case "BLMPOP":
		count, err := strconv.Atoi(words[min(2, len(words)-1)])
		p.last = err == nil && option(3+count, "RIGHT")
	case "BZPOPMIN", "BZPOPMAX", "BZMPOP":
		p.scored = true
	}
	return p, len(p.taken) > 0
}

// putBack returns the lock's keys as they were before the pop, and false if the request took
// nothing out of them.
func (p pop) putBack(names []string, keys []faults.Key) ([]faults.Key, bool) {
	before := slices.Clone(keys)
	if to := slices.Index(names, p.to); to >= 0 {
		in := &before[to]
		switch n := len(in.Words); {
		case in.Type != "list":
			return nil, false
		case p.toFirst && in.Words[0] == p.taken[0]:
			in.Words = in.Words[1:]
		case !p.toFirst && in.Words[n-1] == p.taken[0]:
			in.Words = in.Words[:n-1]
		default:
			return nil, false
		}
		if len(in.Words) == 0 {
			*in = faults.Key{}
		}
	}
	from := slices.Index(names, p.key)
	if from < 0 {
		return nil, false
	}
	out := &before[from]
	switch {
	case p.scored:
		words, ok := scored(append(slices.Clone(out.Words), p.taken...))
		if !ok {
			return nil, false
		}
		out.Type, out.Words = "zset", words
	case p.last:
		taken := slices.Clone(p.taken)
		slices.Reverse(taken)
		out.Type, out.Words = "list", slices.Concat(out.Words, taken)
	default:
		out.Type, out.Words = "list", slices.Concat(p.taken, out.Words)
	}
	return before, true
}

// scored returns the words of a sorted set in the set's order. It returns false for invalid scores.
func scored(words []string) ([]string, bool) {
	var all []faults.Scored
	for i := 0; i+1 < len(words); i += 2 {
		score, err := strconv.ParseFloat(words[i+1], 64)
		if err != nil {
			return nil, false
		}
		all = append(all, faults.Scored{Member: words[i], Score: score})
	}
	return faults.SortedSet(all), len(words)%2 == 0
}
