package conformance

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A table is a file of cases.
type table struct {
	file    string
	scripts map[string]string // texts by name
	lines   []string          // as they are in the file
	cases   []*tableCase
}

// A tableCase is played on servers of its own, or such as are like new.
type tableCase struct {
	title string
	line  int
	since version // of Redis; older servers know nothing of it
	steps []*step
}

// A step is something that happens, and the replies that come of it.
type step struct {
	line int // the last that it takes, without the replies
	does action
	conn string        // whose
	send [][]string    // the commands, as they are in the file
	wait time.Duration // how long to wait or to let pass
	arg  string
	want []reply
}

type action int

const (
	actCall    action = iota // send commands and read as many replies
	actSend                  // send a command that will not be answered yet
	actReceive               // read what comes
	actClose                 // close the connection
	actAdvance               // let time pass
	actStream                // stop or start the replication stream
)

// A reply is what a line of the file says, and the lines behind it where
// somebody answers something else.
type reply struct {
	from, to int // the lines of the file that it takes
	redis    string
	others   []other
}

// An other is who answers something else.
type other struct {
	who       string  // sim, redis or valkey
	since     version // of redis and valkey: the first that does
	text, why string
}

// sim returns what the world of virtual time answers where that differs.
func (r reply) sim() (text string, different bool) {
	for _, o := range r.others {
		if o.who == "sim" {
			return o.text, true
		}
	}
	return "", false
}

// of returns what that server answers: the last line that speaks of it counts.
func (r reply) of(server release) string {
	text := r.redis
	for _, o := range r.others {
		if v, ok := server[o.who]; ok && !v.before(o.since) {
			text = o.text
		}
	}
	return text
}

var (
	otherLine   = regexp.MustCompile(`^# (?:(sim)|(redis|valkey) (\d+\.\d+)): (.*)`)
	stepLine    = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]*)(>>|>|&|<)(?: (.*))?$`)
	wordPattern = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'|\S+`)
	patience    = 3 * time.Minute // for a reply that must come
)

