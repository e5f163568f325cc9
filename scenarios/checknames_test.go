package scenarios_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/scenarios"
)

// Whoever is selected must be known to somebody.
func TestCheckNames(t *testing.T) {
	names, tags := []string{"redlock", "set-nx-px-lua", "set-nx-px-del"}, []string{"single", "renewing"}
	for _, c := range []struct{ name, settings, expects, want string }{
		{name: "nobody in particular", expects: "expect none"},
		{"everybody there is", "for redlock set-nx-* @single", "expect @renewing set-nx-px-lua: overlap\nexpect *: none", ""},
		{name: "a name", expects: "expect redlok: overlap", want: `4:8: no strategy is called "redlok" (did you mean "redlock"?)`},
		{name: "a name behind others", expects: "expect none\nexpect @single  redlok : overlap # x", want: `5:17: no strategy is called "redlok" (did you mean "redlock"?)`},
		{name: "a tag", expects: "expect @singel: overlap", want: `4:8: no strategy has the tag "@singel" (did you mean "@single"?)`},
		{name: "a tag that is a name", expects: "expect @redlock: overlap",
			want: `4:8: no strategy has the tag "@redlock": what only another program has must stand behind elsewhere, among the settings`},
		{name: "a name that is a tag", expects: "expect single: overlap",
			want: `4:8: no strategy is called "single": what only another program has must stand behind elsewhere, among the settings`},
		{name: "a pattern", expects: "expect setnx-*: overlap",
			want: `4:8: no strategy has a name such as "setnx-*": what only another program has must stand behind elsewhere, among the settings`},
		{"for", "for @single redlokc", "expect none", `2:13: no strategy is called "redlokc" (did you mean "redlock"?)`},
		{"for comes first", "for redlokc", "expect redlokk: none", `2:5: no strategy is called "redlokc" (did you mean "redlock"?)`},
		{"what is elsewhere", "elsewhere their-lock @theirs\nfor @theirs redlock", "expect their-*: overlap\nexpect their-lock: none", ""},
		{"nearly what is elsewhere", "elsewhere their-lock", "expect their-lok: overlap", `4:8: no strategy is called "their-lok" (did you mean "their-lock"?)`},
		{"a pattern matches no tag", "elsewhere @theirs", "expect *theirs: overlap",
			`4:8: no strategy has a name such as "*theirs": what only another program has must stand behind elsewhere, among the settings`},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := "clients A\n" + c.settings + "\nA acquire\n" + c.expects + "\n"
			err := parse(t, src).CheckNames(names, tags)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var syntax *scenarios.SyntaxError
			if !errors.As(err, &syntax) || syntax.Error() != "x.txt:"+c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// What was never text is checked all the same.
func TestCheckNamesOfWhatIsNoText(t *testing.T) {
	s := &scenarios.Script{Settings: scenarios.Defaults(), Expects: []scenarios.Expect{{For: []scenarios.Selector{"", "x"}}}}
	if err := s.CheckNames([]string{"y"}, nil); err == nil {
		t.Error("an empty selector was accepted")
	}
}

// Words that mean the same elsewhere are not accepted, but understood.
func TestSynonyms(t *testing.T) {
	for _, c := range []struct{ wrong, want string }{
		{"A lock", "acquire"}, {"A trylock", "try"}, {"A free", "release"}, {"A renew", "extend"}, {"A sleep", "work"},
		{"A freeze", "pause"}, {"A wake", "resume"}, {"A die", "crash"}, {"A start", "restart"}, {"n1 promote", "failover"},
		{"n1 wipe", "flush"}, {"block A before SET", "hold"}, {"isolate A", "partition"}, {"reconnect A", "heal"}, {"lag 5ms", "latency"},
		{"throttle 5KB/s", "bandwidth"}, {"timer x", "measure"}, {"assert none", "expect"}, {"only redlock", "for"}, {"lose A before SET", "drop"},
	} {
		_, err := scenarios.Parse("x.txt", []byte("clients A\nreplicas 1\n"+c.wrong+"\nexpect none\n"))
		if err == nil || !strings.HasSuffix(err.Error(), `(did you mean "`+c.want+`"?)`) {
			t.Errorf("%s: got %v, want %q proposed", c.wrong, err, c.want)
		}
	}
}
