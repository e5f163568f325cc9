package explore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Join returns what a search came to from what its shards did: one result for each of them, in
// their order, nil for one that is missing. It is what the whole search comes to, but for
// Runs, which is how many scripts all shards played. A shard that is missing or was cut is a cut of the
// whole.
func Join(shards []*Result) Result {
	var whole Result
	var cuts []string
	cut := func(i int, why string) { cuts = append(cuts, fmt.Sprintf("shard %d of %d %s", i+1, len(shards), why)) }
	var common Counts
	for i, r := range shards {
		if r == nil {
			cut(i, "is missing")
			continue
		}
		if r.Cut != "" {
			cut(i, "was cut: "+r.Cut)
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
	whole.Findings = earliest(whole.Findings)
	whole.Cut = strings.Join(cuts, "; ")
	whole.Exhausted = whole.Cut == "" && len(whole.Failures) == 0
	return whole
}

// add adds a shard without what is in every one.
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
	r.Findings = append(r.Findings, shard.Findings...)
	for _, f := range shard.Failures {
		if !slices.Contains(r.Failures, f) { // one on a path that is in every shard
			r.Failures = append(r.Failures, f)
		}
	}
}

// disagreement says which two shards, both exhausted, don't have the same in common. What
// is in every shard is the same, unless the lock does not do the same each time.
func disagreement(shards []*Result) string {
	first := -1
	for i, r := range shards {
		if r == nil || !r.Exhausted || r.Common == nil {
			continue
		}
		if first >= 0 && *r.Common != *shards[first].Common {
			return fmt.Sprintf("shards %d and %d don't agree on what is in every shard", first+1, i+1)
		}
		if first < 0 {
			first = i
		}
	}
	return ""
}

// earliest returns, for each anomaly, the finding that a whole search comes upon first, in
// the order in which it does.
func earliest(all []Finding) []Finding {
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Moves, b.Moves), slices.Compare(a.Course, b.Course),
			cmp.Compare(slices.Index(a.Anomalies, a.Anomaly), slices.Index(b.Anomalies, b.Anomaly)))
	})
	var list []Finding
	for _, f := range all {
		if !slices.ContainsFunc(list, func(other Finding) bool { return other.Anomaly == f.Anomaly }) {
			f.Course = nil
			list = append(list, f)
		}
	}
	return list
}
