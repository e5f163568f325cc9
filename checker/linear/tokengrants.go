package linear

import (
	"cmp"
	"slices"
)

// A tokenGrant is a token that an actor got. If known is true, an acquire returned it, and the
// actor may also use smaller tokens; otherwise it came from an acquire of unknown outcome.
type tokenGrant struct {
	actor int32
	known bool
	token int64
}

// got reports whether an actor may use a token.
func (st *state) got(actor int32, token int64) bool {
	return slices.ContainsFunc(st.given, func(g tokenGrant) bool {
		return g.actor == actor && (g.token == token || g.known && g.token > token)
	})
}

// giving returns the state in which a token was issued. Only grants that a use may need are kept.
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

// useful reports whether a use may need a grant: a use below the largest accepted token is never
// accepted.
func (s *searcher) useful(st *state, g tokenGrant) bool {
	used := s.actors[g.actor].used
	if !g.known {
		_, found := slices.BinarySearch(used, g.token)
		return found && g.token >= st.accepted
	}
	next, _ := slices.BinarySearch(used, st.accepted)
	return next < len(used) && used[next] <= g.token
}
