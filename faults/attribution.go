package faults

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/lockfault/lockfault/checker"
)

// An Attributor knows to whom a lock belongs. Lock clients write owner values that
// mean nothing to anybody else, often random ones; the ledger learns from the
// commands who wrote which, gives each a short name (A1 is the first that A
// wrote), and tells the changes of the lock on each server as events.
//
// Unless the lock says how its owner is read ([Lock.Owner]), words tell. A word
// that only one client has sent names that client, wherever in the keys it
// stands. Where several words do and name several clients, where none was sent
// by anybody, as the counter of INCR, nobody can tell: the owner is unknown. A
// word that several have sent is whose command put it there, unless by a plain
// SET, by which clients put back what they had found: then it is whose it was
// first.
//
// The zero value is not valid; use [NewLedger]. Not safe for concurrent use.
type Attributor struct {
	lock    Lock
	names   map[string]string // by raw word
	learnt  []string          // the raw words, in the order of their names
	renamed map[string]renaming
	senders map[string][]string // of a raw word, the first sender first
	claimed map[string]entry    // by what the keys held: what was read the last time
	written map[string]int      // how many words each client wrote
	servers map[string]entry
}

// An entry is a lock as it was found on a server. An owner that is not known is
// empty; so is that of a lock which is known to be free.
type entry struct {
	keys  []Key
	owner string
	known bool
}

// A renaming is a word with the values in it replaced by their names; of upto
// values it is known whether they are in it.
type renaming struct {
	text string
	upto int
}

// NewLedger returns the ledger of a lock.
func NewLedger(lock Lock) *Attributor {
	return &Attributor{
		lock: lock, names: map[string]string{}, renamed: map[string]renaming{}, senders: map[string][]string{},
		claimed: map[string]entry{}, written: map[string]int{}, servers: map[string]entry{},
	}
}

// Command returns a client's request as one would type it, with owner values
// by their short names. It must be called for each request in the order in
// which the nodes execute them: that is how the ledger learns the values.
func (l *Attributor) Command(client string, words []string) string {
	if len(words) == 0 {
		return ""
	}
	name := strings.ToUpper(words[0])
	values, secrets := l.values(name, words), secrets(name, words)
	var out strings.Builder
	out.Grow(64)
	for i, word := range words {
		if i > 0 {
			out.WriteByte(' ')
		}
		switch {
		case i == 0:
			out.WriteString(name)
		case slices.Contains(secrets, i):
			out.WriteString("(secret)")
		case slices.Contains(values, i):
			out.WriteString(l.learn(client, word))
		case i == 1 && isScript(name):
			out.WriteString(scriptName(word))
		default:
			out.WriteString(l.Name(word))
		}
	}
	return out.String()
}

// Sent takes note of values that a client sent to another service than Redis, with a statement: what in them may be an owner value is
// learnt. Like Command it must be called in the order in which the servers are let have them.
func (l *Attributor) Sent(client string, values []string) {
	for _, value := range values {
		number := strings.HasPrefix(value, `\x`) && len(value) <= len(`\x`)+2*8                // a number, or a date, by its bytes
		if !number && strings.ContainsAny(value, "0123456789") && l.mayBeValue(value, false) { // else it is a word of the lock's own
			l.learn(client, value)
		}
	}
}

// longest is how much of a value is shown, in letters.
const longest = 40

// Statement returns a statement, or an answer, of another service than Redis as histories have it: on one line, its values behind it in brackets, owner
// values by their short names.
func (l *Attributor) Statement(text string, values []string) string {
	if len(values) == 0 {
		return text
	}
	var list []string
	for _, value := range values {
		name := l.Name(value)
		if runes := []rune(name); len(runes) > longest {
			name = string(runes[:longest-1]) + "…"
		}
		list = append(list, name)
	}
	return strings.TrimSpace(text + " [" + strings.Join(upTo(shown, list), " ") + "]")
}

// Name returns the short name of an owner value; of another word the word itself,
// quoted if it is not plain, with the owner values in it by their short names.
func (l *Attributor) Name(word string) string {
	if len(word) >= minValue {
		if name, ok := l.names[word]; ok {
			return name
		}
		word = l.rename(word)
	}
	if word == "" || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return strconv.Quote(word)
	}
	return word
}

