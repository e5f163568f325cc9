package kit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/lockfault/lockfault/checker"
)

func Count(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + several
}

func Indent(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "    " + line
		}
	}
	return strings.Join(lines, "\n")
}

// Each returns a text for each element of a list.
func Each[T any](list []T, text func(T) string) []string {
	var texts []string
	for _, x := range list {
		texts = append(texts, text(x))
	}
	return texts
}

// Words returns a list of names as strings.
func Words[S ~string](list []S) []string { return Each(list, func(s S) string { return string(s) }) }

// AnomalyText returns the anomalies separated by spaces, as in the file, or "none".
func AnomalyText(list []checker.Anomaly) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(Words(list), " ")
}

func AnomalyNames() []string { return Words(checker.Anomalies()) }

// PathErrorText removes the name of the system call from a path error, which does not help users.
func PathErrorText(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}

// ShortList keeps the first 40 lines and counts the rest; the report has all of them.
type ShortList struct {
	list []string
	more int
}

func (s *ShortList) Add(line string) {
	const most = 40
	if len(s.list) == most {
		s.more++
		return
	}
	s.list = append(s.list, line)
}

// Len returns the number of lines that were added.
func (s *ShortList) Len() int { return len(s.list) + s.more }

func (s *ShortList) Print(w io.Writer) {
	for _, line := range s.list {
		fmt.Fprintln(w, line)
	}
	if s.more > 0 {
		fmt.Fprintf(w, "and %d more, which the report has\n", s.more)
	}
}
