package faults

import "strings"

// IsClient reports whether text has the form of a client's name: a capital letter, followed by
// letters and digits.
func IsClient(text string) bool {
	return text != "" && text[0] >= 'A' && text[0] <= 'Z' && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9')
	})
}

// IsNode reports whether text has the form of a node's or a server's name: n1, n1/0 or [Quorum].
func IsNode(text string) bool {
	text, number, server := strings.Cut(text, "/")
	digits, ok := strings.CutPrefix(text, "n")
	return text == Quorum && !server || ok && isDigits(digits) && (!server || isDigits(number))
}

func isDigits(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
}
