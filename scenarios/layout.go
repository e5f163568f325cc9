package scenarios

// A layout is what the text of a script holds and its syntax tree does not:
// comments, paragraphs, the order of the settings, and where whom it selects is
// said. [Script.Format] puts it back, and [Script.CheckNames] points at it. The
// zero value is the layout of a script that was never text.
//
// Notes are kept by line number, which steps and expects carry too, so that a
// step that is taken out of a script takes its comments along.
type layout struct {
	file     string // as given to Parse
	notes    map[int]note
	settings []placed
	// selectors is where those of for stand, and of each expect, in order.
	selectors []place
	// tail is what follows the last line that says something.
	tail []string
}

// A note is what stands around one line of a script.
type note struct {
	// above holds the lines before it, formatted: comments, and "" for a
	// blank line.
	above []string
	// trailing is the text of the comment behind it.
	trailing string
	// written is the line with the names of params, if it has any, whose text with
	// their values is filled: whoever changes it takes them away.
	written, filled string
}

// placed is one line with a setting.
type placed struct {
	key  string // the setting's word; a thread's id too
	line int
}

// comment returns the line for a comment with the given text.
func comment(text string) string {
	if text == "" {
		return "#"
	}
	return "# " + text
}
