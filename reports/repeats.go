package reports

import (
	"fmt"
	"hash/maphash"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lockfault/lockfault/checker"
)

const (
	// fewestRounds is the smallest number of equal rounds of a client that are folded into one
	// line.
	fewestRounds = 3
	// mostAsked is the largest number of commands in a folded round: twice what a lock on nine
	// nodes sends to try and to give up.
	mostAsked = 36
	// foldLimit is the largest number of characters in the line of a fold.
	foldLimit = 72
)

// A fold is a run of rounds in which a client sent the same requests, got the same replies, and did
// nothing else.
type fold struct {
	events  []int // positions of the requests and replies, ascending
	text    string
	counted int // position of the last counting change; 0 if none
}

// An exchange is a request and its reply, with their positions in the history.
type exchange struct {
	request, reply     *checker.Event
	requestAt, replyAt int
	key                string // equal for equal exchanges; empty without a reply
	counted            int    // position of the counting change that the request made; 0 if none
}

// folds finds the repetitions among the shown events. An event that proves something is not folded.
// Neither is a command that changed the key, unless it only incremented a counter.
func (s *story) folds() []fold {
	var all []fold
	for _, client := range s.h.Meta.Clients {
		for _, stretch := range s.stretches(client) {
			for _, r := range repeats(each(stretch, func(x exchange) string { return x.key })) {
				all = append(all, newFold(client, stretch[r.at:r.at+r.size*r.times], r))
			}
		}
	}
	return all
}

// stretches returns the exchanges of a client in pieces. A piece ends where the client did, or was
// subject to, something else, or where the script or a server acted.
func (s *story) stretches(client string) [][]exchange {
	var found []exchange
	barriers := make([]bool, len(s.h.Events))
	value := regexp.MustCompile(`\b` + regexp.QuoteMeta(strings.ToValidUTF8(client, "·")) + `[0-9]+\b`) // must be UTF-8
	plain := func(text string) string {
		if !strings.Contains(text, client) { // most texts; a regular expression would be slow
			return text
		}
		return value.ReplaceAllString(text, client)
	}
	for i := range s.h.Events {
		e := &s.h.Events[i]
		if e.Client != client && e.Client != "" || !s.shows(i) {
			continue
		}
		_, replied := s.requestAt[i]
		switch {
		case e.Client == client && e.Kind == checker.Request:
			x := exchange{request: e, requestAt: i}
			if told, ok := s.replyAt[i]; ok {
				x.reply, x.replyAt = &s.h.Events[told], told
				x.key = strings.Join([]string{e.Node, plain(e.Command), kindOf(plain(x.reply.Reply))}, "\x00")
			}
			found = append(found, x)
		case s.counted(i) && len(found) > 0 && s.causedBy(i, found[len(found)-1].requestAt):
			found[len(found)-1].counted = i
		case !replied: // a reply is handled with its request
			barriers[i] = true
		}
		if s.named[i] {
			barriers[i] = true
		}
	}
	return split(found, barriers)
}

// counted reports whether the event at position i is a change that only incremented a counter.
func (s *story) counted(i int) bool {
	if s.h.Events[i].Kind != checker.State {
		return false
	}
	if s.changed == nil {
		s.changed = map[int]int{}
		last := map[[2]string]int{} // position of the last change, by server
		for at, e := range s.h.Events {
			if e.Kind == checker.State {
				server := [2]string{e.Node, e.Server}
				if was, ok := last[server]; ok {
					s.changed[at] = was
				}
				last[server] = at
			}
		}
	}
	was, ok := s.changed[i]
	return ok && counts(&s.h.Events[was], &s.h.Events[i])
}

// causedBy reports whether the request at one position made the change at the other.
func (s *story) causedBy(change, request int) bool {
	at, ok := s.caused[change]
	return ok && at == request
}

// counts reports whether a change of the key left its owner and its expiry as they were, so that
// only a counter changed. Each failed attempt does this if the lock belongs to the client that
// counts to 1.
func counts(was, is *checker.Event) bool {
	return was != nil && was.Value != "" && is.Value != "" && was.Owner == is.Owner && was.Expires == is.Expires
}

// mostRounds is the largest number of passes in which split searches for exchanges that contain a
// barrier.
const mostRounds = 50

// split cuts a list of exchanges at barriers. An exchange that has no reply, or that contains a
// barrier, becomes a barrier itself, so split searches again. After mostRounds passes, every
// exchange that overlaps with another becomes a barrier.
func split(list []exchange, barriers []bool) [][]exchange {
	drop := func(x exchange) {
		barriers[x.requestAt] = true
		if x.key != "" {
			barriers[x.replyAt] = true
		}
	}
	round := 0
	for again := true; again && round < mostRounds; round++ {
		again = false
		before := make([]int, len(barriers)+1) // number of barriers before each position
		for i, b := range barriers {
			before[i+1] = before[i]
			if b {
				before[i+1]++
			}
		}
		list = slices.DeleteFunc(list, func(x exchange) bool {
			if x.key != "" && before[x.replyAt+1] == before[x.requestAt] {
				return false
			}
			again = true
			drop(x)
			return true
		})
	}
	if round == mostRounds {
		until, alone := -1, []exchange{} // position of the latest reply so far
		for i, x := range list {
			if x.requestAt > until && (i+1 == len(list) || list[i+1].requestAt > x.replyAt) {
				alone = append(alone, x)
			} else {
				drop(x)
			}
			until = max(until, x.replyAt)
		}
		list = alone
	}
	var pieces [][]exchange
	last := -1
	for _, x := range list {
		if len(pieces) == 0 || slices.Contains(barriers[last+1:x.requestAt], true) {
			pieces = append(pieces, nil)
		}
		pieces[len(pieces)-1] = append(pieces[len(pieces)-1], x)
		last = x.requestAt
	}
	return pieces
}

