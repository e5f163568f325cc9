package rediscmd

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestRowsAreConsistent(t *testing.T) {
	release := regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	names := map[string]bool{}
	for _, c := range slices.Concat(facts(), newer()) {
		if names[c.Name] {
			t.Errorf("%s has two rows: delete the row in newer.go, because facts.go has one", c.Name)
		}
		names[c.Name] = true
		if c.Name != strings.ToUpper(c.Name) || c.Group == "" || c.Redis == "" && c.Valkey == "" {
			t.Errorf("%+v: want a name in upper case, a group and a release", c)
		}
		releases := []string{c.Redis, c.Valkey}
		for _, o := range slices.Concat(c.Options, newerOptions()[c.Name]) {
			releases = append(releases, o.Redis, o.Valkey)
		}
		for _, r := range releases {
			if r != "" && !release.MatchString(r) {
				t.Errorf("%s: %q is not a release", c.Name, r)
			}
		}
		if c.Has(Write | ReadOnly) {
			t.Errorf("%s writes and is read-only", c.Name)
		}
		for _, k := range c.Keys {
			if k.Step < 1 {
				t.Errorf("%s: key step %d", c.Name, k.Step)
			}
		}
	}
	for name := range names {
		if container, _, ok := strings.Cut(name, " "); ok && !names[container] {
			t.Errorf("%s has no row of its container", name)
		}
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(engine())), slices.Collect(maps.Keys(newerOptions()))) {
		if !names[name] {
			t.Errorf("%s has columns and no row", name)
		}
	}
}

