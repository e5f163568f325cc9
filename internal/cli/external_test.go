//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/process/processtest"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/cli"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies/all"
)

const ownersPassword, visitorsPassword = "the owner's", "the visitor's, @/%"

// redisOfAUser is a Redis that somebody runs, with things of theirs in it and a
// user for lockfault that is allowed what docs/external.md says.
type redisOfAUser struct {
	*redis.Client
	addr string
}

// theRule is the rule of docs/external.md.
func theRule(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "external.md"))
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile(`(?s)ACL SETUSER lockfault on >PASSWORD(.*?)\n` + "```").FindSubmatch(page)
	if rule == nil {
		t.Fatal("docs/external.md has no rule")
	}
	return strings.Fields(strings.ReplaceAll(string(rule[1]), `\`, ""))
}

func newRedisOfAUser(t *testing.T, more ...any) redisOfAUser {
	t.Helper()
	s, err := processtest.Host(t, process.Options{}).Start(t.Context(), real.ServerSpec{Name: "theirs", Password: ownersPassword})
	if err != nil {
		t.Fatal(err)
	}
	c := processtest.Connect(t, s.Addr(), ownersPassword, 0)
	rule := []any{"ACL", "SETUSER", "lockfault", "on", ">" + visitorsPassword}
	for _, word := range theRule(t) {
		rule = append(rule, word)
	}
	if err := c.Do(t.Context(), append(rule, more...)...).Err(); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"lock", "lockfault", "lockfault:{somebody}:lock"} {
		if err := c.Set(t.Context(), key, "theirs", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return redisOfAUser{c, s.Addr()}
}

func (r redisOfAUser) url(db int) string {
	return fmt.Sprintf("redis://%s@%s/%d", login(), r.addr, db)
}

// login is how URLs among others show user and password.
func login() string {
	return strings.ReplaceAll(url.UserPassword("lockfault", visitorsPassword).String(), ",", "%2C")
}

// untouched checks that there are the owner's things, and nothing else, and
// that nothing was tried that the user may not.
func (r redisOfAUser) untouched(t *testing.T) {
	t.Helper()
	info, err := r.Info(t.Context(), "keyspace").Result()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(info); !regexp.MustCompile(`^# Keyspace\s+db0:keys=3,expires=0,\S+$`).MatchString(got) {
		keys, _ := r.Keys(t.Context(), "*").Result()
		t.Errorf("keys are left: %q, in the first database %q", got, keys)
	}
	denied, err := r.Do(t.Context(), "ACL", "LOG").Slice()
	if err != nil || len(denied) > 0 {
		t.Errorf("the server had to refuse: %v %v", denied, err)
	}
}