// readTable reads a file of cases. Errors begin with file and line.
func readTable(file string) (*table, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	t := &table{file: file, scripts: map[string]string{}, lines: strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")}
	for i := range t.lines {
		if err := t.read(i); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
	}
	for _, c := range t.cases {
		for _, s := range c.steps {
			for _, r := range s.want {
				for _, o := range r.others {
					if o.why == "" {
						return nil, fmt.Errorf("%s:%d: %s answers differently: say why on the line after it, \"# why: …\"", file, r.to, o.who)
					}
				}
			}
		}
	}
	return t, nil
}

// read reads one line.
func (t *table) read(i int) error {
	line := t.lines[i]
	word, rest, _ := strings.Cut(line, " ")
	if word == "==" {
		t.cases = append(t.cases, &tableCase{title: rest, line: i + 1})
		return nil
	}
	if word == "script" {
		name, text, ok := strings.Cut(rest, " ")
		if !ok {
			return fmt.Errorf("a script has a name and a text")
		}
		t.scripts[name] = text
		return nil
	}
	plain := line == "" || word == "#"
	if plain && !otherLine.MatchString(line) && !strings.HasPrefix(line, "# why: ") {
		return nil
	}
	if len(t.cases) == 0 {
		return fmt.Errorf("%q stands before the first case; one begins with == and a title", line)
	}
	c := t.cases[len(t.cases)-1]
	if plain {
		return c.readDifference(i, line)
	}
	open := c.open()
	switch {
	case word == "since":
		v, err := parseVersion(rest)
		c.since = v
		return err
	case word == "advance":
		wait, err := time.ParseDuration(rest)
		if err != nil {
			return fmt.Errorf("advance by how much? %w", err)
		}
		c.steps = append(c.steps, &step{line: i + 1, does: actAdvance, wait: wait})
		return nil
	case word == "replication":
		if rest != "stop" && rest != "start" {
			return fmt.Errorf("replication can stop or start, not %q", rest)
		}
		c.steps = append(c.steps, &step{line: i + 1, does: actStream, arg: rest})
		return nil
	case word == "close":
		c.steps = append(c.steps, &step{line: i + 1, does: actClose, conn: rest})
		return nil
	}
	found := stepLine.FindStringSubmatch(line)
	if found == nil {
		if open == nil || open.does == actSend || open.does > actReceive {
			return fmt.Errorf("%q is no step, and not the reply to one", line)
		}
		if open.does == actCall && len(open.want) == len(open.send) || open.does == actReceive && len(open.want) == 1 {
			return fmt.Errorf("%q is one reply too many", line)
		}
		open.want = append(open.want, reply{from: i, to: i + 1, redis: line})
		return nil
	}
	s := &step{line: i + 1, conn: found[1], wait: patience}
	if found[2] == "<" {
		s.does = actReceive
		if found[3] != "" {
			wait, err := time.ParseDuration(found[3])
			if err != nil {
				return fmt.Errorf("wait how long? %w", err)
			}
			s.wait = wait
		}
		c.steps = append(c.steps, s)
		return nil
	}
	words := wordPattern.FindAllString(found[3], -1)
	if len(words) == 0 {
		return fmt.Errorf("%s sends nothing", s.conn)
	}
	if open != nil && open.arg == ">>" {
		if open.conn != s.conn {
			return fmt.Errorf("%s has not sent its pipeline yet", open.conn)
		}
		s = open
	} else {
		c.steps = append(c.steps, s)
	}
	s.line, s.arg = i+1, found[2]
	s.send = append(s.send, words)
	if found[2] == "&" {
		s.does = actSend
	}
	return nil
}

// open returns the step that replies belong to now.
func (c *tableCase) open() *step {
	if len(c.steps) == 0 {
		return nil
	}
	return c.steps[len(c.steps)-1]
}

// readDifference reads how somebody's answer differs from the one before, or why.
func (c *tableCase) readDifference(i int, line string) error {
	s := c.open()
	if s == nil || len(s.want) == 0 || s.want[len(s.want)-1].to != i {
		return fmt.Errorf("%q stands behind no reply", line)
	}
	r := &s.want[len(s.want)-1]
	r.to = i + 1
	if found := otherLine.FindStringSubmatch(line); found != nil {
		o := other{who: found[1] + found[2], text: found[4]}
		var err error
		if found[3] != "" {
			o.since, err = parseVersion(found[3])
		}
		r.others = append(r.others, o)
		return err
	}
	if len(r.others) == 0 {
		return fmt.Errorf("%q says of nobody what it answers", line)
	}
	r.others[len(r.others)-1].why = strings.TrimPrefix(line, "# why: ")
	return nil
}

// words returns what a command's words stand for: quoted text, a script or its
// sum, or a moment counted from now.
func (t *table) words(raw []string, now time.Time) ([]string, error) {
	words := make([]string, len(raw))
	for i, word := range raw {
		text, err := t.word(word, now)
		if err != nil {
			return nil, err
		}
		words[i] = text
	}
	return words, nil
}

func (t *table) word(word string, now time.Time) (string, error) {
	last := word[len(word)-1]
	switch {
	case word[0] == '"':
		return strconv.Unquote(word)
	case word[0] == '\'' && last == '\'' && len(word) > 1:
		return word[1 : len(word)-1], nil
	case word[0] == '{' && last == '}':
		name, sum := strings.CutPrefix(word[1:len(word)-1], "sha:")
		text, ok := t.scripts[name]
		if !ok {
			return word, nil // a key may look like that
		}
		if sum {
			digest := sha1.Sum([]byte(text))
			text = hex.EncodeToString(digest[:])
		}
		return text, nil
	case word[0] == '<' && last == '>':
		moment := now.UnixMilli()
		sign := strings.IndexAny(word, "+-")
		if sign < 0 {
			return "", fmt.Errorf("%s: a moment reads <ms+100> or <s-1>", word)
		}
		if word[1:sign] == "s" {
			moment = now.Unix()
		}
		by, err := strconv.ParseInt(word[sign:len(word)-1], 10, 64)
		if err != nil {
			return "", fmt.Errorf("%s: a moment reads <ms+100> or <s-1>", word)
		}
		return strconv.FormatInt(moment+by, 10), nil
	}
	return word, nil
}

var hole = regexp.MustCompile(`<(-?\d+)\.\.(-?\d+)>|<\*>`)

// matches reports whether a reply is the one that is wanted, which may have
// holes: <1..100> for a number between the two, <*> for anything.
func matches(want, got string) bool {
	var pattern strings.Builder
	var bounds [][2]int64
	end := 0
	for _, at := range hole.FindAllStringSubmatchIndex(want, -1) {
		pattern.WriteString(regexp.QuoteMeta(want[end:at[0]]))
		end = at[1]
		if at[2] < 0 {
			pattern.WriteString(`.*?`)
			continue
		}
		pattern.WriteString(`(-?\d+)`)
		low, _ := strconv.ParseInt(want[at[2]:at[3]], 10, 64)
		high, _ := strconv.ParseInt(want[at[4]:at[5]], 10, 64)
		bounds = append(bounds, [2]int64{low, high})
	}
	pattern.WriteString(regexp.QuoteMeta(want[end:]))
	found := regexp.MustCompile(`(?s)^` + pattern.String() + `$`).FindStringSubmatch(got)
	if found == nil {
		return false
	}
	for i, bound := range bounds {
		number, err := strconv.ParseInt(found[i+1], 10, 64)
		if err != nil || number < bound[0] || number > bound[1] {
			return false
		}
	}
	return true
}

// sameCode reports whether a reply is the one that is wanted, errors by their
// code alone: programs go by that, and the words behind it are for people.
func sameCode(want, got string) bool {
	const failed = "(error) "
	if strings.HasPrefix(want, failed) && strings.HasPrefix(got, failed) {
		return strings.Fields(want)[1] == strings.Fields(got)[1]
	}
	return matches(want, got)
}

// release is what a server is: a version of redis and, where it is a Valkey, of
// valkey, which says too which Redis it is compatible with.
type release map[string]version

// version is major and minor.
type version [2]int

func parseVersion(text string) (v version, err error) {
	if _, err := fmt.Sscanf(text, "%d.%d", &v[0], &v[1]); err != nil {
		return v, fmt.Errorf("%q is no version such as 7.0", text)
	}
	return v, nil
}

func (v version) before(other version) bool {
	return v[0] < other[0] || v[0] == other[0] && v[1] < other[1]
}