// rename replaces the owner values in a word.
func (l *Attributor) rename(word string) string {
	done, ok := l.renamed[word]
	if !ok {
		done.text = word
	}
	if done.upto == len(l.learnt) {
		return done.text
	}
	for _, value := range l.learnt[done.upto:] {
		if len(value) >= minValue {
			done.text = strings.ReplaceAll(done.text, value, l.names[value])
		}
	}
	done.upto = len(l.learnt)
	l.renamed[word] = done
	return done.text
}

// minValue is the shortest word that is taken for an owner value wherever it
// stands; a shorter one, a thread id perhaps, could be anything.
const minValue = 8

// values returns which words of a request may be owner values: of a script those
// that are long enough and neither names nor dates, of other commands what they
// write into keys or look for there. Its name is in upper case.
func (l *Attributor) values(name string, words []string) []int {
	if isScript(name) {
		return l.valuesOfScript(words)
	}
	from, step, to, ok := valuesAt(name, words)
	if !ok || len(words) < 2 {
		return nil
	}
	if to == 0 {
		to = len(words) - 1
	}
	ours := slices.Contains(l.lock.Keys, words[1])
	any := ours && (name == "SET" || name == "SETNX" || name == "GETSET") // however short
	var at []int
	for i := from; i < len(words) && i <= to; i += step {
		if any || l.mayBeValue(words[i], ours) {
			at = append(at, i)
		}
	}
	return at
}

// valuesAt says where in a request of a command that writes values into keys, or
// looks for them there, they stand: from a word, in steps, to a word, 0 being the
// last. Its name is in upper case.
func valuesAt(name string, words []string) (from, step, to int, ok bool) {
	switch name {
	case "SET", "SETNX", "GETSET", "APPEND", "HGET", "HEXISTS", "HINCRBY", "SISMEMBER", "LPOS", "ZSCORE", "ZRANK", "PUBLISH":
		return 2, 1, 2, true
	case "HSET", "HMSET", "HSETNX", "HDEL", "HMGET", "SADD", "SREM", "SMISMEMBER", "LPUSH", "RPUSH", "LPUSHX", "RPUSHX", "ZREM":
		return 2, 1, 0, true
	case "SETEX", "PSETEX", "SMOVE", "LREM", "LSET", "ZINCRBY":
		return 3, 1, 3, true
	case "LINSERT":
		return 3, 1, 4, true
	case "MSET", "MSETNX":
		return 2, 2, 0, true
	case "ZADD":
		from = 3 // behind the options, score and member in turn
		for from < len(words) && isOptionOfZADD(words[from-1]) {
			from++
		}
		return from, 2, 0, true
	}
	return 0, 0, 0, false
}

func isOptionOfZADD(word string) bool {
	switch strings.ToUpper(word) { // go-redis writes nx
	case "NX", "XX", "GT", "LT", "CH", "INCR":
		return true
	}
	return false
}

// valuesOfScript returns which of a script's arguments may be owner values.
func (l *Attributor) valuesOfScript(words []string) []int {
	if len(words) <= 3 {
		return nil
	}
	keys, err := strconv.Atoi(words[2])
	if err != nil || keys < 0 || keys > len(words)-3 {
		return nil
	}
	var at []int
	for i := 3 + keys; i < len(words); i++ {
		if _, known := l.names[words[i]]; known || l.mayBeValue(words[i], false) {
			at = append(at, i)
		}
	}
	return at
}

// mayBeValue reports whether a word that stands where values stand may be one; in
// a lock's key numbers are, too.
func (l *Attributor) mayBeValue(word string, ours bool) bool {
	if len(word) < minValue {
		return false
	}
	_, known := l.names[word]
	return known || !isDate(word) && !l.hasKey(word) && (ours || !isNumber(word))
}

// hasKey reports whether a word has the lock's key in it, as the names of channels do:
// as a word of its own, or in one that is too short to be random. A long one of random
// letters may well have "lock" in its midst.
func (l *Attributor) hasKey(word string) bool {
	return slices.ContainsFunc(l.lock.Keys, func(key string) bool {
		if len(word) < random || key == "" {
			return strings.Contains(word, key)
		}
		for from := 0; ; from++ {
			at := strings.Index(word[from:], key)
			if at < 0 {
				return false
			}
			from += at
			if !isAlphanumeric(word[:from], -1) && !isAlphanumeric(word[from+len(key):], 0) {
				return true
			}
		}
	})
}

// random is the length from which a word may be random, and no name of something.
const random = 16

