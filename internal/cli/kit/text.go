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

// AnomalyText returns the anomalies separated by spaces, as in the file, or "none".
func AnomalyText(list []checker.Anomaly) string {
	if len(list) == 0 {
		return "none"
	}
	text := make([]string, len(list))
	for i, a := range list {
		text[i] = string(a)
	}
	return strings.Join(text, " ")
}

func AnomalyNames() (names []string) {
	for _, a := range checker.Anomalies() {
		names = append(names, string(a))
	}
	return names
}

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
