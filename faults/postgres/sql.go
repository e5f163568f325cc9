package postgres

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// maxStatements is the maximum number of statements in one text that are kept.
const maxStatements = 16

// A statement is an SQL statement, in the form of scripts and histories.
type statement struct {
	command string // the result of commandOf, in upper case
	text    string // on one line, without comments, at most [proxy.MaxText] characters
	hides   bool   // it may contain a password: omitted text, parameters and the answer must not be shown
}

// statements splits SQL text into its statements. It parses strings, comments, parentheses and the
// bodies of functions, and no other syntax. For a text without statements it returns one whose
// command is EMPTY.
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

// commandOf returns the command of a statement: its first word or, where SQL has two words for one
// command, the name in the server's answer.
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

// cutStatement returns the first statement of a text, on one line and without comments, and the
// text after its semicolon.
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

// quoted returns the length of the quoted string at the beginning of a text, including the quotes,
// in bytes. A doubled quote doesn't end the string, and neither does a quote after a backslash if
// backslashes is set.
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

// dollars returns the length in bytes of the string from $tag$ to $tag$ at the beginning of a text,
// including both tags. It returns 1 for another dollar, such as that of $1.
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

// comment returns the length of the comment at the beginning of a text, including nested comments,
// in bytes.
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

// body matches the beginning of a statement that contains other statements, up to the position
// where bodyEnd matches.
var (
	body    = regexp.MustCompile(`(?is)^CREATE .*\bBEGIN ATOMIC\b`)
	bodyEnd = regexp.MustCompile(`(?i)\bEND\s*$`)
)

// secret matches the words that precede a password, in SQL and in connection strings.
var secret = regexp.MustCompile(`(?i)passw(?:or)?d|identified\s+by|\bpwd\s*=`)

// hide removes everything after a word for a password from a statement, however the password is
// written: histories are published.
func hide(sql string) (shown string, hides bool) {
	at := secret.FindStringIndex(sql)
	if at == nil {
		return sql, false
	}
	return sql[:at[1]] + " (secret)", true
}
