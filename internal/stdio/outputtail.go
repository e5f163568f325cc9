package stdio

import "strings"

// printedLines is how many lines of what a program printed stand with an error.
const printedLines = 10

// OutputTail returns the end of what a program printed, as a paragraph to stand behind the
// reason of an error: who did, and the last lines. It is empty if nothing was
// printed.
func OutputTail(who, text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	if over := len(lines) - printedLines; over > 0 {
		lines = append([]string{"…"}, lines[over:]...)
	}
	return "\n\n" + who + tailMark + strings.Join(lines, "\n")
}

const tailMark = " printed:\n"

// LastLineOfTail returns the last line of what a text says that somebody printed, in the
// form of [OutputTail]; it is empty if the text doesn't say so. There the reason is, mostly.
func LastLineOfTail(text string) string {
	_, text, _ = strings.Cut(text, tailMark)
	text, _, _ = strings.Cut(text, "\n\n")
	return strings.TrimSpace(text[strings.LastIndex(text, "\n")+1:])
}
