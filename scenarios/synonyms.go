package scenarios

import (
	"slices"
	"strings"

	"github.com/lockfault/lockfault/faults"
)

// synonyms returns words of the language with other words that users may write instead. The parser
// does not accept synonyms and only suggests the right word: the language has one word per thing.
func synonyms() map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(`
		acquire    lock take grab get obtain
		try        trylock try-lock tryacquire try-acquire attempt
		release    unlock free
		extend     renew refresh prolong keepalive
		work       sleep compute
		write      store save put
		rounds     loop repeat
		wait       sleep
		measure    timer stopwatch start
		expect     assert require
		ttl        lease
		for        only
		none       nothing ok safe held
		overlap    double-hold
	`) {
		if words := strings.Fields(line); len(words) > 0 {
			all[words[0]] = words[1:]
		}
	}
	for _, d := range faults.Definitions() {
		all[d.Word] = append(all[d.Word], d.Synonyms...)
	}
	return all
}

// sameMeaning returns the candidate for which the word is a synonym.
func sameMeaning(word string, candidates []string) (string, bool) {
	word = strings.ToLower(word)
	all := synonyms()
	i := slices.IndexFunc(candidates, func(candidate string) bool { return slices.Contains(all[candidate], word) })
	if i < 0 {
		return "", false
	}
	return candidates[i], true
}

// inSmallLetters returns the word of the list that a word with capital letters stands for, directly
// or as a synonym.
func inSmallLetters(word string, words []string) (string, bool) {
	if lower := strings.ToLower(word); slices.Contains(words, lower) {
		return lower, true
	}
	return sameMeaning(word, words)
}

// languageWords returns the words of the language, without the names of commands and anomalies.
func languageWords() []string {
	words := slices.Concat(clientWords(), faults.Words(faults.OnNode, faults.OnServer), stepWords(), settingWords())
	return append(words, "expect", "before", "after", "messages", "any", "on", "times", "by", "once", "from", "within",
		"jitter", "unlimited", "empty", "done", "held", "holding", "replies")
}
