package checker

import "time"

// A FreeWait is a time in which a client waited for a free lock, until a client got the lock or a key: an
// acquire was under way, no client held, and no server had a key of the lock.
type FreeWait struct {
	From, To time.Duration
	Winner   string // the client that ended it
}

// FreeWaits returns the times in which clients waited for a free lock, in order, in time linear in the
// number of events. Without State events the holds alone decide.
func FreeWaits(h History) []FreeWait {
	begins, ends := map[int]int{}, map[int]int{} // number of holds, by event
	for _, b := range Holds(h) {
		begins[b.Began]++
		ends[b.Ended]++
	}
	var list []FreeWait
	keys, waiting := map[string]bool{}, map[string]bool{}
	holders := 0
	since := time.Duration(-1) // when the current wait began
	for i, e := range h.Events {
		holders += begins[i] - ends[i]
		winner := ""
		switch {
		case e.Kind == Invoke && e.Op.takes():
			waiting[e.Client] = true
		case e.Kind == Return && e.Op.takes():
			delete(waiting, e.Client)
			if e.Result == OK {
				winner = e.Client
			}
		case e.Kind == Crash || e.Kind == Restart:
			delete(waiting, e.Client)
		case e.Kind == State:
			if delete(keys, e.Node+" "+e.Server); e.Value != "" {
				keys[e.Node+" "+e.Server] = true
				winner = e.Client
			}
		}
		free := holders <= 0 && len(keys) == 0 && len(waiting) > 0
		switch {
		case free && since < 0:
			since = e.Time
		case !free && since >= 0:
			if winner != "" && e.Time > since {
				list = append(list, FreeWait{since, e.Time, winner})
			}
			since = -1
		}
	}
	return list
}
