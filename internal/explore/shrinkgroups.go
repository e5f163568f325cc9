package explore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockfault/lockfault/faults"
)

// This file groups the units of a candidate that shrinking removes together.

// rounds returns the rounds of each client. A round is a list of the units that name only this
// client, from one that begins a round to the next.
func (d candidate) rounds() [][]int {
	var list [][]int
	for _, client := range d.clients {
		var round []int
		for i, unit := range d.units {
			if d.sole(unit) != client {
				continue
			}
			begins := slices.ContainsFunc(unit, func(line string) bool {
				words := sentenceOf(line).words
				return slices.ContainsFunc(words, func(word string) bool { return slices.Contains([]string{"acquire", "try", "rounds"}, word) })
			})
			if begins && len(round) > 0 {
				list = append(list, round)
				round = nil
			}
			round = append(round, i)
		}
		if len(round) > 0 {
			list = append(list, round)
		}
	}
	return list
}

// families returns lists of related units, which may make no sense without each other. Examples are
// a pause and its end, or a held message and the line that passes it. Families with faults come
// first.
func (d candidate) families() [][]int {
	var keys []string
	lists := map[string][]int{}
	for _, faulty := range []bool{true, false} {
		for i, unit := range d.units {
			for _, line := range unit {
				key, fault := familyOf(line)
				if key == "" && jumps(line) {
					key, fault = fmt.Sprint("jump ", i), true
				}
				if key == "" || fault != faulty {
					continue
				}
				if lists[key] == nil {
					keys = append(keys, key)
				}
				if !slices.Contains(lists[key], i) {
					lists[key] = append(lists[key], i)
				}
			}
		}
	}
	list := make([][]int, 0, len(keys))
	for _, key := range keys {
		list = append(list, lists[key])
	}
	return list
}

// familyOf returns the name of the family of a line, and whether the family is a fault; the name is
// "" if the line has no family.
func familyOf(line string) (name string, fault bool) {
	s := sentenceOf(line)
	first, last := s.words[0], s.words[len(s.words)-1]
	switch {
	case first == "measure" || first == "stop":
		return "stopwatch " + last, false
	case first == "await" && slices.Contains(s.words, "held"):
		return faults.GateGroup, false
	}
	d, ok := faults.DefinitionOf(s.words)
	switch {
	case !ok || d.Target.PutsNamesFirst() && d.Group == "":
		return "", false
	case d.Target.PutsNamesFirst():
		return d.Group + " " + first, true
	}
	return cmp.Or(d.Group, d.Word), d.Group != faults.GateGroup
}
