package explore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Shard is the result of one shard of a search: number Number of Of, from 1. A nil Result means
// that the shard is missing.
type Shard struct {
	Number, Of int
	Result     *Result
}

// Join merges the results of shards that together cover a whole search, in the order in which
// messages list the shards. The shards need not have the same Of: shard 1 of 2 equals shards 1 and
// 3 of 4.
//
// The result equals that of the whole search, except for Runs, which is the number of scripts that
// all shards played. A missing or cut shard cuts the whole, unless the search ends at a finding, by
// its bound: then Cut and Findings are those of the whole search, and the number of states seen
// before the finding is not determined.
func Join(shards []Shard, b Bound) Result {
	var whole Result
	var cuts []string
	cut := func(s Shard, why string) {
		cuts = append(cuts, fmt.Sprintf("shard %d of %d %s", s.Number, s.Of, why))
	}
	var common Counts
	for _, s := range shards {
		r := s.Result
		if r == nil {
			cut(s, "is missing")
			continue
		}
		switch {
		case r.Cut != "":
			cut(s, "was cut: "+r.Cut)
		case !r.Exhausted && len(r.Failures) == 0:
			cut(s, "is not exhausted, for no reason that it gives")
		}
		whole.add(r)
		if c := r.Common; c != nil {
			common.States, common.Ends = max(common.States, c.States), max(common.Ends, c.Ends)
			common.Merged, common.Moves = max(common.Merged, c.Merged), max(common.Moves, c.Moves)
		}
	}
	whole.States += common.States
	whole.Ends += common.Ends
	whole.Merged += common.Merged
	whole.Moves += common.Moves
	if odd := disagreement(shards); odd != "" {
		cuts = append(cuts, odd)
	}
	whole.Cut = strings.Join(cuts, "; ")
	if same := shards[0].Result; same != nil && len(cuts) == len(shards) && !slices.ContainsFunc(shards, func(s Shard) bool { return s.Result == nil || s.Result.Cut != same.Cut }) {
		whole.Cut = same.Cut // the whole search has this cut, too
	}
	var until string
	if whole.Findings, until = earliest(whole.Findings, b); until != "" {
		whole.Cut, whole.Depth = until, whole.Findings[len(whole.Findings)-1].Moves
	}
	whole.Exhausted = whole.Cut == "" && len(whole.Failures) == 0
	return whole
}

// add adds the result of a shard, without the part that every shard repeats.
func (r *Result) add(shard *Result) {
	var common Counts
	if shard.Common != nil {
		common = *shard.Common
	}
	r.States += shard.States - common.States
	r.Ends += shard.Ends - common.Ends
	r.Merged += shard.Merged - common.Merged
	r.Moves += shard.Moves - common.Moves
	r.Runs += shard.Runs
	r.Varied += shard.Varied
	r.Depth = max(r.Depth, shard.Depth)
	r.Untabled = cmp.Or(r.Untabled, shard.Untabled)
	r.Unjudged = cmp.Or(r.Unjudged, shard.Unjudged)
	r.addLeak(shard.Leak)
	r.Findings = append(r.Findings, shard.Findings...)
	for _, f := range shard.Failures {
		if !slices.ContainsFunc(r.Failures, func(other Failure) bool { return other.Script == f.Script }) { // a failure on a path that every shard explores is listed once
			r.Failures = append(r.Failures, f)
		}
	}
}

// disagreement names two exhausted shards whose common parts differ, or returns "". The common part
// is the same in every shard, unless the lock is not reproducible.
func disagreement(shards []Shard) string {
	var first *Shard
	for i, s := range shards {
		switch r := s.Result; {
		case r == nil || !r.Exhausted || r.Common == nil:
		case first == nil:
			first = &shards[i]
		case *r.Common != *first.Result.Common:
			return fmt.Sprintf("shards %d of %d and %d of %d don't agree on what is in every shard", first.Number, first.Of, s.Number, s.Of)
		}
	}
	return ""
}

// earliest returns, for each anomaly, the finding with the worst outcome that a whole search reaches
// first, in the order of a whole search. If a finding ends the search, list stops there and until is the reason.
func earliest(all []Finding, b Bound) (list []Finding, until string) {
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Moves, b.Moves), slices.Compare(a.Course, b.Course),
			cmp.Compare(slices.Index(a.Anomalies, a.Anomaly), slices.Index(b.Anomalies, b.Anomaly)))
	})
	var last Finding
	for _, f := range all {
		if until != "" && (f.Moves != last.Moves || !slices.Equal(f.Course, last.Course)) {
			break // a path after the one that ends the search
		}
		if i := slices.IndexFunc(list, func(other Finding) bool { return other.Anomaly == f.Anomaly }); i >= 0 && !f.Outcome.Worse(list[i].Outcome) {
			continue
		}
		last = f
		until = cmp.Or(until, b.until(f.Anomaly, f.Outcome))
		f.Course = nil
		list = replaced(list, f)
	}
	return list, until
}
