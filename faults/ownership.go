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
	"github.com/lockfault/lockfault/internal/rediscmd"
)

// Attributor determines which client owns a lock on each server. Lock clients write owner values
// that have no meaning for anyone else and are often random. The Attributor records which client
// sent which value, gives each value a short name (A1 is the first that A wrote), and returns
// changes of the lock on a server as events.
//
// Unless [Lock.Owner] reads the owner, the words in the lock's keys determine it. A word that only
// one client has sent names that client, wherever in the keys the word is. A word that several
// clients have sent counts only if the keys hold no word of a single client. Such a word belongs to
// the client whose command put the word there. After a plain SET, by which clients restore a value
// that they found, the word belongs to its first sender. The owner is unknown if the words name
// several clients, or if no client has sent any of them, as with the counter of INCR.
//
// The zero value is not valid; use [NewLedger]. An Attributor is not safe for concurrent use.
type Attributor struct {
	lock    Lock
	names   map[string]string // short names by raw word
	learnt  []string          // the raw words, in the order of their names
	renamed map[string]renaming
	senders map[string][]string // senders of a raw word, in order of first use
	claimed map[string]entry    // the last reading, by the contents of the keys
	written map[string]int      // number of words that each client wrote
	servers map[string]entry
}

// entry is a lock's state on a server. owner is empty if the owner is not known, and also if the
// lock is known to be free.
type entry struct {
	keys  []Key
	owner string
	known bool
}

// renaming is a word in which owner values are replaced by their names. upto is the number of
// learnt values that have been replaced so far.
type renaming struct {
	text string
	upto int
}

// NewAttributor returns an Attributor for the lock.
func NewAttributor(lock Lock) *Attributor {
	return &Attributor{
		lock: lock, names: map[string]string{}, renamed: map[string]renaming{}, senders: map[string][]string{},
		claimed: map[string]entry{}, written: map[string]int{}, servers: map[string]entry{},
	}
}

// Command returns a client's request as typed in a terminal, with owner values replaced by their
// short names and passwords by "(secret)". Command must be called for each request in the order in
// which the nodes execute the requests, because it learns the owner values from them.
func (l *Attributor) Command(client string, words []string) string {
	if len(words) == 0 {
		return ""
	}
	name := strings.ToUpper(words[0])
	command := rediscmd.Lookup(name)
	values, secrets := l.values(command, words), secrets(name, words)
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
		case i == 1 && command.RunsScript():
			out.WriteString(scriptName(word))
		default:
			out.WriteString(l.Name(word))
		}
	}
	return out.String()
}

// Sent records values that a client sent with a statement to a service other than Redis, and learns
// those that may be owner values. Like Command it must be called in the order in which the servers
// receive the requests.
func (l *Attributor) Sent(client string, values []string) {
	for _, value := range values {
		number := strings.HasPrefix(value, `\x`) && len(value) <= len(`\x`)+2*8                // the bytes of a number or a date
		if !number && strings.ContainsAny(value, "0123456789") && l.mayBeValue(value, false) { // a value without digits is one of the lock's fixed words
			l.learn(client, value)
		}
	}
}

// longest is the number of runes of a value that Statement shows.
const longest = 40

// Statement returns a statement to a service other than Redis, or its reply, as histories show it.
// The text is on one line, followed by its values in brackets. Owner values have their short names.
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

// Name returns the short name of an owner value. For any other word it returns the word with the
// owner values in it replaced by their short names, quoted if the word is empty or has blanks,
// control characters or non-ASCII characters.
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

// rename replaces the owner values in a word by their short names. rename caches the result.
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

// minValue is the length in bytes from which a word counts as an owner value in any position. A
// shorter word, such as a thread id, is ambiguous.
const minValue = 8

// values returns the indexes of the words of a request that may be owner values. In a script these
// are arguments that are long enough and neither names nor dates. In other commands these are words
// that the command writes into keys or looks for in keys.
func (l *Attributor) values(command *rediscmd.Command, words []string) []int {
	if command.RunsScript() {
		return l.valuesOfScript(command, words)
	}
	from, step, to, ok := command.ValuesIn(words)
	if !ok || len(words) < 2 {
		return nil
	}
	ours := slices.Contains(l.lock.Keys, words[1])
	any := ours && command.Values.Short
	var at []int
	for i := from; i < len(words) && i <= to; i += step {
		if any || l.mayBeValue(words[i], ours) {
			at = append(at, i)
		}
	}
	return at
}

