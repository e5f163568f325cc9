package bench

import (
	"slices"
	"time"
)

// sumUp returns the costs of each path from its slices, which are in the order of rounds.
func sumUp(strategy string, contenders int, length time.Duration, paths []string, of [][]slice) []Cost {
	rates := map[string][]float64{}
	for p, path := range paths {
		for _, s := range of[p] {
			rates[path] = append(rates[path], s.rate(length))
		}
	}
	var list []Cost
	for p, path := range paths {
		c := Cost{
			Strategy: strategy, Contenders: contenders, Path: path, PairsPerSecond: median(rates[path]),
			OverDirect: over(rates[Direct], rates[path]), OverHop: over(rates[Hop], rates[path]),
		}
		var took, p50s, p99s []time.Duration
		inTime, busiest := 0, 0
		for _, s := range of[p] {
			took = append(took, s.took...)
			if own := slices.Sorted(slices.Values(s.took)); len(own) > 0 {
				p50s, p99s = append(p50s, quantile(own, 50)), append(p99s, quantile(own, 99))
			}
			c.Failures += s.failures
			inTime += s.inTime
			// The busiest contender may change from slice to slice.
			busiest += slices.Max(s.each)
		}
		c.Pairs = len(took)
		slices.Sort(took)
		c.P50, c.P99 = quantile(took, 50), quantile(took, 99)
		if len(p50s) > 0 {
			c.P50Least, c.P50Most = slices.Min(p50s), slices.Max(p50s)
			c.P99Least, c.P99Most = slices.Min(p99s), slices.Max(p99s)
		}
		if inTime > 0 {
			c.Busiest = float64(busiest) / float64(inTime)
		}
		list = append(list, c)
	}
	return list
}

// over returns the ratio of the first rates to the second: the median of the rounds in which both
// are positive.
func over(these, those []float64) float64 {
	var ratios []float64
	for i := range these {
		if these[i] > 0 && those[i] > 0 {
			ratios = append(ratios, these[i]/those[i])
		}
	}
	return median(ratios)
}

// median returns the median, or 0 for an empty list.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	mid := len(list) / 2
	if len(list)%2 == 1 {
		return list[mid]
	}
	return (list[mid-1] + list[mid]) / 2
}

// quantile returns the smallest of the sorted values that the given percentage of them does not
// exceed; 0 for an empty list.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(percent*len(sorted)+99)/100-1]
}
