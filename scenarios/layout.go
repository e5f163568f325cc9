package scenarios

// layout holds the parts of a script's text that the syntax tree does not have. These are comments,
// paragraphs, the order of the settings, and the positions of selectors. [Script.Format] restores
// these parts, and [Script.CheckNames] uses the positions. The zero value is the layout of a script
// without a text.
//
// Notes are stored by line number, as steps and expects have line numbers, too. A step that is
// removed from a script therefore takes its comments along.
type layout struct {
	file     string // as given to Parse
	notes    map[int]note
	settings []placed
	// selectors holds the positions of the selectors of for and of each expect, in order.
	selectors []place
	// tail holds the lines after the last line with words.
	tail []string
}

// note holds the comments around one line of a script.
type note struct {
	// above holds the formatted lines before the line: comments, and "" for a blank line.
	above []string
	// trailing is the text of the comment after the line.
	trailing string
	// written is the line with the names of its parameters, if it has any; filled is the same line
	// with their values. If the line's text differs from filled, written is no longer used.
	written, filled string
}

// placed is one line with a setting.
type placed struct {
	key  string // the setting's first word, with the id of a thread
	line int
}

// comment returns the line for a comment with the given text.
func comment(text string) string {
	if text == "" {
		return "#"
	}
	return "# " + text
}
