package stdio

import "strings"

// printedLines is how many lines of what a program printed stand with an error.
const printedLines = 10

// Printed returns the end of what a program printed, as a paragraph to stand behind the
// reason of an error: who did, and the last lines. It is empty if nothing was
// printed.
func Printed(who, text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	if over := len(lines) - printedLines; over > 0 {
		lines = append([]string{"…"}, lines[over:]...)
	}
	return "\n\n" + who + " printed:\n" + strings.Join(lines, "\n")
}
