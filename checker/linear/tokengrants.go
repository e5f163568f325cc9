package linear

import (
	"cmp"
	"slices"
)

// A tokenGrant is a token that an actor got: by an acquire that returned it, which makes it good for
// smaller ones, too, or by one of unknown outcome.
type tokenGrant struct {
	actor int32
	known bool
	token int64
}

// got says whether an actor may use a token.
func (st *state) got(actor int32, token int64) bool {
	return slices.ContainsFunc(st.given, func(g tokenGrant) bool {
		return g.actor == actor && (g.token == token || g.known && g.token > token)
	})
}

// giving returns the state in which a token was given. Only those gifts are kept that a use may need.
func (s *searcher) giving(st state, g tokenGrant) state {
	st.last = g.token
	useful := s.useful(&st, g)
	stale := func(old tokenGrant) bool {
		return old.token < st.accepted || g.known && old.actor == g.actor && old.token < g.token
	}
	if !useful && !slices.ContainsFunc(st.given, stale) {
		return st
	}
	given := make([]tokenGrant, 0, len(st.given)+1)
	for _, old := range st.given {
		if !stale(old) {
			given = append(given, old)
		}
	}
	if useful {
		at, _ := slices.BinarySearchFunc(given, g, func(a, b tokenGrant) int {
			return cmp.Or(cmp.Compare(a.actor, b.actor), cmp.Compare(a.token, b.token))
		})
		given = slices.Insert(given, at, g)
	}
	st.given = given
	return st
}

// useful says whether a use may need a gift: none is accepted of a token below the largest that was.
func (s *searcher) useful(st *state, g tokenGrant) bool {
	used := s.actors[g.actor].used
	if !g.known {
		_, found := slices.BinarySearch(used, g.token)
		return found && g.token >= st.accepted
	}
	next, _ := slices.BinarySearch(used, st.accepted)
	return next < len(used) && used[next] <= g.token
}
