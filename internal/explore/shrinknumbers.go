package explore

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// jumps reports whether a line lets time pass for longer than a client needs to make progress.
func jumps(line string) bool {
	return strings.HasPrefix(line, "wait ") && len(measuresOf(line, time.Second)) > 0
}

// A tunable is a number in a line that can be reduced: the span of a pause or clock jump, or a
// number of rounds. Its values are on a grid that begins at 0.
type tunable struct {
	at   int // index of the word
	now  int // the nearest value on the grid that is not smaller
	show func(int) string
}

// finest is the step between two spans that are tried, in TTLs. The constant past is added to each
// span, because locks schedule their timers after round spans.
const finest = 0.01

// measuresOf returns the numbers in a line that can be reduced.
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

// measureOf returns a span as a tunable; ok is false if the span is too short to be reduced.
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

// withMeasure returns the candidate with another value in one line.
func (d candidate) withMeasure(unit, line int, m tunable, value int) candidate {
	s := sentenceOf(d.units[unit][line])
	s.words = slices.Clone(s.words)
	s.words[m.at] = m.show(value)
	d.units = slices.Clone(d.units)
	d.units[unit] = slices.Clone(d.units[unit])
	d.units[unit][line] = s.String()
	return d
}
