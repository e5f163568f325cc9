package stdio

import "strings"

// printedLines is the maximum number of a program's output lines in an error.
const printedLines = 10

// OutputTail returns the end of a program's output as a paragraph that follows the reason of an
// error. The paragraph has the program's name who and the last lines. OutputTail returns an empty
// string if the output is empty.
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

// LastLineOfTail returns the last line of the first paragraph of [OutputTail] in a text, or an
// empty string if there is none. That line usually has the reason.
func LastLineOfTail(text string) string {
	_, text, _ = strings.Cut(text, tailMark)
	text, _, _ = strings.Cut(text, "\n\n")
	return strings.TrimSpace(text[strings.LastIndex(text, "\n")+1:])
}
