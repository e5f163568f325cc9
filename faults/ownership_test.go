package faults_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

const (
	valueA = "A-9f86d081884c7d65"
	valueB = "B-60303ae22b998861"
	script = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end"
)

// act is a client's command, or a change by the server itself, and the lock's key on the server
// afterwards.
type act struct {
	who   string // "A", or a cause; "A/n1/1" and so on for another server than n1/0
	words string
	key   faults.Key
}

func held(value string, expires time.Duration) faults.Key {
	return faults.Key{Type: "string", Words: []string{value}, Expires: expires}
}

func hash(owner, count string, expires time.Duration) faults.Key {
	return faults.Key{Type: "hash", Words: []string{owner, count}, Expires: expires}
}

// tell runs acts and returns the result of each: "A's A1 until 30s by A", "gone by expiry", or "-"
// for no change.
func tell(acts []act) []string {
	l := faults.NewAttributor(faults.SingleKeyLock("lock"))
	var said []string
	for _, a := range acts {
		who, server, found := strings.Cut(a.who, "/")
		if !found {
			server = "n1/0"
		}
		cause := checker.Cause(who)
		var words []string
		if a.words != "" {
			cause, words = checker.ByCommand, strings.Split(a.words, "|")
			l.Command(who, words)
		}
		e, _, changed := l.Saw("n1", server, []faults.Key{a.key}, cause, who, words, time.Millisecond)
		said = append(said, describe(e, changed))
	}
	return said
}

func describe(e checker.Event, changed bool) string {
	if !changed {
		return "-"
	}
	text := "gone"
	if e.Value != "" {
		text = fmt.Sprintf("%s's %s", e.Owner, e.Value)
		if e.Expires != 0 {
			text += " until " + e.Expires.String()
		}
	}
	if e.Cause == checker.ByCommand {
		return text + " by " + e.Client
	}
	return text + " by " + string(e.Cause)
}

