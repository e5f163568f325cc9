package reports

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/internal/printable"
)

// newText returns a buffered writer for a document with foreign strings: nothing that is written to
// it acts on a terminal. The caller must escape characters that are special in the document's
// format.
func newText(w io.Writer) *bufio.Writer { return bufio.NewWriter(printable.NewWriter(w)) }

// shown returns a name that is safe to print, with at most 80 characters.
func shown(name string) string { return clipTo(printable.Line(name), 80) }

// shortLine returns a text that is safe to print on one line, clipped to 300 characters.
func shortLine(text string) string { return clipTo(printable.Line(text), 300) }

func each[T any](in []T, f func(T) string) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}

// placed returns the element of a list for which is returns true. If there is none, placed appends
// the given one.
func placed[T any](list *[]T, is func(T) bool, fresh T) *T {
	i := slices.IndexFunc(*list, is)
	if i < 0 {
		i = len(*list)
		*list = append(*list, fresh)
	}
	return &(*list)[i]
}

// escape returns a text that Markdown shows literally, on one line.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", `\<`, "[", `\[`, "]", `\]`,
		"://", `:\/\/`, "www.", `www\.`, "@", `\@`, // or GitHub would make links
	).Replace(printable.Line(strings.ReplaceAll(text, "\n", " ")))
}

func list(numbers []int) string {
	return strings.Join(each(numbers, func(n int) string { return fmt.Sprint(n) }), ", ")
}

// code formats a name as code.
func code(name string) string {
	return "`" + strings.ReplaceAll(printable.Line(name), "`", "'") + "`"
}

// count returns a number with a noun, in the plural unless n is 1.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Thousands formats a number, which must not be negative, with commas between groups of 3 digits.
func Thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// clip shortens a text so that the four truths stay on the screen.
func clip(text string) string { return clipTo(text, 46) }

// clipTo shortens a text to the given number of characters.
func clipTo(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit-1]) + "…"
}

func pad(text string, width int) string {
	return fmt.Sprintf("%-*s", width, text) // pads by characters, not by bytes
}

func writeLine(b *bufio.Writer, line string) {
	b.WriteString(strings.TrimRight(line, " "))
	b.WriteByte('\n')
}

// some lists at most the given number of names.
func some(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// readable returns a text that is safe to print. readable allows 2000 characters, more than [shown]
// does, for texts such as commands.
func readable(text string) string { return clipTo(printable.Line(text), 2000) }

// contains reports whether the first 1024 bytes of the input contain all texts.
func contains(r io.Reader, texts ...string) bool {
	beginning := make([]byte, 1<<10)
	n, _ := io.ReadFull(r, beginning)
	for _, text := range texts {
		if !bytes.Contains(beginning[:n], []byte(text)) {
			return false
		}
	}
	return true
}

// annotated escapes the text of an annotation, or of one of its properties.
func annotated(text string, property bool) string {
	text = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
	if property {
		text = strings.NewReplacer(":", "%3A", ",", "%2C").Replace(text)
	}
	return text
}

// spaced returns words with spaces between them.
func spaced[S ~string](words []S) string {
	return strings.Join(each(words, func(w S) string { return string(w) }), " ")
}
