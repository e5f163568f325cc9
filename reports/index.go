package reports

import (
	"fmt"
	"slices"

	"github.com/lockfault/lockfault/checker"
)

// A set holds anomalies, one bit each, by their place in [checker.Anomalies]: at most 32.
type set uint32

func setOf(list []checker.Anomaly) (set, error) {
	var s set
	for _, a := range list {
		place := slices.Index(checker.Anomalies(), a)
		if place < 0 {
			return 0, fmt.Errorf("there is no anomaly called %q", a)
		}
		s |= 1 << place
	}
	return s, nil
}

// list returns the members in the order of [checker.Anomalies].
func (s set) list() []checker.Anomaly {
	var list []checker.Anomaly
	for place, a := range checker.Anomalies() {
		if s&(1<<place) != 0 {
			list = append(list, a)
		}
	}
	return list
}

// An index numbers names in the order in which they are first placed.
type index struct {
	names  []string
	places map[string]int
}

func (x *index) place(name string) int {
	place, ok := x.places[name]
	if !ok {
		if x.places == nil {
			x.places = map[string]int{}
		}
		place = len(x.names)
		x.places[name] = place
		x.names = append(x.names, name)
	}
	return place
}