// TestColumnsAgreeWithFlags checks the columns that no server reports against the flags.
func TestColumnsAgreeWithFlags(t *testing.T) {
	for _, c := range All() {
		// Since 7.2 Redis flags WAIT, too.
		if waits := c.Timeout.Unit != 0; waits != c.Has(Blocking) && c.Name != "WAIT" {
			t.Errorf("%s is flagged as blocking: %v, and has a timeout: %v", c.Name, c.Has(Blocking), waits)
		}
		if c.Observed && c.MayWrite() {
			t.Errorf("%s is flagged as a write and needs no column for it", c.Name)
		}
		if c.SetsUp && c.Group != "connection" && c.Name != "READONLY" {
			t.Errorf("%s sets up a connection and is in group %s", c.Name, c.Group)
		}
		if c.ReplyPerChannel && !(c.Has(PubSub|NoScript) && c.AboutChannels()) {
			t.Errorf("%s replies per channel and is no subscription", c.Name)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, c := range []struct{ request, want string }{
		{"SET lock a", "SET"}, {"client tracking on", "CLIENT TRACKING"}, {"CLIENT NOSUCH", "CLIENT"}, {"OBJECT", "OBJECT"}, {"GET ID", "GET"},
		{"NOSUCH x", ""}, {"", ""},
	} {
		if got := Of(strings.Fields(c.request)).Name; got != c.want {
			t.Errorf("row of %q: %q, want %q", c.request, got, c.want)
		}
	}
	if got := Lookup("CLIENT TRACKING").Name; got != "CLIENT TRACKING" {
		t.Errorf("row of CLIENT TRACKING: %q", got)
	}
	if unknown := Lookup("NOSUCH"); unknown.LeavesKeys() || unknown.MayWrite() || unknown.RunsScript() || unknown.Blocks([]string{"NOSUCH"}) {
		t.Errorf("an unknown command has properties: %+v", unknown)
	}
}

func TestKeysIn(t *testing.T) {
	for _, c := range []struct{ request, want string }{
		{"GET a b", "a"}, {"GET", ""}, {"MGET a b", "a b"}, {"MSET a 1 b 2", "a b"}, {"LCS a b LEN", "a b"},
		{"BLPOP a b 0", "a b"}, {"OBJECT FREQ a", "a"}, {"OBJECT HELP a", ""},
		{"EVALSHA digest 2 a b c", "a b"}, {"EVAL script 9 a", "a"}, {"EVAL script -1 a", ""}, {"EVAL script x a", ""}, {"EVAL script", ""},
		{"MSETEX 2 a 1 b 2 EX 9", "a b"}, {"ZUNIONSTORE to 2 a b", "to a b"},
		{"XREAD COUNT 1 streams a b 0 0", "a b"}, {"XREAD COUNT 1", ""}, {"XREAD STREAMS", ""},
		{"GEORADIUS a 0 0 1 m STORE to", "a to"}, {"MIGRATE host 1 key 0 9 KEYS a b", "key a b"}, {"MIGRATE host", ""},
		{"PUBLISH channel x", ""}, {"SSUBSCRIBE channel", ""}, {"PING", ""},
	} {
		words := strings.Fields(c.request)
		if got := strings.Join(Of(words).KeysIn(words), " "); got != c.want {
			t.Errorf("keys in %q: %q, want %q", c.request, got, c.want)
		}
	}
}

func TestArgumentsIn(t *testing.T) {
	for request, want := range map[string]int{
		"EVAL script 1 a b": 4, "FCALL f 0 b": 3, "EVALSHA digest 7 a": 7, "EVAL script": -1, "EVAL script -1": -1, "SINTERCARD 1 a": -1, "GET a": -1,
	} {
		words := strings.Fields(request)
		at, ok := Of(words).ArgumentsIn(words)
		if !ok {
			at = -1
		}
		if at != want {
			t.Errorf("arguments in %q: %d, want %d", request, at, want)
		}
	}
}

func TestValuesIn(t *testing.T) {
	for request, want := range map[string]string{
		"SET lock v NX": "v", "HSET lock f v": "f v", "PSETEX lock 9 v": "v", "MSET a v b w": "v w", "LINSERT lock BEFORE v w x": "v w",
		"ZADD lock 1 v 2 w": "v w", "ZADD lock nx CH 1 v": "v", "ZADD": "", "GET lock": "", "DEL a b": "",
	} {
		words := strings.Fields(request)
		var got []string
		if from, step, to, ok := Of(words).ValuesIn(words); ok {
			for i := from; i <= to && i < len(words); i += step {
				got = append(got, words[i])
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("values in %q: %q, want %q", request, got, want)
		}
	}
}

func TestTimeoutIn(t *testing.T) {
	for request, want := range map[string]string{
		"BLPOP a b 5": "5 1s", "BLPOP": "BLPOP 1s", "BZMPOP 5 1 a MIN": "5 1s", "BZMPOP": "BZMPOP 1s", "WAIT 1 500": "500 1ms",
		"XREAD block 7 STREAMS a 0": "7 1ms", "XREAD STREAMS a 0": "", "XREAD STREAMS a BLOCK": "", "LPOP a": "",
	} {
		words := strings.Fields(request)
		got := ""
		if word, unit, ok := Of(words).TimeoutIn(words); ok {
			got = word + " " + unit.String()
		}
		if got != want {
			t.Errorf("timeout in %q: %q, want %q", request, got, want)
		}
	}
}

// TestClientCommands checks which commands scripts may name, and that old and short names are
// first.
func TestClientCommands(t *testing.T) {
	names := ClientCommands()
	for _, pair := range [][2]string{{"GET", "SET"}, {"DEL", "DELEX"}, {"SET", "LSET"}, {"SCARD", "WAITAOF"}} {
		if a, b := slices.Index(names, pair[0]), slices.Index(names, pair[1]); a < 0 || b < a {
			t.Errorf("%s is at %d, %s at %d", pair[0], a, pair[1], b)
		}
	}
	for _, name := range []string{"REPLCONF", "RESTORE-ASKING", "CLIENT ID"} {
		if slices.Contains(names, name) {
			t.Errorf("clients do not send %s", name)
		}
	}
}