// valuesOfScript returns the indexes of a script's arguments that may be owner values.
func (l *Attributor) valuesOfScript(command *rediscmd.Command, words []string) []int {
	from, ok := command.ArgumentsIn(words)
	if !ok {
		return nil
	}
	var at []int
	for i := from; i < len(words); i++ {
		if _, known := l.names[words[i]]; known || l.mayBeValue(words[i], false) {
			at = append(at, i)
		}
	}
	return at
}

// mayBeValue reports whether a word in the position of a value may be an owner value. Numbers may
// be owner values only in a lock's key, which ours states.
func (l *Attributor) mayBeValue(word string, ours bool) bool {
	if len(word) < minValue {
		return false
	}
	_, known := l.names[word]
	return known || !isDate(word) && !l.hasKey(word) && (ours || !isNumber(word))
}

// hasKey reports whether a word contains a key of the lock, as names of channels do. In a word that
// is long enough to be random, the key must be delimited by non-alphanumeric characters: random
// letters may well contain "lock".
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

// random is the length in bytes from which a word may be random.
const random = 16

// isAlphanumeric reports whether the first byte of text, or the last if at is negative, is an ASCII
// letter or digit. isAlphanumeric returns false for an empty text.
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

// isNumber reports whether a word is a number rather than a random value. A number has a fraction,
// or few digits, in the form in which numbers are printed. Other words may be random, such as
// 00123456789 or 596828e12.
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

// isDecimal reports whether word is the decimal form of n.
func isDecimal(word string, n int64) bool { return word == strconv.FormatInt(n, 10) }

// isDate reports whether a word is a date within 48 hours of the present, in seconds, milliseconds,
// microseconds or nanoseconds.
func isDate(word string) bool {
	_, ok := date(word)
	return ok
}

// date returns the date in a word, as the time since 1970, if it is within 48 hours of the present.
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

// secrets returns the indexes of a request's words that are credentials, which must not appear in a
// history. name is in upper case.
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

// learn records that a client sent a word, and returns the word's name.
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

// Found sets the initial contents of the lock's keys on a server. The owner of existing keys is
// unknown. The Attributor keeps the slice.
func (l *Attributor) Found(server string, keys []Key) {
	if slices.ContainsFunc(keys, Key.Exists) {
		l.servers[server] = entry{keys: keys}
	}
}

// Saw records the contents of the lock's keys on a server after a cause. For ByCommand, client and
// words are the client and its request. Saw returns the change as an event without its time, what
// the command did ([Taking], [Freeing] or empty), and whether there was a change. An expiry that
// moved by at most slack is not a change; a failover always is a change. The Attributor keeps the
// slice.
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
		event.Value, event.Expires = l.print(keys), l.leaseEnd(keys, now.owner)
	}
	return event, did(was, now, client), true
}

// leaseEnd returns when the owner's lease ends: when the first of the keys expires that have a word of
// the owner; of a lock that reads the owner by itself and has no such key, its first key; or else the
// first of all. A queue beside the lock has a lease of its own.
func (l *Attributor) leaseEnd(keys []Key, owner string) time.Duration {
	own := slices.DeleteFunc(slices.Clone(keys), func(k Key) bool {
		return !slices.ContainsFunc(k.bears(), func(word string) bool { return l.wrote(word) == owner })
	})
	switch {
	case owner == "" || len(keys) == 1:
	case len(own) > 0:
		return Expiry(own)
	case l.lock.Owner != nil && keys[0].Exists():
		return keys[0].Expires
	}
	return Expiry(keys)
}

// before returns the lock's last state on a server. A server without a recorded state has a free
// lock.
func (l *Attributor) before(server string, keys []Key) entry {
	was := l.servers[server]
	if was.keys == nil {
		was.keys, was.known = make([]Key, len(keys)), true
	}
	return was
}

