// Package suggest finds the word that a user probably meant. The inputs are a mistyped word and the
// valid words; the output is the nearest valid word. The package imports only the standard library.
package suggest

import "strings"

// longest is the maximum length of a word. It limits the work for a hostile word; a real typing
// error is shorter.
const longest = 64

// Of returns the candidate that word most likely stands for, or false if no candidate is near
// enough. Up to about one slip in three letters is near enough. A slip is an additional, missing or
// wrong letter, or a swap of two adjacent letters. Candidates that differ only in case are always
// near enough, but a candidate equal to word is ignored. If no whole candidate is near, Of compares
// the word with the beginnings of candidates up to a dash. Of several equally near candidates the
// first wins. Of is safe for concurrent use.
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

// search holds the nearest candidate so far.
type search struct {
	within int // maximum number of slips
	found  string
}

// see compares a candidate. Later candidates must be strictly nearer than the one found.
func (s *search) see(candidate string, slips int) {
	if slips < s.within || slips == s.within && s.found == "" {
		s.within, s.found = slips, candidate
	}
}

// distance returns the number of slips between a and b: the restricted Damerau–Levenshtein
// distance, in which no letter takes part in two slips.
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