// isAlphanumeric reports whether the first letter of a text is a letter or a digit, or at
// -1 the last; an empty text has none.
func isAlphanumeric(text string, at int) bool {
	if text == "" {
		return false
	}
	c := text[0]
	if at < 0 {
		c = text[len(text)-1]
	}
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isNumber reports whether a word is a number that means what it says: one with a
// fraction, or one with few digits, as numbers are printed. Others may be random, such
// as 00123456789 or 596828e12.
func isNumber(word string) bool {
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return -1e12 < n && n < 1e12 && isDecimal(word, n)
	}
	x, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return false
	}
	if strings.ContainsAny(word, "eE") {
		return strings.EqualFold(word, strconv.FormatFloat(x, 'e', -1, 64))
	}
	return strings.Contains(word, ".")
}

// isDecimal reports whether a word is how a whole number is printed.
func isDecimal(word string, n int64) bool { return word == strconv.FormatInt(n, 10) }

// isDate reports whether a word is a date near the present, in seconds or any
// smaller unit.
func isDate(word string) bool {
	_, ok := date(word)
	return ok
}

// date returns the date that a word is, since 1970, if it is one near the present.
func date(word string) (time.Duration, bool) {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || !isDecimal(word, n) {
		return 0, false
	}
	now := time.Now().UnixNano()
	for _, unit := range [...]time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond} {
		off, near := n-now/int64(unit), int64(48*time.Hour/unit)
		if -near < off && off < near {
			return time.Duration(n) * unit, true
		}
	}
	return 0, false
}

// secrets returns which words of a request are a login: nothing for a history,
// which is there to be shown. Its name is in upper case.
func secrets(name string, words []string) []int {
	from, to := 1, len(words) // AUTH password, AUTH username password
	switch name {
	case "AUTH":
	case "HELLO": // HELLO 2 AUTH username password …
		from = 1 + slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, "AUTH") })
		if from == 0 {
			return nil
		}
		to = min(from+2, len(words))
	default:
		return nil
	}
	var at []int
	for i := from; i < to; i++ {
		at = append(at, i)
	}
	return at
}

// learn takes note that a client sent a word, and returns the word's name.
func (l *Attributor) learn(client, word string) string {
	if !slices.Contains(l.senders[word], client) {
		l.senders[word] = append(l.senders[word], client)
	}
	if name, ok := l.names[word]; ok {
		return name
	}
	l.written[client]++
	name := fmt.Sprintf("%s%d", client, l.written[client])
	l.names[word] = name
	l.learnt = append(l.learnt, word)
	return name
}

// Found tells the ledger how the lock's keys stand on a server before there is
// anything to tell: whose it is then nobody knows. The ledger keeps the keys.
func (l *Attributor) Found(server string, keys []Key) {
	if slices.ContainsFunc(keys, Key.Exists) {
		l.servers[server] = entry{keys: keys}
	}
}

// Saw tells the ledger how the lock's keys stand on a server after a cause: for
// ByCommand the client's words. It returns the change as an event without its
// time, what the command did ([Taking], [Freeing] or neither), and false if there
// was none. An expiry that moved by less than slack is no change. The ledger keeps
// the keys.
func (l *Attributor) Saw(node, server string, keys []Key, cause checker.Cause, client string, words []string, slack time.Duration) (checker.Event, Effect, bool) {
	was := l.before(server, keys)
	if cause != checker.ByFailover && slices.EqualFunc(was.keys, keys, func(a, b Key) bool {
		return a.same(b) && (a.Expires == 0) == (b.Expires == 0) && (a.Expires-b.Expires).Abs() <= slack
	}) {
		return checker.Event{}, "", false
	}
	if cause != checker.ByCommand {
		client, words = "", nil
	}
	now := l.read(was, keys, cause, client, words)
	l.servers[server] = now
	event := checker.Event{Kind: checker.State, Node: node, Server: server, Owner: now.owner, Cause: cause, Client: client}
	if now.owner != "" || !now.known {
		event.Value, event.Expires = l.print(keys), Expiry(keys)
	}
	return event, did(was, now, client), true
}

// before returns how the lock stood on a server: as nobody's, unless something was heard of it.
func (l *Attributor) before(server string, keys []Key) entry {
	was := l.servers[server]
	if was.keys == nil {
		was.keys, was.known = make([]Key, len(keys)), true
	}
	return was
}

