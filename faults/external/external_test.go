//go:build unix

package external_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/external"
	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/process/processtest"
	"github.com/lockfault/lockfault/faults/real"
)

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// go-redis logs each connection that it can't make.
func TestMain(m *testing.M) {
	redis.SetLogger(quiet{})
	os.Exit(m.Run())
}

const password = "a,b@c/d"

func start(t *testing.T, h *process.Host, name string) string {
	t.Helper()
	s, err := h.Start(t.Context(), real.ServerSpec{Name: name, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	return s.Addr()
}

// at returns the URL of a server.
func at(scheme, user, password, addr, rest string) string {
	return scheme + "://" + url.UserPassword(user, password).String() + "@" + addr + rest
}

// connect connects as the owner of the server.
func connect(t *testing.T, addr string, db int) *redis.Client {
	t.Helper()
	return processtest.Connect(t, addr, password, db)
}

// TestCheck checks that unusable servers are reported in one line that says what to do, without a
// password.
func TestCheck(t *testing.T) {
	h := processtest.Host(t, process.Options{})
	addr := start(t, h, "n1")
	replica := start(t, h, "n1-r1")
	host, port, _ := net.SplitHostPort(addr)
	if err := connect(t, replica, 0).ReplicaOf(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	secret, _ := processtest.Encrypt(t, addr, "cache.example")
	owner := connect(t, addr, 0)
	for user, rule := range map[string][]any{
		"reader":  {"~*", "+info", "+get", "+hgetall", "+pttl", "+multi", "+exec"},
		"nobody":  {},
		"visitor": {"~lockfault:*", "+info", "+get", "+hgetall", "+pttl", "+multi", "+exec", "+unlink", "+scan", "+select"},
	} {
		if err := owner.Do(t.Context(), append([]any{"ACL", "SETUSER", user, "on", ">" + password}, rule...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	cluster := fake(t, "redis_mode:cluster\r\ncluster_enabled:1\r\nrole:master\r\n")
	sentinel := fake(t, "redis_mode:sentinel\r\n")
	old := fake(t, "redis_version:5.0.14\r\nrole:master\r\n")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()

	tests := []struct {
		list []string
		says []string // empty: nothing is wrong
	}{
		{list: []string{at("redis", "", password, addr, "")}},
		{list: []string{at("redis", "visitor", password, addr, "/3")}},
		{list: []string{at("redis", "", password, addr, "/1"), at("redis", "", password, addr, "/2")}},
		{list: []string{at("rediss", "", password, secret, "?skip_verify=1")}},

		{[]string{free.Addr().String()}, []string{free.Addr().String(), "connection refused", "does a Redis listen there?"}},
		{[]string{at("redis", "", password, addr, ""), free.Addr().String()}, []string{free.Addr().String()}},
		{[]string{addr}, []string{addr, "NOAUTH", "check user and password"}},
		{[]string{at("redis", "", "hush", addr, "")}, []string{"WRONGPASS", "check user and password"}},
		{[]string{at("redis", "", password, addr, "/999")}, []string{addr + "/999", "there is no database 999"}},
		{[]string{at("redis", "nobody", password, addr, "")}, []string{"NOPERM", "docs/external.md"}},
		{[]string{at("redis", "reader", password, addr, "")}, []string{"NOPERM", "docs/external.md"}},
		{[]string{at("rediss", "", password, secret, "")}, []string{secret, "certificate", "skip_verify=true"}},
		{[]string{at("redis", "", password, secret, "")}, []string{secret, "speaks TLS, and its address", "write rediss:// in place of redis://"}},
		{[]string{secret}, []string{secret, "speaks TLS, and its address", "write rediss://"}},
		{[]string{at("rediss", "", password, addr, "")}, []string{addr, "speaks plain text, and its address", "write redis:// in place of rediss://"}},
		{[]string{at("redis", "", password, replica, "")}, []string{replica, "is a replica: name its primary"}},
		{[]string{cluster}, []string{cluster, "is a node of a cluster"}},
		{[]string{old}, []string{old, "is Redis 5.0.14, too old", "version 6 or newer"}},
		{[]string{sentinel}, []string{sentinel, "is a sentinel"}},
		{[]string{at("redis", "", password, addr, ""), at("redis", "", password, strings.Replace(addr, "127.0.0.1", "localhost", 1), "")},
			[]string{"are one server", "independent"}},
		{[]string{"redis://h:hush"}, []string{"the first address"}},
	}
	for _, test := range tests {
		err := external.Check(t.Context(), test.list)
		if len(test.says) == 0 {
			if err != nil {
				t.Errorf("%q: %v", test.list, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%q: nothing is wrong", test.list)
			continue
		}
		line := err.Error()
		if wrong := strings.Contains(line, "its address") || strings.Contains(line, "first address"); errors.Is(err, external.ErrAddress) != wrong {
			t.Errorf("%q: %s: the address is wrong: %v", test.list, line, !wrong)
		}
		for _, part := range test.says {
			if !strings.Contains(line, part) {
				t.Errorf("%q: %s: want %q", test.list, line, part)
			}
		}
		if strings.Contains(line, "\n") || strings.Contains(line, "hush") || strings.Contains(line, password) {
			t.Errorf("%q: %q", test.list, line)
		}
	}
	if size := owner.DBSize(t.Context()).Val(); size != 0 {
		t.Errorf("%d keys were left", size)
	}
}

// TestCheckOfASilentServer checks a server that speaks plain text and sends nothing when it is
// asked for TLS.
func TestCheckOfASilentServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = external.Check(ctx, []string{"rediss://" + silent.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "no answer") || !strings.Contains(err.Error(), "speak TLS") {
		t.Errorf("%v", err)
	}
}

// fake starts a server that has nothing but an INFO.
func fake(t *testing.T, info string) string {
	t.Helper()
	s, err := server.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if err := s.Register("INFO", func(c *server.Peer, _ string, _ []string) { c.WriteBulk(info) }); err != nil {
		t.Fatal(err)
	}
	return s.Addr().String()
}

// TestCloseRemovesKeys checks that a host removes only the keys that its clients used, whatever
// precedes the run's prefix, and for a run of its own also keys that no request has shown.
func TestCloseRemovesKeys(t *testing.T) {
	addr := start(t, processtest.Host(t, process.Options{}), "n1")
	for _, own := range []bool{true, false} {
		run := external.NewRun()
		options := external.Options{Redis: []string{at("redis", "", password, addr, "/4")}, Run: run}
		if own {
			options.Run = ""
		}
		h, err := external.New(options)
		if err != nil {
			t.Fatal(err)
		}
		s, err := h.Start(t.Context(), real.ServerSpec{Node: "n1", Name: "n1-0"})
		if err != nil {
			t.Fatal(err)
		}
		guest := s.(real.UnmanagedServer)
		if login := guest.Login(); login.Password != password || login.DB != 4 || guest.Addr() != addr || guest.Trip() <= 0 {
			t.Errorf("login %+v at %s, a trip takes %v", login, guest.Addr(), guest.Trip())
		}
		owner := connect(t, addr, 4)
		strangers := []string{"lock", "lockfault:{", "lockfault:{other}:lock", h.Key()[1:]}
		seen := []string{h.Key(), h.Key() + ":fence", "their:" + h.Key()}
		unseen := "{" + h.Key() + "}:unseen"
		for _, key := range append(append(slices.Clone(strangers), seen...), unseen) {
			owner.Set(t.Context(), key, "x", 0)
		}
		guest.Sent([]string{"EVALSHA", "digest", "2", seen[0], seen[1], "lock"})
		guest.Sent([]string{"SET", seen[2], "value"})
		guest.Sent([]string{"SUBSCRIBE", unseen})
		guest.Sent([]string{"SPUBLISH", unseen, "x"})
		guest.Sent([]string{"pubsub", "numsub", unseen})
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if err := h.Close(); err != nil {
			t.Errorf("the second time: %v", err)
		}
		want := slices.Clone(strangers)
		if !own {
			want = append(want, unseen)
		}
		slices.Sort(want)
		if got := keys(t, owner); !slices.Equal(got, want) {
			t.Errorf("own run %v: left are %q, want %q", own, got, want)
		}
		if _, err := h.Start(t.Context(), real.ServerSpec{Node: "n1", Name: "n1-0"}); err == nil {
			t.Error("a closed host starts")
		}
		if !own {
			// More than one step's worth of names.
			pipe := owner.Pipeline()
			for i := range 3000 {
				pipe.Set(t.Context(), external.Prefix(run)+"-x}:"+string(rune('a'+i%26))+strings.Repeat("y", i/26), i, 0)
			}
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := external.Remove(t.Context(), options.Redis, run); err != nil {
				t.Fatal(err)
			}
			if got, want := keys(t, owner), slices.Sorted(slices.Values(strangers)); !slices.Equal(got, want) {
				t.Errorf("after the run: left are %q, want %q", got, want)
			}
		}
		owner.FlushAll(t.Context())
	}
	if err := external.Remove(t.Context(), []string{addr}, ""); err == nil {
		t.Error("a run without a name was removed")
	}
}

func keys(t *testing.T, c *redis.Client) []string {
	t.Helper()
	list, err := c.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(slices.Values(list))
}

// TestKeysAreTheCellsOwn checks that two cells of one run have different locks.
func TestKeysAreTheCellsOwn(t *testing.T) {
	options := external.Options{Redis: []string{"h"}, Run: external.NewRun()}
	a, err := external.New(options)
	if err != nil {
		t.Fatal(err)
	}
	b, err := external.New(options)
	if err != nil {
		t.Fatal(err)
	}
	if a.Key() == b.Key() || !strings.HasPrefix(a.Key(), external.Prefix(options.Run)) {
		t.Errorf("%s and %s", a.Key(), b.Key())
	}
}

// Where keys may be left, that is said.
func TestCloseSaysWhatIsLeft(t *testing.T) {
	redisHost := processtest.Host(t, process.Options{})
	s, err := redisHost.Start(t.Context(), real.ServerSpec{Name: "n1", Password: password})
	if err != nil {
		t.Fatal(err)
	}
	h, err := external.New(external.Options{Redis: []string{at("redis", "", password, s.Addr(), "")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Start(t.Context(), real.ServerSpec{Node: "n1", Name: "n1-0"}); err != nil {
		t.Fatal(err)
	}
	if err := s.(real.ManagedServer).Kill(); err != nil {
		t.Fatal(err)
	}
	prefix, _, _ := strings.Cut(h.Key(), "}")
	if err := h.Close(); err == nil || !strings.Contains(err.Error(), s.Addr()) || !strings.Contains(err.Error(), "keys that begin with "+prefix+" may be left") {
		t.Errorf("%v", err)
	}
}

// A host has no clocks or further nodes to give, and takes no orders.
func TestHostRefuses(t *testing.T) {
	addr := start(t, processtest.Host(t, process.Options{}), "n1")
	h, err := external.New(external.Options{Redis: []string{at("redis", "", password, addr, "")}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, spec := range []real.ServerSpec{{Node: "n2"}, {}, {Node: "n1", Clock: true}} {
		if _, err := h.Start(t.Context(), spec); err == nil || spec.Clock != errors.Is(err, real.ErrNoClock) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	s, err := h.Start(t.Context(), real.ServerSpec{Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, owned := s.(real.ManagedServer); owned {
		t.Error("it takes orders")
	}
}

// TestForward checks that clients without TLS reach a server with TLS, with any amount of data, and
// see the end of the server's data.
func TestForward(t *testing.T) {
	addr := start(t, processtest.Host(t, process.Options{}), "n1")
	secret, _ := processtest.Encrypt(t, addr, "localhost")
	h, err := external.New(external.Options{Redis: []string{at("rediss", "", password, secret, "/2?skip_verify=true")}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Start(t.Context(), real.ServerSpec{Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Addr() == secret {
		t.Fatal("clients are led to TLS")
	}
	client := connect(t, s.Addr(), 2)
	big := strings.Repeat("0123456789abcdef", 1<<16)
	if err := client.Set(t.Context(), h.Key(), big, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := client.Get(t.Context(), h.Key()).Val(); got != big {
		t.Errorf("%d bytes came back of %d", len(got), len(big))
	}
	plain, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := io.WriteString(plain, "QUIT\r\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(plain); string(text) != "+OK\r\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if list := keys(t, connect(t, addr, 2)); len(list) != 0 {
		t.Errorf("left are %q", list)
	}
	if _, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Error("somebody still listens")
	}
}
