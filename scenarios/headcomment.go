package scenarios

import "strings"

// sourceMark is the prefix of the head comment's source lines.
const sourceMark = "source:"

// Summary returns the first line of the head comment without its final period, or an empty string.
func (s *Script) Summary() string {
	for _, line := range s.Doc {
		if !strings.HasPrefix(line, sourceMark) {
			return strings.TrimSuffix(line, ".")
		}
	}
	return ""
}

// Sources returns the texts of the head comment's "# source: …" lines.
func (s *Script) Sources() []string {
	var sources []string
	for _, line := range s.Doc {
		if source, ok := strings.CutPrefix(line, sourceMark); ok {
			sources = append(sources, strings.TrimSpace(source))
		}
	}
	return sources
}
