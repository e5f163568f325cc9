package scenarios

import "strings"

// sourceMark begins the lines of the head comment that name sources.
const sourceMark = "source:"

// Summary returns the first line of the head comment, without its full stop;
// it is empty if the script has no head comment.
func (s *Script) Summary() string {
	for _, line := range s.Doc {
		if !strings.HasPrefix(line, sourceMark) {
			return strings.TrimSuffix(line, ".")
		}
	}
	return ""
}

// Sources returns what the lines "# source: …" of the head comment name.
func (s *Script) Sources() []string {
	var sources []string
	for _, line := range s.Doc {
		if source, ok := strings.CutPrefix(line, sourceMark); ok {
			sources = append(sources, strings.TrimSpace(source))
		}
	}
	return sources
}