func TestLedgerOwners(t *testing.T) {
	const s = time.Second
	free := faults.Key{}
	for _, c := range []struct {
		name string
		acts []act
		want []string
	}{
		{"SETNX, then EXPIRE, then DEL", []act{
			{"A", "SETNX|lock|" + valueA, held(valueA, 0)},
			{"B", "SETNX|lock|" + valueB, held(valueA, 0)},
			{"A", "EXPIRE|lock|30", held(valueA, 30*s)},
			{"A", "DEL|lock", free},
			{"B", "SETNX|lock|" + valueB, held(valueB, 0)},
		}, []string{"A's A1 by A", "-", "A's A1 until 30s by A", "gone by A", "B's B1 by B"}},
		{"SET NX PX", []act{
			{"A", "SET|lock|" + valueA + "|NX|PX|30000", held(valueA, 30*s)},
			{"expiry", "", free},
			{"B", "SET|lock|" + valueB + "|PX|30000|NX", held(valueB, 61*s)},
		}, []string{"A's A1 until 30s by A", "gone by expiry", "B's B1 until 1m1s by B"}},
		{"another client deletes", []act{
			{"A", "SET|lock|" + valueA + "|NX", held(valueA, 0)},
			{"B", "DEL|lock", free},
		}, []string{"A's A1 by A", "gone by B"}},
		{"another client extends", []act{
			{"A", "SET|lock|" + valueA + "|NX|EX|30", held(valueA, 30*s)},
			{"B", "EXPIRE|lock|30", held(valueA, 50*s)},
		}, []string{"A's A1 until 30s by A", "A's A1 until 50s by B"}},
		{"GETSET takes the key", []act{
			{"A", "SETNX|lock|" + valueA, held(valueA, 0)},
			{"B", "GETSET|lock|" + valueB, held(valueB, 0)},
		}, []string{"A's A1 by A", "B's B1 by B"}},
		{"a loser puts the old value back", []act{
			{"A", "SETNX|lock|" + valueA, held(valueA, 0)},
			{"B", "GETSET|lock|" + valueB, held(valueB, 0)},
			{"B", "SET|lock|" + valueA, held(valueA, 0)},
		}, []string{"A's A1 by A", "B's B1 by B", "A's A1 by B"}},
		{"a loser puts the old value back on a free key", []act{
			{"A", "SETNX|lock|" + valueA, held(valueA, 0)},
			{"A", "DEL|lock", free},
			{"B", "SET|lock|" + valueA, held(valueA, 0)},
		}, []string{"A's A1 by A", "gone by A", "A's A1 by B"}},
		{"a value that says NX", []act{
			{"A", "SETNX|lock|nx", held("nx", 0)},
			{"A", "DEL|lock", free},
			{"B", "SET|lock|nx", held("nx", 0)},
		}, []string{"A's A1 by A", "gone by A", "A's A1 by B"}},
		{"two clients with one value", []act{
			{"A", "SET|lock|17|NX|PX|30000", held("17", 30*s)},
			{"expiry", "", free},
			{"B", "SET|lock|17|NX|PX|30000", held("17", 61*s)},
			{"A", "EVAL|" + script + "|1|lock|17", free},
		}, []string{"A's A1 until 30s by A", "gone by expiry", "B's A1 until 1m1s by B", "gone by A"}},
		{"redisson counts", []act{
			{"A", "EVALSHA|f00|1|lock|30000|" + valueA + ":1", hash(valueA+":1", "1", 30*s)},
			{"A", "EVALSHA|f00|1|lock|30000|" + valueA + ":1", hash(valueA+":1", "2", 31*s)},
			{"B", "EVALSHA|f00|1|lock|30000|" + valueB + ":1", hash(valueA+":1", "2", 31*s)},
			{"A", "EVALSHA|f01|1|lock|30000|" + valueA + ":1", hash(valueA+":1", "1", 32*s)},
			{"A", "EVALSHA|f01|1|lock|30000|" + valueA + ":1", free},
		}, []string{"A's A1×1 until 30s by A", "A's A1×2 until 31s by A", "-", "A's A1×1 until 32s by A", "gone by A"}},
		{"redisson with one thread id in two processes", []act{
			{"A", "EVALSHA|f00|1|lock|30000|17", hash("17", "1", 30*s)},
			{"B", "EVALSHA|f00|1|lock|30000|17", hash("17", "2", 31*s)},
			{"expiry", "", free},
			{"B", "EVALSHA|f00|1|lock|30000|17", hash("17", "1", 62*s)},
		}, []string{"A's A1×1 until 30s by A", "A's A1×2 until 31s by B", "gone by expiry", "B's A1×1 until 1m2s by B"}},
		{"a transaction takes the key", []act{
			{"A", "SET|lock|" + valueA + "|PX|30000", free}, // queued
			{"A", "EXEC", held(valueA, 30*s)},
			{"B", "SET|lock|" + valueB + "|PX|30000", held(valueA, 30*s)},
			{"B", "EXEC", held(valueB, 31*s)},
		}, []string{"-", "A's A1 until 30s by A", "-", "B's B1 until 31s by B"}},
		{"the server's own doing keeps the owner", []act{
			{"A", "SET|lock|" + valueA + "|NX|EX|30", held(valueA, 30*s)},
			{"replication/n1/1", "", held(valueA, 30*s)},
			{"clock", "", held(valueA, 90*s)},
			{"failover/n1/1", "", held(valueA, 30*s)},
			{"flush", "", free},
		}, []string{"A's A1 until 30s by A", "A's A1 until 30s by replication", "A's A1 until 1m30s by clock", "A's A1 until 30s by failover", "gone by flush"}},
		{"a failover to a server without the key is told", []act{
			{"A", "SET|lock|" + valueA + "|NX", held(valueA, 0)},
			{"failover/n1/1", "", free},
		}, []string{"A's A1 by A", "gone by failover"}},
		{"a key that nobody was seen to write", []act{
			{"restart", "", held(valueA, 0)},
		}, []string{"'s " + valueA + " by restart"}},
		{"slack", []act{
			{"A", "SET|lock|" + valueA + "|NX|PX|30000", held(valueA, 30*s)},
			{"A", "PEXPIRE|lock|30000", held(valueA, 30*s+time.Millisecond)},
			{"A", "PEXPIRE|lock|30000", held(valueA, 30*s+time.Millisecond+1)}, // compared with the last reported expiry
			{"A", "PERSIST|lock", held(valueA, 0)},
			{"A", "PEXPIRE|lock|1", held(valueA, time.Millisecond)},
		}, []string{"A's A1 until 30s by A", "-", "A's A1 until 30.001000001s by A", "A's A1 by A", "A's A1 until 1ms by A"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := tell(c.acts)
			for i := range c.want {
				if got[i] != c.want[i] {
					t.Errorf("%d. after %v: %q; want %q", i+1, c.acts[i], got[i], c.want[i])
				}
			}
		})
	}
}