// Somebody tells the ledger how the lock's keys stand on a server after a command,
// when it can't be known whose that was: then nor is it known whose the lock is. It
// returns the change as an event without its time. The ledger keeps the keys.
func (l *Attributor) Somebody(node, server string, keys []Key) checker.Event {
	l.servers[server] = entry{keys: keys}
	return checker.Event{
		Kind: checker.State, Node: node, Server: server, Cause: checker.ByCommand, Value: l.print(keys), Expires: Expiry(keys),
	}
}

// Owner returns whose the lock is taken to be on a server, and whether that is known.
func (l *Attributor) Owner(server string) (owner string, known bool) {
	e := l.servers[server]
	return e.owner, e.known || e.keys == nil
}

// Unknown reports whether nobody has sent a word.
func (l *Attributor) Unknown(word string) bool { return l.wrote(word) == "" }

// OwnerByKeys returns whose the lock would be on a server whose keys are these, as far as that doesn't depend on whose command it was.
func (l *Attributor) OwnerByKeys(server string, keys []Key) (owner string, known bool) {
	e := l.read(l.before(server, keys), keys, checker.ByCommand, "", nil)
	return e.owner, e.known
}

// Wrote returns how many values each client has written.
func (l *Attributor) Wrote() map[string]int { return maps.Clone(l.written) }

