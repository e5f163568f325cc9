package postgres

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// maxStatements is of how many statements in one text something is kept.
const maxStatements = 16

// A statement is one of SQL, as scripts and histories have it.
type statement struct {
	command string // its first word in upper case, as commandOf says
	text    string // on one line, without comments, and no longer than [proxy.MaxText]
	hides   bool   // a password may be in it, and what is left out of its text, its parameters and its answer are not to be shown
}

// statements takes a text of SQL apart, which may have several statements. It knows strings and comments, and no more of SQL. Of
// a text without any it returns one whose command is EMPTY.
func statements(sql string) (list []statement) {
	for rest := sql; rest != "" && len(list) < maxStatements; {
		var one string
		one, rest = cutStatement(rest)
		if one != "" {
			text, hides := hide(one)
			list = append(list, statement{commandOf(one), proxy.Shorten(text), hides})
		}
	}
	if len(list) == 0 {
		list = []statement{{command: "EMPTY"}}
	}
	return list
}

// commandOf returns what scripts call a statement: its first word, and where SQL has two for one thing, the name by which the
// server answers.
func commandOf(sql string) string {
	sql = strings.TrimLeft(sql, "( ")
	word := sql
	if end := strings.IndexFunc(sql, func(r rune) bool { return !unicode.IsLetter(r) && r != '_' }); end >= 0 {
		word = sql[:end]
	}
	switch word = strings.ToUpper(word); word {
	case "":
		return "UNKNOWN"
	case "END":
		return "COMMIT"
	case "ABORT":
		return "ROLLBACK"
	case "START":
		return "BEGIN"
	}
	return word
}

// cutStatement returns the first statement of a text on one line, without comments, and what is behind its semicolon.
func cutStatement(sql string) (one, rest string) {
	var b strings.Builder
	blank := func() {
		if b.Len() > 0 && !strings.HasSuffix(b.String(), " ") {
			b.WriteByte(' ')
		}
	}
	depth := 0 // of parentheses
	for i := 0; i < len(sql); {
		n := 1
		switch c := sql[i]; {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ';' && depth <= 0 && !(body.MatchString(b.String()) && !bodyEnd.MatchString(b.String())):
			return strings.TrimSpace(b.String()), sql[i+1:]
		case c == '\'':
			n = quoted(sql[i:], '\'', i > 0 && (sql[i-1] == 'E' || sql[i-1] == 'e'))
		case c == '"':
			n = quoted(sql[i:], '"', false)
		case c == '$':
			n = dollars(sql[i:])
		case strings.HasPrefix(sql[i:], "--"):
			if n = strings.IndexByte(sql[i:], '\n'); n < 0 {
				n = len(sql) - i
			}
			blank()
			i += n
			continue
		case strings.HasPrefix(sql[i:], "/*"):
			blank()
			i += comment(sql[i:])
			continue
		case c <= ' ':
			blank()
			i++
			continue
		}
		b.WriteString(sql[i : i+n])
		i += n
	}
	return strings.TrimSpace(b.String()), ""
}

// quoted returns how long what stands in quotes at the beginning of a text is, with them; a quote that is doubled, or behind
// a backslash where those count, ends nothing.
func quoted(sql string, quote byte, backslashes bool) int {
	for i := 1; i < len(sql); i++ {
		switch {
		case sql[i] == '\\' && backslashes:
			i++
		case sql[i] == quote && i+1 < len(sql) && sql[i+1] == quote:
			i++
		case sql[i] == quote:
			return i + 1
		}
	}
	return len(sql)
}

// dollars returns how long what stands between $tag$ and $tag$ at the beginning of a text is, with these; 1 if it is another dollar, as of $1.
func dollars(sql string) int {
	end := strings.IndexFunc(sql[1:], func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if end < 0 || sql[1+end] != '$' || end > 0 && unicode.IsDigit(rune(sql[1])) {
		return 1
	}
	tag := sql[:end+2]
	if n := strings.Index(sql[len(tag):], tag); n >= 0 {
		return n + 2*len(tag)
	}
	return len(sql)
}

// comment returns how long the comment at the beginning of a text is, with those in it.
func comment(sql string) int {
	depth := 0
	for i := 0; i+1 < len(sql); {
		switch sql[i : i+2] {
		case "/*":
			depth++
			i += 2
		case "*/":
			depth--
			if i += 2; depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return len(sql)
}

// body matches the beginning of a statement that has others in it, up to where those end.
var (
	body    = regexp.MustCompile(`(?is)^CREATE .*\bBEGIN ATOMIC\b`)
	bodyEnd = regexp.MustCompile(`(?i)\bEND\s*$`)
)

// secret matches the words behind which a password stands, in SQL and in what connects to other servers.
var secret = regexp.MustCompile(`(?i)passw(?:or)?d|identified\s+by|\bpwd\s*=`)

// hide leaves out of a statement all that stands behind a word for a password, however that is written: histories are there
// to be shown.
func hide(sql string) (shown string, hides bool) {
	at := secret.FindStringIndex(sql)
	if at == nil {
		return sql, false
	}
	return sql[:at[1]] + " (secret)", true
}