func TestLedgerCommand(t *testing.T) {
	l := faults.NewAttributor(faults.SingleKeyLock("lock"))
	for _, c := range []struct{ client, words, want string }{
		{"A", "set|lock|" + valueA + "|NX|PX|30000", "SET lock A1 NX PX 30000"},
		{"B", "SET|lock|" + valueB + "|NX", "SET lock B1 NX"},
		{"A", "SET|lock|A-another-value|NX", "SET lock A2 NX"},
		{"B", "GETSET|lock|" + valueA, "GETSET lock A1"}, // even if another client repeats the value
		{"A", "SET|other|C-is-no-value-of-the-lock", "SET other C-is-no-value-of-the-lock"},
		{"A", "SET|other|" + valueA, "SET other A1"}, // a known value keeps its name in every position
		{"A", "GET|lock", "GET lock"},
		{"A", "ECHO|two words", `ECHO "two words"`},
		{"A", "ECHO|", `ECHO ""`},
		{"A", "ECHO|\x00\xff", `ECHO "\x00\xff"`},
		{"A", "EVAL|return 1|0", `EVAL "return 1" 0`},
		{"A", "EVAL|" + script + "|1|lock|" + valueA, `EVAL "if redis.call('get', KEYS[1]) == ARGV[1…" 1 lock A1`},
		{"A", "EVALSHA|0123456789abcdef0123456789abcdef01234567|1|lock|30000|C-seen-in-a-script", "EVALSHA 01234567… 1 lock 30000 A3"},
		{"A", "EVALSHA|f00|1|lock|30000|redisson_lock__channel:{lock}", `EVALSHA "f00" 1 lock 30000 redisson_lock__channel:{lock}`},
		{"A", "EVALSHA|f00|x|lock|C-no-number-of-keys", `EVALSHA "f00" x lock C-no-number-of-keys`},
		{"A", "EVALSHA|f00|9|lock|C-more-keys-than-words", `EVALSHA "f00" 9 lock C-more-keys-than-words`},
		{"A", "ZADD|lock|nx|1|A-a-member", "ZADD lock nx 1 A4"}, // options in lower, upper or mixed case
		{"A", "zadd|lock|Xx|cH|2|A-next-member|3|A-last-member", "ZADD lock Xx cH 2 A5 3 A6"},
		{"A", "ZADD|lock|inf|A-first-member", "ZADD lock inf A7"},
		{"A", "", ""},
	} {
		var words []string
		if c.words != "" {
			words = strings.Split(c.words, "|")
		}
		if got := l.Command(c.client, words); got != c.want {
			t.Errorf("Command(%s, %s) = %s; want %s", c.client, c.words, got, c.want)
		}
	}
	for word, want := range map[string]string{
		valueA: "A1", valueB: "B1", "A-another-value": "A2", "plain": "plain", "": `""`, "a b": `"a b"`,
	} {
		if got := l.Name(word); got != want {
			t.Errorf("Name(%q) = %s; want %s", word, got, want)
		}
	}
	if l.Command("A", []string{"SET", "lock", "17"}); l.Name("17") != "17" {
		t.Errorf("Name(17) = %s: a word that short could be anything", l.Name("17"))
	}
}

// TestNumbersAndDigits checks that meaningful numbers are printed unchanged, and that digits that
// may be random are owner values, even if they can be parsed as a number.
func TestNumbersAndDigits(t *testing.T) {
	now := time.Now()
	for word, want := range map[string]bool{ // whether it is a value
		"30000000": false, "-30000000": false, "0.50000000": false, "1700000000.123456": false, "1.2345e+30": false,
		fmt.Sprint(now.Unix()): false, fmt.Sprint(now.UnixMilli()): false, fmt.Sprint(now.UnixNano()): false,
		"0" + fmt.Sprint(now.UnixNano()): true, "00946641107748024956": true, "00001234567890123456": true,
		"59682840664071299e12": true, "123456e78": true, "82736451928374650192": true, "999999999999999999": true,
	} {
		l := faults.NewAttributor(faults.SingleKeyLock("lock"))
		got := l.Command("A", []string{"EVAL", "return 1", "1", "lock", word}) == `EVAL "return 1" 1 lock A1`
		if got != want {
			t.Errorf("%s is a value: %t", word, got)
		}
	}
}