// Doubtful shows what the ledger goes by where values don't tell by themselves whose they
// are: those that several clients have sent, or may send without having heard of
// each other, since they are numbers or short. Of all others each client's commands
// tell what is known. Numbers and dates mean something to who reads them, so what they
// are stands there, too; of dates to the millisecond.
func (l *Attributor) Doubtful() string {
	var lines []string
	doubtful := func(word string) bool {
		return isFigure(word) || len(word) < minValue || len(l.senders[word]) > 1
	}
	for word, senders := range l.senders {
		if means := meaning(word); means != "" || doubtful(word) {
			lines = append(lines, fmt.Sprintf("%s sent by %v%s\n", l.nameOfValue(word), senders, means))
		}
	}
	for holds, as := range l.claimed {
		if slices.ContainsFunc(bears(as.keys), doubtful) {
			lines = append(lines, fmt.Sprintf("%s is %s %t\n", strings.TrimSpace(l.rename(holds)), as.owner, as.known))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func isFigure(word string) bool {
	_, err := strconv.ParseFloat(word, 64)
	return err == nil
}

// meaning shows what of a word others may understand: numbers, and in other words dates
// and few digits behind a colon and the like. What else there is of digits may be chance.
func meaning(word string) string {
	if _, ok := date(word); !ok && isFigure(word) {
		return " " + word
	}
	var b strings.Builder
	sign := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	for figures := range strings.FieldsFuncSeq(word, sign) {
		if date, ok := date(figures); ok {
			fmt.Fprintf(&b, " %v", date.Round(time.Millisecond))
		}
	}
	for _, told := range counterPattern.FindAllStringSubmatch(word, -1) {
		fmt.Fprintf(&b, " %s", told[1])
	}
	return b.String()
}

// counterPattern finds numbers behind signs that no random value has: neither hexadecimal ones nor
// UUIDs nor those of base 64.
var counterPattern = regexp.MustCompile(`[:,;|@#]\s*(\d{1,3})\b`)

// read decides whose the lock is now. client is empty where the change was the
// server's own doing.
func (l *Attributor) read(was entry, keys []Key, cause checker.Cause, client string, words []string) entry {
	if SameKeys(was.keys, keys) {
		return entry{keys, was.owner, was.known}
	}
	holds := contents(keys)
	switch cause {
	case checker.ByReplication, checker.ByFailover, checker.ByRestart: // what another server had
		if then, ok := l.claimed[holds]; ok {
			return entry{keys, then.owner, then.known}
		}
	}
	now := entry{keys: keys}
	if read := l.lock.Owner; read != nil {
		now.owner, now.known = read(Change{Before: was.keys, After: keys, Client: client, Owner: was.owner, Wrote: l.wrote})
		if !now.known {
			now.owner = ""
		}
	} else {
		now.owner, now.known = l.byWords(was, keys, client, words)
	}
	l.claimed[holds] = now
	return now
}

// wrote returns the client that sent a word first; empty if none has.
func (l *Attributor) wrote(word string) string {
	if senders := l.senders[word]; len(senders) > 0 {
		return senders[0]
	}
	return ""
}

// byWords reads by the words in the keys whose the lock is.
func (l *Attributor) byWords(was entry, keys []Key, client string, request []string) (owner string, known bool) {
	if !slices.ContainsFunc(keys, Key.Exists) {
		return "", true
	}
	for _, word := range bears(keys) {
		l.recognise(client, word, request)
	}
	sent := l.sent(keys)
	if len(sent) == 0 {
		return "", false
	}
	if was.owner != "" && slices.Equal(sent, l.sent(was.keys)) {
		return was.owner, was.known // a counter moved
	}
	var named, claimed []string // by words that only one client has sent, and by others
	for _, word := range sent {
		switch senders := l.senders[word]; {
		case len(senders) == 1:
			named = append(named, senders[0])
		case slices.Contains(senders, client) && isBehind(request, word):
			claimed = append(claimed, client)
		default:
			claimed = append(claimed, senders[0])
		}
	}
	if len(named) == 0 {
		named = claimed
	}
	slices.Sort(named)
	if named = slices.Compact(named); len(named) > 1 {
		return "", false
	}
	return named[0], true
}

// sent returns the words in the keys that some client has sent.
func (l *Attributor) sent(keys []Key) []string {
	return slices.DeleteFunc(bears(keys), func(word string) bool { return len(l.senders[word]) == 0 })
}

// recognise takes note of a word that is found in a key, if the client's request
// has it, or if it is put together of a value that only one client has sent.
func (l *Attributor) recognise(client, word string, request []string) {
	if client != "" && slices.Contains(request[min(len(request), arguments(request)):], word) {
		l.learn(client, word)
	}
	if len(l.senders[word]) > 0 {
		return
	}
	var of []string
	for _, value := range l.learnt {
		if senders := l.senders[value]; len(value) >= minValue && len(senders) == 1 && strings.Contains(word, value) && !slices.Contains(of, senders[0]) {
			of = append(of, senders[0])
		}
	}
	if len(of) == 1 {
		l.senders[word] = of
	}
}

// arguments returns where in a request the arguments begin: behind a command's
// key, or a script's.
func arguments(words []string) int {
	if len(words) > 2 && isScript(strings.ToUpper(words[0])) {
		if keys, err := strconv.Atoi(words[2]); err == nil && keys >= 0 {
			return min(len(words), 3+keys)
		}
	}
	return 2
}

// isBehind reports whether a request put a word into a key to take it: not by a
// plain SET, by which clients put back what they had found. What a transaction's
// commands were is not looked for.
func isBehind(request []string, word string) bool {
	return len(request) == 1 && strings.EqualFold(request[0], "EXEC") || slices.Contains(request, word) && !isPlainSet(request)
}

// contents returns what keys hold, for comparison.
func contents(keys []Key) string {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s %q\n", k.Type, k.Words)
	}
	return b.String()
}

// bears returns the words in the keys that may say whose they are.
func bears(keys []Key) []string {
	var words []string
	for _, k := range keys {
		words = append(words, k.bears()...)
	}
	return words
}

// print shows what the keys hold.
func (l *Attributor) print(keys []Key) string {
	var texts []string
	for i, k := range keys {
		switch {
		case !k.Exists():
		case len(keys) == 1:
			texts = append(texts, k.print(l.nameOfValue))
		default:
			texts = append(texts, l.lock.Keys[i]+"="+k.print(l.nameOfValue))
		}
	}
	if len(texts) == 0 {
		return "(no key)"
	}
	return strings.Join(texts, " ")
}

// nameOfValue is Name for what stands in a lock's key, where a short word is a
// value too.
func (l *Attributor) nameOfValue(word string) string {
	if name, ok := l.names[word]; ok {
		return name
	}
	return l.Name(word)
}

func isPlainSet(words []string) bool {
	return len(words) >= 3 && strings.EqualFold(words[0], "SET") &&
		!slices.ContainsFunc(words[3:], func(w string) bool { return strings.EqualFold(w, "NX") })
}

func isScript(name string) bool { return sameCommand("EVAL", name) }

// scriptName shortens a script or its digest to something that fits a line.
func scriptName(script string) string {
	if len(script) > 12 && strings.IndexFunc(script, unicode.IsSpace) < 0 {
		return script[:8] + "…"
	}
	script = strings.Join(strings.Fields(script), " ")
	if len(script) > 12 && !strings.Contains(script, " ") {
		return script[:8] + "…"
	}
	if runes := []rune(script); len(runes) > 40 {
		script = string(runes[:39]) + "…"
	}
	return strconv.Quote(script)
}
