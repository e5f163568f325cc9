package explore

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// jumps reports whether time goes on in a line for longer than it takes to see to something.
func jumps(line string) bool {
	return strings.HasPrefix(line, "wait ") && len(measuresOf(line, time.Second)) > 0
}

// A tunable is a number in a line that may be smaller: the span of a pause, or of a clock's jump, or how
// many rounds there are. It has a grid of values, from 0.
type tunable struct {
	at   int // the word
	now  int // the value on the grid that is nearest from above
	show func(int) string
}

// finest is the step between two spans that are tried, in TTLs. past is added: what a lock does by the
// clock it does after round ones.
const finest = 0.01

// measuresOf returns what may be smaller in a line.
func measuresOf(line string, ttl time.Duration) (list []tunable) {
	words := sentenceOf(line).words
	for i, word := range words[:max(0, len(words)-1)] {
		next := words[i+1]
		switch {
		case word == "rounds":
			if n, err := strconv.Atoi(next); err == nil && n > 1 {
				list = append(list, tunable{i + 1, n - 1, func(n int) string { return strconv.Itoa(n + 1) }})
			}
		case word == "wait" && i == 0, word == "work", word == "update", word == "think", word == "clock", word == "for" && i > 0 && words[i-1] == "rounds":
			if m, ok := measureOf(i+1, next, ttl); ok {
				list = append(list, m)
			}
		}
	}
	return list
}

// measureOf returns a span as a measure, if it is long enough to be made smaller.
func measureOf(at int, word string, ttl time.Duration) (m tunable, ok bool) {
	unsigned := strings.TrimLeft(word, "+-")
	sign := word[:len(word)-len(unsigned)]
	length, err := faults.ParseSpan(unsigned)
	if err != nil || ttl <= 0 {
		return m, false
	}
	in := float64(length.Of(ttl)) / float64(ttl)
	if in <= 2*finest {
		return m, false
	}
	m = tunable{at: at}
	for m.now = 0; float64(m.now)*finest+past < in-1e-9; m.now++ {
	}
	m.show = func(n int) string {
		ttls := float64(n)*finest + past
		if length.TTLs != 0 {
			return sign + span(ttls)
		}
		return sign + faults.Span{Abs: time.Duration(ttls * float64(ttl)).Round(time.Millisecond)}.String()
	}
	return m, true
}

// withMeasure returns the draft with another value in a line of a unit.
func (d candidate) withMeasure(unit, line int, m tunable, value int) candidate {
	s := sentenceOf(d.units[unit][line])
	s.words = slices.Clone(s.words)
	s.words[m.at] = m.show(value)
	d.units = slices.Clone(d.units)
	d.units[unit] = slices.Clone(d.units[unit])
	d.units[unit][line] = s.String()
	return d
}