// kindOf returns the reply. For an integer above 1, which may count down from round to round, it
// returns only the type.
func kindOf(reply string) string {
	if n, ok := integer(reply); ok && n > 1 {
		return "(integer)"
	}
	return reply
}

// integer parses a reply that is a whole number.
func integer(reply string) (int, bool) {
	text, ok := strings.CutPrefix(reply, "(integer) ")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil
}

// A repetition locates equal rounds in a list: the start, the size of a round and the number of
// rounds.
type repetition struct{ at, size, times int }

// repeats finds repeated rounds in a list of keys. The order within a round does not matter, since
// requests that a client sends at the same time arrive in any order.
func repeats(keys []string) (list []repetition) {
	seed := maphash.MakeSeed()
	sums := make([]uint64, len(keys)+1) // prefix sums of hashes: equal rounds have equal sums
	for i, key := range keys {
		sums[i+1] = sums[i] + maphash.String(seed, key)
	}
	same := func(a, b, size int) bool {
		return sums[a+size]-sums[a] == sums[b+size]-sums[b] && sameWords(keys[a:a+size], keys[b:b+size])
	}
	rounds := func(at, size int) repetition {
		r := repetition{at, size, 1}
		for next := at + size; next+size <= len(keys) && same(at, next, size); next += size {
			r.times++
		}
		return r
	}
	for i := 0; i < len(keys); {
		var best repetition
		for size := 1; size <= mostAsked && i+fewestRounds*size <= len(keys); size++ {
			if r := rounds(i, size); r.times >= fewestRounds && r.size*r.times > best.size*best.times {
				best = r
			}
		}
		// The repetition may have begun in the middle of a round.
		for at := i + 1; at < i+best.size; at++ {
			if r := rounds(at, best.size); r.times > best.times {
				best = r
			}
		}
		if best.times == 0 {
			i++
			continue
		}
		list = append(list, best)
		i = best.at + best.size*best.times
	}
	return list
}

// sameWords reports whether two lists have the same words in any order.
func sameWords(a, b []string) bool {
	return slices.Equal(a, b) || slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// newFold returns the fold of a repetition.
func newFold(client string, list []exchange, r repetition) fold {
	var f fold
	for _, x := range list {
		f.events = append(f.events, x.requestAt, x.replyAt)
		if x.counted > 0 {
			f.events = append(f.events, x.counted)
		}
		f.counted = max(f.counted, x.counted)
	}
	slices.Sort(f.events)
	var nodes []string
	var questions []question
	for _, x := range list[:r.size] {
		if !slices.Contains(nodes, x.request.Node) {
			nodes = append(nodes, x.request.Node)
		}
		_, key, _ := strings.Cut(x.key, "\x00")
		q := placed(&questions, func(q question) bool { return q.key == key }, question{key: key, command: x.request.Command})
		q.nodes = append(q.nodes, x.request.Node)
	}
	slices.Sort(nodes)
	began, ended := list[0].request.Time, list[0].reply.Time
	for _, x := range list {
		ended = max(ended, x.reply.Time)
		_, key, _ := strings.Cut(x.key, "\x00")
		for i := range questions {
			if questions[i].key == key {
				questions[i].add(x)
			}
		}
	}
	text := fmt.Sprintf("%s asks %s %d times in %v: ", client, span(nodes), r.times, rough(ended-began))
	if len(questions) == 1 {
		q := questions[0]
		if f.text = text + q.command + " gets " + q.answer(); utf8.RuneCountInString(f.text) <= foldLimit {
			return f
		}
	}
	for i, q := range questions {
		name, _, _ := strings.Cut(q.command, " ")
		if i > 0 {
			text += ", "
		}
		text += name + " gets " + q.answer()
		if asked := slices.Compact(slices.Sorted(slices.Values(q.nodes))); !slices.Equal(asked, nodes) {
			text += " on " + span(asked)
		}
	}
	f.text = clipTo(text, foldLimit)
	return f
}

// A question is a command with the nodes to which it was sent and its replies.
type question struct {
	key, command string
	nodes        []string
	reply        string
	least, most  int // range of the replies that are numbers
}

func (q *question) add(x exchange) {
	n, _ := integer(x.reply.Reply)
	if q.reply == "" {
		q.reply, q.least, q.most = x.reply.Reply, n, n
	}
	q.least, q.most = min(q.least, n), max(q.most, n)
	if q.command != x.request.Command { // commands differ in the client's own value
		q.command, _, _ = strings.Cut(q.command, " ")
	}
}

// answer returns the reply without its type, or a range if the replies differ.
func (q *question) answer() string {
	if q.least != q.most {
		return fmt.Sprintf("%d to %d", q.least, q.most)
	}
	return strings.TrimPrefix(q.reply, "(integer) ")
}

// span lists nodes: n1, n1 and n3, or n1 to n5.
func span(nodes []string) string {
	switch n := len(nodes); {
	case n <= 1:
		return strings.Join(nodes, "")
	case n > 2 && consecutive(nodes):
		return nodes[0] + " to " + nodes[n-1]
	default:
		return strings.Join(nodes[:n-1], ", ") + " and " + nodes[n-1]
	}
}

func consecutive(nodes []string) bool {
	first, err := strconv.Atoi(strings.TrimPrefix(nodes[0], "n"))
	for i, node := range nodes {
		if err != nil || node != fmt.Sprintf("n%d", first+i) {
			return false
		}
	}
	return true
}

// rough rounds a duration for a sentence: to 100 ms from 1 s on, and to 1 ms below.
func rough(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