// TestWordsWithTheKey checks that a channel named after the lock is not an owner value, whereas a
// random word that contains the lock's name is.
func TestWordsWithTheKey(t *testing.T) {
	for word, want := range map[string]bool{ // whether it is a value
		"redisson_lock__channel:{lock}": false, "rueidislock:0:lock": false, "lock:notifications:and:more": false, "locknotify": false,
		"lock-0123456789abcdef": false, "qVSFnjsdclockFxdUpxO": true, "EOZORfDlYGXGllockClG": true, "lockEOZORfDlYGXGlClG": true, "EOZORfDlYGXGlClGlock": true,
	} {
		l := faults.NewAttributor(faults.SingleKeyLock("lock"))
		if got := l.Command("A", []string{"EVAL", "return 1", "1", "lock", word}) == `EVAL "return 1" 1 lock A1`; got != want {
			t.Errorf("%s is a value: %t", word, got)
		}
	}
}

// FuzzLedger checks that two different values get two names, whichever clients write them and in
// which order.
func FuzzLedger(f *testing.F) {
	f.Add("A", "SET", "lock", valueA, "B", "GETSET", "lock", valueB)
	f.Add("A", "EVAL", "1", "lock", "B", "", "", "")
	f.Fuzz(func(t *testing.T, c1, w1, w2, w3, c2, v1, v2, v3 string) {
		l := faults.NewAttributor(faults.SingleKeyLock("lock"))
		l.Command(c1, []string{w1, w2, w3})
		l.Command(c2, []string{v1, v2, v3})
		l.Saw("n1", "n1/0", []faults.Key{held(w3, 0)}, checker.ByCommand, c1, []string{w1, w2, w3}, 0)
		l.Saw("n1", "n1/0", []faults.Key{held(v3, 0)}, checker.ByCommand, c2, []string{v1, v2, v3}, 0)
		if strings.ToUpper(w1) == "SET" && strings.ToUpper(v1) == "SET" && w2 == "lock" && v2 == "lock" &&
			len(w3) >= 8 && len(v3) >= 8 && w3 != v3 && l.Name(w3) == l.Name(v3) {
			t.Errorf("%q of %q and %q of %q are both %s", w3, c1, v3, c2, l.Name(w3))
		}
	})
}

func TestPasswordsStayOut(t *testing.T) {
	l := faults.NewAttributor(faults.SingleKeyLock("lock"))
	for want, words := range map[string][]string{
		"AUTH (secret)":                             {"auth", "hunter2"},
		"AUTH (secret) (secret)":                    {"AUTH", "me", "hunter2"},
		"HELLO 3 AUTH (secret) (secret) SETNAME me": {"HELLO", "3", "AUTH", "default", "hunter2", "SETNAME", "me"},
		"HELLO 2":               {"HELLO", "2"},
		"HELLO 2 AUTH (secret)": {"HELLO", "2", "AUTH", "x"},
		"AUTH":                  {"AUTH"},
		"GET hunter2":           {"GET", "hunter2"},
	} {
		if got := l.Command("A", words); got != want {
			t.Errorf("%q comes out as %q; want %q", words, got, want)
		}
	}
}

// TestTheLeaseOfTheOwnersKeys checks that a key beside the lock, with a lease of its own, does not end
// or prolong the owner's.
func TestTheLeaseOfTheOwnersKeys(t *testing.T) {
	queue := func(expires time.Duration) faults.Key {
		return faults.Key{Type: "list", Words: []string{valueB}, Expires: expires}
	}
	first := func(faults.Change) (string, bool) { return "A", true }
	for _, c := range []struct {
		name string
		lock faults.Lock
		key  faults.Key // of the lock itself
		want time.Duration
	}{
		{"the key has the owner's word", faults.Lock{Keys: []string{"lock", "queue"}, Owner: first}, held(valueA, 30*time.Second), 30 * time.Second},
		{"no key has it", faults.Lock{Keys: []string{"lock", "queue"}, Owner: first}, held("minted", 30*time.Second), 30 * time.Second},
	} {
		for _, beside := range []time.Duration{10 * time.Second, 50 * time.Second} {
			l := faults.NewAttributor(c.lock)
			words := []string{"SET", "lock", valueA}
			l.Command("A", words)
			l.Command("B", []string{"RPUSH", "queue", valueB})
			e, _, _ := l.Saw("n1", "n1/0", []faults.Key{c.key, queue(beside)}, checker.ByCommand, "A", words, time.Millisecond)
			if e.Owner != "A" || e.Expires != c.want {
				t.Errorf("%s, beside a key until %v: owner %q until %v, want A until %v", c.name, beside, e.Owner, e.Expires, c.want)
			}
		}
	}
}