// lockfault runs the program and returns its exit status and what it printed.
func lockfault(t *testing.T, env []string, args ...string) (status int, out, side string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Args[0] = "lockfault"
	cmd.Env = append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// cells returns the cells of a report by strategy and scenario.
func cells(t *testing.T, dir string) map[string]reports.Cell {
	t.Helper()
	found := map[string]reports.Cell{}
	_, err := reports.Scan(filepath.Join(dir, reports.ResultsFile), func(c reports.Cell) error {
		found[c.Strategy+" "+c.Scenario] = c
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// late reports whether the machine was too slow for a verdict.
func late(c reports.Cell) bool {
	return c.Verdict == reports.Unknown && strings.HasPrefix(c.Reason, "the machine was ")
}

// decided checks that all cells that the machine was fast enough for are as
// expected, and the exit status says the same.
func decided(t *testing.T, status int, output string, found map[string]reports.Cell) {
	t.Helper()
	want := cli.ExitOK
	for name, c := range found {
		switch {
		case late(c):
			want = cli.ExitUndecided
			t.Logf("%s: %s", name, c.Reason)
		case !c.AsExpected:
			t.Errorf("%s: %s", name, c.Difference())
		}
	}
	if status != want || len(found) == 0 {
		t.Errorf("exit status %d, %d cells\n%s", status, len(found), output)
	}
}

// secretless checks that no file of a report holds the password.
func secretless(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(file string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		text, err := os.ReadFile(file)
		for _, secret := range []string{visitorsPassword, login()} {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s holds the password", file)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files, %v", files, err)
	}
}

// mayDo are the commands that a Redis of a user's is ever sent.
var mayDo = strings.Fields(`hello auth select ping info scan multi exec get hgetall pttl del unlink
	set setnx getset getrange ttl expire pexpire eval evalsha exists hexists hincrby incr
	pexpireat publish subscribe unsubscribe wait client|tracking`)

// The cells come out in a Redis of a user's as in virtual time; the user's
// things stay as they are, ours go, and no command was sent but those of the
// list, even in vain.
func TestSlowExternal(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	theirs := newRedisOfAUser(t)
	theirs.ConfigResetStat(t.Context())
	dir := filepath.Join(t.TempDir(), "report")
	var urls []string
	for db := range 5 {
		urls = append(urls, theirs.url(db))
	}
	env := []string{"LOCKFAULT_REDIS=" + strings.Join(urls, ",")}
	play := func(strategies, scenarios string) map[string]reports.Cell {
		status, out, side := lockfault(t, env, "run", "--world", "external", "--strategy", strategies, "--scenario", scenarios, "--out", dir)
		found := cells(t, dir)
		decided(t, status, out+side, found)
		secretless(t, dir)
		return found
	}
	play(strings.Join(all.Registry().Names(), ","), "contention")
	found := play("getset-timestamp,set-nx-px-get-del,set-nx-px-del,set-nx-px-lua,redlock",
		"gc-pause-holding,pause-in-release,getset-race,release-reply-lost,server-clock-back,flush")
	for cell, want := range map[string]string{
		"getset-timestamp getset-race":       "[unreleasable]",
		"set-nx-px-lua gc-pause-holding":     "[overlap stale-write]",
		"redlock gc-pause-holding":           "[overlap stale-write]",
		"set-nx-px-get-del pause-in-release": "[overlap foreign-release]",
		"set-nx-px-del release-reply-lost":   "[foreign-release]",
		"set-nx-px-lua release-reply-lost":   "[]",
	} {
		if c := found[cell]; fmt.Sprint(c.Anomalies) != want && !late(c) {
			t.Errorf("%s: %v, want %s", cell, c.Anomalies, want)
		}
	}
	for _, scenario := range []string{"server-clock-back", "flush"} {
		if c := found["set-nx-px-lua "+scenario]; c.Verdict != reports.NotApplicable || !strings.Contains(c.Reason, "this Redis is not ours") {
			t.Errorf("%s: %s: %s", scenario, c.Verdict, c.Reason)
		}
	}
	stats, err := theirs.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	for _, match := range regexp.MustCompile(`cmdstat_([a-z0-9|_-]+):`).FindAllStringSubmatch(stats, -1) {
		if name := match[1]; name != "config|resetstat" {
			sent = append(sent, name)
		}
	}
	if len(sent) < 10 {
		t.Errorf("only %q were sent", sent)
	}
	for _, name := range sent {
		if !slices.Contains(mayDo, name) {
			t.Errorf("%s was sent", name)
		}
	}
	theirs.untouched(t)
}

// What can't be played with is said in one line, by exit status, before there
// is a report.
func TestExternalRefuses(t *testing.T) {
	theirs := newRedisOfAUser(t)
	tests := []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--world", "external"}, cli.ExitUsage, "--world external needs --redis"},
		{[]string{"--redis", theirs.url(0)}, cli.ExitUsage, "play with --world external"},
		{[]string{"--world", "external", "--redis", "redis://u:hush@h:port"}, cli.ExitUsage, "the first address"},
		{[]string{"--world", "external", "--redis", "127.0.0.1:1"}, cli.ExitUndecided, "127.0.0.1:1: dial tcp"},
		{[]string{"--world", "external", "--redis", "redis://lockfault:hush@" + theirs.addr}, cli.ExitUndecided, theirs.addr + ": WRONGPASS"},
	}
	for _, test := range tests {
		dir := filepath.Join(t.TempDir(), "report")
		status, out, side := lockfault(t, nil, append([]string{"run", "--scenario", "contention", "--out", dir}, test.args...)...)
		if status != test.status || out != "" || !strings.Contains(side, test.says) || strings.Count(side, "\n") != 1 || strings.Contains(side, "hush") {
			t.Errorf("%q: exit status %d, %q", test.args, status, side)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%q: there is a report", test.args)
		}
	}
}

// A user who may not do what a lock needs gets no verdict on the lock, whether
// that shows at once or in the middle of a scenario.
func TestExternalWithoutPermission(t *testing.T) {
	for _, test := range []struct {
		strategy, scenario string
		without            []any
	}{
		{"set-nx-px-lua", "gc-pause-holding", []any{"-evalsha", "-eval"}},
		{"redislock", "work-exceeds-ttl", []any{"-getrange"}},
	} {
		theirs := newRedisOfAUser(t, test.without...)
		dir := filepath.Join(t.TempDir(), "report")
		status, _, _ := lockfault(t, nil, "run", "--world", "external", "--redis", theirs.url(0),
			"--strategy", test.strategy, "--scenario", test.scenario, "--out", dir)
		c := cells(t, dir)[test.strategy+" "+test.scenario]
		refused := strings.Contains(c.Reason, "NOPERM") || strings.Contains(c.Reason, "can't run this command")
		if status != cli.ExitUndecided || c.Verdict != reports.Error || !refused {
			t.Errorf("%v: exit status %d, %s: %s", test.without, status, c.Verdict, c.Reason)
		}
	}
}

// A lease that has no room for commands gets no verdict either.
func TestExternalTooFar(t *testing.T) {
	theirs := newRedisOfAUser(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go processtest.Relay(listener, theirs.addr, 50*time.Millisecond)
	dir := filepath.Join(t.TempDir(), "report")
	status, _, _ := lockfault(t, nil, "run", "--world", "external", "--redis", "redis://"+login()+"@"+listener.Addr().String(), "--ttl", "1s",
		"--strategy", "set-nx-px-lua", "--scenario", "gc-pause-holding", "--out", dir)
	c := cells(t, dir)["set-nx-px-lua gc-pause-holding"]
	if status != cli.ExitUndecided || c.Verdict != reports.Unknown || !strings.Contains(c.Reason, "too far away") {
		t.Errorf("exit status %d, %s: %s", status, c.Verdict, c.Reason)
	}
	theirs.untouched(t)
}

// TLS is spoken with a server whose certificate the system trusts.
func TestSlowExternalTLS(t *testing.T) {
	t.Parallel()
	theirs := newRedisOfAUser(t)
	addr, certificate := processtest.Encrypt(t, theirs.addr, "localhost")
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(addr)
	dir := filepath.Join(t.TempDir(), "report")
	args := []string{"run", "--world", "external", "--strategy", "set-nx-px-lua", "--scenario", "gc-pause-holding,release-reply-lost", "--ttl", "2s", "--out", dir, "--redis"}
	trusting := []string{"SSL_CERT_FILE=" + roots}

	status, out, side := lockfault(t, trusting, append(args, "rediss://"+login()+"@localhost:"+port+"/1")...)
	decided(t, status, out+side, cells(t, dir))
	if c := cells(t, dir)["set-nx-px-lua gc-pause-holding"]; fmt.Sprint(c.Anomalies) != "[overlap stale-write]" && !late(c) {
		t.Errorf("%v: %s", c.Anomalies, c.Reason)
	}
	secretless(t, dir)
	theirs.untouched(t)
	for name, env := range map[string][]string{"localhost": nil, "127.0.0.1": trusting} {
		status, _, side := lockfault(t, env, append(args, "rediss://"+login()+"@"+name+":"+port)...)
		if status != cli.ExitUndecided || !strings.Contains(side, name+":"+port) || !strings.Contains(side, "certificate") || strings.Count(side, "\n") != 1 {
			t.Errorf("%s: exit status %d: %s", name, status, side)
		}
	}
	for url, says := range map[string]string{
		"redis://" + login() + "@localhost:" + port:                      "speaks TLS, and its address does not say so: write rediss:// in place of redis://",
		"rediss://" + login() + "@" + theirs.addr + "/?skip_verify=true": "speaks plain text, and its address says TLS: write redis:// in place of rediss://",
	} {
		status, out, side := lockfault(t, trusting, append(args, url)...)
		if status != cli.ExitUsage || !strings.HasSuffix(side, says+"\n") || strings.Count(side, "\n") != 1 || out != "" {
			t.Errorf("%s: exit status %d: %s%s", says, status, out, side)
		}
	}
}

// However a cell ends, no key stays: this one waits for ever with one that
// never expires.
func TestExternalInterrupted(t *testing.T) {
	script := filepath.Join(t.TempDir(), "mine.txt")
	text := "clients A\n\nhold A before EXPIRE\nbegin A acquire\nawait A held\nwait 1000ttl\n\nexpect none\n"
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		end    func(*run)
		status int
	}{
		{"interrupt", func(r *run) { r.signal(os.Interrupt) }, cli.ExitInterrupted},
		{"terminate", func(r *run) { r.signal(syscall.SIGTERM) }, cli.ExitInterrupted},
		{"worker killed", killWorkers, cli.ExitUndecided},
		{"killed while the worker is stopped", stopAndKill, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			theirs := newRedisOfAUser(t)
			dir := t.TempDir()
			r := startCommand(t, dir, "run", "--world", "external", "--redis", theirs.url(0), "--strategy", "setnx-expire",
				"--scenario", script, "--ttl", "2s", "--cell-timeout", "1h", "--out", filepath.Join(dir, "report"))
			r.await("the key is there", func() bool {
				keys, err := theirs.Keys(t.Context(), "lockfault:{*:lock").Result()
				return err == nil && len(keys) == 2 // the owner's, and the one that is held
			})
			c.end(r)
			if status := r.wait(); status != c.status {
				t.Errorf("exit status %d, want %d: %s", status, c.status, &r.stderr)
			}
			waitFor(t, func() bool { return len(r.processes()) == 0 })
			theirs.untouched(t)
			if c.status != cli.ExitUndecided {
				return
			}
			for _, c := range slices.Collect(maps.Values(cells(t, filepath.Join(dir, "report")))) {
				if c.Verdict != reports.Error {
					t.Errorf("%s: %s", c.Strategy, c.Verdict)
				}
			}
		})
	}
}
