package reports

import (
	"slices"
	"sort"
	"time"

	"github.com/lockfault/lockfault/checker"
)

// commands returns, for each operation that succeeded, the smallest number of commands of a
// success. commands counts the commands that the client sent during the operation and that a server
// executed, even if later. Commands that a lock sends by itself between operations, and silent
// requests, belong to no operation. commands returns nil for another service whose history has no
// requests, as in earlier versions.
func commands(h checker.History) map[checker.Op]int {
	if h.Meta.Service != "" && !slices.ContainsFunc(h.Events, func(e checker.Event) bool { return e.Kind == checker.Request }) {
		return nil
	}
	type operation struct {
		op        checker.Op
		from      time.Duration
		to        time.Duration // -1 until the operation returns
		succeeded bool
		sent      int
	}
	all := map[string][]*operation{} // by client, in the order of invocation
	for _, e := range h.Events {
		list := all[e.Client]
		switch e.Kind {
		case checker.Invoke:
			all[e.Client] = append(list, &operation{op: e.Op, from: e.Time, to: -1})
		case checker.Return:
			if n := len(list); n > 0 {
				list[n-1].to, list[n-1].succeeded = e.Time, e.Result == checker.OK
			}
		case checker.Request:
			if e.Silent {
				break
			}
			// A request belongs to the client's last operation that was invoked before it was sent,
			// unless that had returned.
			at := sort.Search(len(list), func(k int) bool { return list[k].from > e.Sent }) - 1
			if at >= 0 && (list[at].to < 0 || e.Sent <= list[at].to) {
				list[at].sent++
			}
		}
	}
	least := map[checker.Op]int{}
	for _, list := range all {
		for _, o := range list {
			if n, ok := least[o.op]; o.succeeded && (!ok || o.sent < n) {
				least[o.op] = o.sent
			}
		}
	}
	return least
}

// typicalCounts holds, by strategy and operation, how many cells had each number of commands.
type typicalCounts map[costOf]map[int]int

func (u typicalCounts) add(strategy string, op checker.Op, n int) {
	of := costOf{strategy: strategy, op: op}
	if u[of] == nil {
		u[of] = map[int]int{}
	}
	u[of][n]++
}

// of returns the number that most cells have, and the largest one on a tie: cells that lost a
// message have smaller numbers.
func (u typicalCounts) of(strategy string, op checker.Op) (most int, ok bool) {
	cells := 0
	for n, times := range u[costOf{strategy: strategy, op: op}] {
		if times > cells || times == cells && n > most {
			most, cells = n, times
		}
	}
	return most, cells > 0
}

// roundTrips holds the smallest number of round trips, by strategy and operation.
type roundTrips map[string]map[checker.Op]int

func (k roundTrips) add(strategy string, of map[checker.Op]int) {
	for op, n := range of {
		if k[strategy] == nil {
			k[strategy] = map[checker.Op]int{}
		}
		if old, ok := k[strategy][op]; !ok || n < old {
			k[strategy][op] = n
		}
	}
}

// A costOf is the key of a cost.
type costOf struct {
	world, strategy string
	op              checker.Op
}
