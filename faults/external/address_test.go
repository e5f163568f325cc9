package external

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/faults/real"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text, at, shown string
		login           real.Login
		server          string // name that its certificate is for; empty for plain text
		unseen          bool   // whatever its certificate says
	}{
		{text: "localhost:7000", at: "localhost:7000", shown: "localhost:7000"},
		{text: "cache", at: "cache:6379", shown: "cache:6379"},
		{text: "[::1]:7000", at: "[::1]:7000", shown: "[::1]:7000"},
		{text: " redis://h/2", at: "h:6379", shown: "h:6379/2", login: real.Login{DB: 2}},
		{text: "redis://h?db=3", at: "h:6379", shown: "h:6379/3", login: real.Login{DB: 3}},
		{text: "redis://:pw@h:1", at: "h:1", shown: "h:1", login: real.Login{Password: "pw"}},
		{text: "redis://u:p%40%2C@h:1/7", at: "h:1", shown: "h:1/7", login: real.Login{Username: "u", Password: "p@,", DB: 7}},
		{text: "rediss://u:pw@h:1", at: "h:1", shown: "h:1", login: real.Login{Username: "u", Password: "pw"}, server: "h"},
		{text: "rediss://h?skip_verify=true", at: "h:6379", shown: "h:6379", server: "h", unseen: true},
	}
	for _, test := range tests {
		all, err := parse([]string{test.text})
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		a := all[0]
		if a.at != test.at || a.String() != test.shown || a.login != test.login {
			t.Errorf("%q: %q, shown as %q, login %+v", test.text, a.at, a, a.login)
		}
		if (a.tls != nil) != (test.server != "") {
			t.Errorf("%q: TLS: %v", test.text, a.tls != nil)
		}
		if a.tls != nil && (a.tls.ServerName != test.server || a.tls.InsecureSkipVerify != test.unseen || a.tls.MinVersion < tls.VersionTLS12) {
			t.Errorf("%q: TLS with %q, unseen: %v", test.text, a.tls.ServerName, a.tls.InsecureSkipVerify)
		}
	}
}

// What can't be read is refused in a line that holds no password.
func TestParseRefuses(t *testing.T) {
	tests := []struct {
		list []string
		says string
	}{
		{nil, "no Redis has an address"},
		{[]string{"h", "redis://u:hush@h:port"}, "the second address: it can't be read"},
		{[]string{"redis://u:hush/hush@h:1"}, "as %XX"},
		{[]string{"redis://u:%hush@h:1"}, "the first address"},
		{[]string{"u:hush@h:1:1"}, "the first address"},
		{[]string{"http://u:hush@h"}, "neither redis:// nor"},
		{[]string{"redis://u:1/hush@h"}, "its database must be a number"},
		{[]string{"redis://u:1?hush=1@h"}, "only db and skip_verify"},
		{[]string{"unix:///tmp/redis.sock"}, "not a Unix socket"},
		{[]string{"redis://u:hush@h/x"}, "its database must be a number"},
		{[]string{"redis://u:hush@h/1/2"}, "its database must be a number"},
		{[]string{"redis://u:hush@h/-1"}, "its database must be a number"},
		{[]string{"redis://u:hush@h?pool_size=3"}, "only db and skip_verify"},
		{[]string{"rediss://u:hush@h?skip_verify=perhaps"}, "skip_verify"},
		{[]string{"h:1", "redis://u:hush@h:1/0"}, "the first address and the second are the same database, h:1"},
	}
	for _, test := range tests {
		_, err := parse(test.list)
		if !errors.Is(err, ErrAddress) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v, want %q", test.list, err, test.says)
			continue
		}
		if strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", test.list, err)
		}
	}
}

// However an address is garbled, its password is not repeated.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"redis://u:SECRET@h:1/2", "u:SECRET@h", "rediss://:SECRET@[::1]:x?y=1", "SECRET@", "redis://SECRET:SECRET@%zz", "://SECRET@h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// A password is what stands between the first colon of the login
		// and its @.
		all, err := parse([]string{"redis://user:SECRET" + text})
		switch {
		case err != nil && strings.Contains(text, "@") && strings.Contains(err.Error(), "SECRET"):
			t.Errorf("%v", err)
		case err == nil && strings.Contains(all[0].String(), "SECRET"):
			t.Errorf("%q is shown as %s", text, all[0])
		}
	})
}