// Somebody records the contents of the lock's keys on a server after a command of an unknown
// client. The owner is then unknown, too. Somebody returns the change as an event without its time.
// The Attributor keeps the slice.
func (l *Attributor) Somebody(node, server string, keys []Key) checker.Event {
	l.servers[server] = entry{keys: keys}
	return checker.Event{
		Kind: checker.State, Node: node, Server: server, Cause: checker.ByCommand, Value: l.print(keys), Expires: Expiry(keys),
	}
}

// Owner returns the lock's owner on a server, and whether the owner is known.
func (l *Attributor) Owner(server string) (owner string, known bool) {
	e := l.servers[server]
	return e.owner, e.known || e.keys == nil
}

// Unknown reports whether no client has sent the word.
func (l *Attributor) Unknown(word string) bool { return l.wrote(word) == "" }

// OwnerByKeys returns the owner that the lock would have on a server with these keys, and whether
// that owner is known. The result does not depend on the client whose command wrote the keys.
func (l *Attributor) OwnerByKeys(server string, keys []Key) (owner string, known bool) {
	e := l.read(l.before(server, keys), keys, checker.ByCommand, "", nil)
	return e.owner, e.known
}

// Wrote returns the number of values that each client has written. The caller owns the map.
func (l *Attributor) Wrote() map[string]int { return maps.Clone(l.written) }

// Doubtful returns the recorded facts about values that do not identify their sender. Such values
// have been sent by several clients, or may be sent by several independently because they are
// numbers or short. Each client's commands identify all other values. The text includes the numbers
// and dates that values contain, dates to the millisecond, because clients that read them may act
// on them.
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

// meaning returns the part of a word that other clients may interpret, with a leading blank. The
// part is a number, or in other words dates and numbers of up to three digits after a separator
// such as a colon. Other digits may be random.
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

// counterPattern matches numbers after separators that do not occur in random values, whether
// hexadecimal, UUID or base64.
var counterPattern = regexp.MustCompile(`[:,;|@#]\s*(\d{1,3})\b`)

// read determines the lock's owner from keys. client is empty if the server itself made the change.
func (l *Attributor) read(was entry, keys []Key, cause checker.Cause, client string, words []string) entry {
	if SameKeys(was.keys, keys) {
		return entry{keys, was.owner, was.known}
	}
	holds := contents(keys)
	switch cause {
	case checker.ByReplication, checker.ByFailover, checker.ByRestart: // contents that another server had
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

// wrote returns the client that sent a word first; empty if no client has sent it.
func (l *Attributor) wrote(word string) string {
	if senders := l.senders[word]; len(senders) > 0 {
		return senders[0]
	}
	return ""
}

// byWords determines the lock's owner from the words in the keys.
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
	var named, claimed []string // owners by words of a single sender, and by words of several senders
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

// sent returns the words in the keys that at least one client has sent.
func (l *Attributor) sent(keys []Key) []string {
	return slices.DeleteFunc(bears(keys), func(word string) bool { return len(l.senders[word]) == 0 })
}

// recognise records a word that was found in a key. The word belongs to the client if the client's
// request contains it, or to the only client whose values the word contains.
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

// arguments returns the index of a request's first argument, after the key of a command or the keys
// of a script.
func arguments(words []string) int {
	if from, ok := rediscmd.Of(words).ArgumentsIn(words); ok {
		return min(len(words), from)
	}
	return 2
}

// isBehind reports whether a request wrote a word into a key to take the lock. A plain SET does not
// count, because clients use it to restore a value that they found. EXEC always counts: the
// commands of the transaction are not examined.
func isBehind(request []string, word string) bool {
	return len(request) == 1 && strings.EqualFold(request[0], "EXEC") || slices.Contains(request, word) && !isPlainSet(request)
}

// contents returns the contents of keys in a form for comparison, without their expiry.
func contents(keys []Key) string {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s %q\n", k.Type, k.Words)
	}
	return b.String()
}

// bears returns the words in the keys that may name the owner.
func bears(keys []Key) []string {
	var words []string
	for _, k := range keys {
		words = append(words, k.bears()...)
	}
	return words
}

// print returns the contents of the keys on one line.
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

// nameOfValue is like Name for words in a lock's key, where short words are values too.
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

// scriptName returns a short form of a script or its digest that fits on a line.
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
