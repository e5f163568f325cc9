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
	// fewestRounds is how many times a client must have asked the same for that to
	// be told in one line.
	fewestRounds = 3
	// mostAsked is how many commands such a round may have: what a lock on nine
	// nodes sends to try and to give up, and once more as much.
	mostAsked = 36
	// foldLimit is how many letters the line may have.
	foldLimit = 72
)

// A fold is a run of rounds in which a client asked the same and was answered the
// same, and did nothing else.
type fold struct {
	events  []int // where the requests and replies are, in ascending order
	text    string
	counted int // where the last change is that was of no consequence; 0 if there is none
}

// An exchange is a request and the reply to it, and where they are.
type exchange struct {
	request, reply     *checker.Event
	requestAt, replyAt int
	key                string // the same for what is the same; empty without a reply
	counted            int    // where the change is that the request made; 0 if it made none
}

// folds finds what repeats itself among the events that are told. An event that is
// named in a proof stays for itself, and so does a command that changed the key, but
// if it did no more than count.
func (s *story) folds() []fold {
	var all []fold
	for _, client := range s.h.Meta.Clients {
		for _, stretch := range s.stretches(client) {
			keys := make([]string, len(stretch))
			for i, x := range stretch {
				keys[i] = x.key
			}
			for _, r := range repeats(keys) {
				all = append(all, newFold(client, stretch[r.at:r.at+r.size*r.times], r))
			}
		}
	}
	return all
}

// stretches returns the exchanges of a client in pieces, between which it did, or
// suffered, something else, or the script or a server went on.
func (s *story) stretches(client string) [][]exchange {
	var found []exchange
	barriers := make([]bool, len(s.h.Events))
	value := regexp.MustCompile(`\b` + regexp.QuoteMeta(strings.ToValidUTF8(client, "·")) + `[0-9]+\b`) // patterns are UTF-8
	plain := func(text string) string {
		if !strings.Contains(text, client) { // most; to look for more takes its time
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
		case !replied: // else it comes with its request
			barriers[i] = true
		}
		if s.named[i] {
			barriers[i] = true
		}
	}
	return split(found, barriers)
}

// counted reports whether the event at that place is a change that did no more than count.
func (s *story) counted(i int) bool {
	if s.h.Events[i].Kind != checker.State {
		return false
	}
	if s.changed == nil {
		s.changed = map[int]int{}
		last := map[[2]string]int{} // by server
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

// causedBy reports whether the change at that place was made by the request at the other.
func (s *story) causedBy(change, request int) bool {
	at, ok := s.caused[change]
	return ok && at == request
}

// counts reports whether a change of the key left everything as it was but a counter,
// as each attempt does where the lock is who counts to 1: whose the lock is, and until
// when.
func counts(was, is *checker.Event) bool {
	return was != nil && was.Value != "" && is.Value != "" && was.Owner == is.Owner && was.Expires == is.Expires
}

// mostRounds is how often split looks anew which exchanges have a barrier in them.
const mostRounds = 50

// split cuts a list of exchanges where there is a barrier, and where one of them has
// no reply or a barrier in it, which makes it another. After too many rounds of that every
// exchange is a barrier that was under way together with another.
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
		before := make([]int, len(barriers)+1) // how many barriers
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
		until, alone := -1, []exchange{} // the latest reply so far
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

// kindOf returns an answer, or of one that counts down what it has in common with the
// next.
func kindOf(reply string) string {
	if n, ok := integer(reply); ok && n > 1 {
		return "(integer)"
	}
	return reply
}

// integer reads the answer that is a whole number.
func integer(reply string) (int, bool) {
	text, ok := strings.CutPrefix(reply, "(integer) ")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil
}

// A repetition is a number of rounds of the same size in a list.
type repetition struct{ at, size, times int }

// repeats finds rounds that repeat themselves in a list of keys. Within a round the
// order does not matter: what a client sends at once arrives in any.
func repeats(keys []string) (list []repetition) {
	seed := maphash.MakeSeed()
	sums := make([]uint64, len(keys)+1) // two rounds that are the same have the same sum
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
		// It may have begun in the middle of a round.
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

// sameWords reports whether two lists have the same words, in whatever order.
func sameWords(a, b []string) bool {
	return slices.Equal(a, b) || slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// newFold makes the fold of a repetition.
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
		i := slices.IndexFunc(questions, func(q question) bool { return q.key == key })
		if i < 0 {
			i = len(questions)
			questions = append(questions, question{key: key, command: x.request.Command})
		}
		questions[i].nodes = append(questions[i].nodes, x.request.Node)
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

// A question is what was asked, of one or several nodes, and how it was answered.
type question struct {
	key, command string
	nodes        []string
	reply        string
	least, most  int // if the answers count something
}

func (q *question) add(x exchange) {
	n, _ := integer(x.reply.Reply)
	if q.reply == "" {
		q.reply, q.least, q.most = x.reply.Reply, n, n
	}
	q.least, q.most = min(q.least, n), max(q.most, n)
	if q.command != x.request.Command { // by the client's own value
		q.command, _, _ = strings.Cut(q.command, " ")
	}
}

// answer returns the answer without its type, from the least to the most if it was
// not always the same.
func (q *question) answer() string {
	if q.least != q.most {
		return fmt.Sprintf("%d to %d", q.least, q.most)
	}
	return strings.TrimPrefix(q.reply, "(integer) ")
}

// span names nodes: n1, n1 and n3, or n1 to n5.
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

// rough rounds a time for a sentence.
func rough(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
