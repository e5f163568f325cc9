// Package nearest finds the word that somebody probably meant. A mistyped word
// and the words that would have been right come in; the nearest of them goes
// out. It imports only the standard library.
package suggest

import "strings"

// longest bounds the work for a hostile word; nobody mistypes a word that long.
const longest = 64

// Of returns the candidate that word most likely stands for, or false if none
// is near enough to be worth proposing: about one slip in three letters, where
// a slip is a letter too many, too few, wrong, or swapped with its neighbour.
// A difference of case alone is always near. If none is, one is near whose first
// words are, of those that dashes join. Of several equally near candidates the first
// wins. Safe for concurrent use.
func Of(word string, candidates []string) (string, bool) {
	letters := []rune(strings.ToLower(word))
	if len(letters) == 0 || len(letters) > longest {
		return "", false
	}
	whole, first := search{within: len(letters) / 3}, search{within: len(letters) / 3}
	for _, candidate := range candidates {
		other := []rune(strings.ToLower(candidate))
		if len(other) > longest || candidate == "" || candidate == word {
			continue
		}
		whole.see(candidate, distance(letters, other))
		for i, letter := range other {
			if letter == '-' && i > 0 && other[i-1] != '-' {
				first.see(candidate, distance(letters, other[:i]))
			}
		}
	}
	if whole.found == "" {
		whole = first
	}
	return whole.found, whole.found != ""
}

// A search keeps the nearest of the candidates that it sees.
type search struct {
	within int // as many slips
	found  string
}

// see takes a candidate. Later ones must be strictly nearer than the one found.
func (s *search) see(candidate string, slips int) {
	if slips < s.within || slips == s.within && s.found == "" {
		s.within, s.found = slips, candidate
	}
}

// distance returns the number of slips between a and b, by the restricted
// Damerau–Levenshtein distance: no letter takes part in two slips.
func distance(a, b []rune) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
