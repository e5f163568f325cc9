package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/daemon"
)

// ensemble starts members, and skips the test where ZooKeeper is missing.
func ensemble(t *testing.T, members int) []*server {
	t.Helper()
	return ensembleOf(t, members, false)
}

// hostOf returns a host of members that closes with the test and leaves nothing. Without a program the test is skipped, except where
// nothing may be.
func hostOf(t *testing.T, members int) *Host {
	t.Helper()
	program, err := Find()
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(Options{Program: program, Members: members, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(h.options.Dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	})
	return h
}

// ensembleOf starts members, with clocks of their own if that is asked for.
func ensembleOf(t *testing.T, members int, clocks bool) []*server {
	t.Helper()
	h := hostOf(t, members)
	if err := h.CanMoveClocks(t.Context()); clocks && err != nil && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	found := make([]*server, members)
	var starting sync.WaitGroup
	for i := range members {
		starting.Go(func() {
			s, err := h.Start(context.WithoutCancel(t.Context()), real.ServerSpec{Name: fmt.Sprintf("n%d-0", i+1), Node: fmt.Sprintf("n%d", i+1), Password: "secret", Clock: clocks})
			if err != nil {
				t.Error(err)
				return
			}
			found[i] = s.(*server)
		})
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return found
}

func TestEnsembleLivesOnWithoutOne(t *testing.T) {
	members := ensemble(t, 3)
	is := func(s *server, modes ...string) func() bool {
		return func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			mode, err := ask(ctx, s.Addr())
			return err == nil && strings.Contains(strings.Join(modes, " "), mode) && mode != ""
		}
	}
	if !is(members[0], "leader")() {
		t.Error("the first doesn't lead")
	}
	for _, s := range members {
		if s.host.Members()[0].Number == 0 || !strings.HasPrefix(s.Addr(), "127.0.0.1:") {
			t.Error(s.Addr())
		}
	}
	if err := members[0].Kill(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "another leader", is(members[1], "leader"))
	if err := members[2].Pause(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "one of three to see that it is alone", func() bool { return !is(members[1], "leader", "follower")() })
	if err := members[2].Resume(); err != nil {
		t.Fatal(err)
	}
	if err := members[0].Restart(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := members[0].Restart(t.Context(), false); err == nil {
		t.Error("one that runs was started again")
	}
	if err := members[0].SetClock(time.Second, 1); !errors.Is(err, real.ErrNoClock) {
		t.Error(err)
	}
	conn := dial(t, members[0], "secret")
	defer conn.Close()
	if _, _, err := conn.Children("/"); err != nil {
		t.Errorf("one that came back with its data: %v", err)
	}
}

// Sessions don't end because the server's wall clock jumps: they are spans.
func TestClock(t *testing.T) {
	member := ensembleOf(t, 1, true)[0]
	const session = 10 * time.Second
	conn, events, err := zk.Connect([]string{member.Addr()}, session, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	within := func(limit time.Duration, want zk.State) bool {
		late := time.After(limit)
		for {
			select {
			case e := <-events:
				if e.State == want {
					return true
				}
			case <-late:
				return false
			}
		}
	}
	if !within(time.Minute, zk.StateHasSession) {
		t.Fatal("there is no session")
	}
	if err := member.SetClock(time.Hour, 1); err != nil {
		t.Fatal(err)
	}
	if within(2*time.Second, zk.StateExpired) {
		t.Error("a jump of the clock ended the session")
	}
	// It dates what is made by its clock.
	if err := conn.AddAuth("digest", []byte(user+":secret")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Create("/dated", nil, 0, zk.AuthACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	_, stat, err := conn.Get("/dated")
	if err != nil {
		t.Fatal(err)
	}
	if ahead := time.Until(time.UnixMilli(stat.Ctime)); ahead < 50*time.Minute {
		t.Errorf("its clock is ahead by %v", ahead)
	}
}

// TestMemberCutOff checks that a member without connections to the others leaves the ensemble,
// whatever its number, and rejoins it afterwards. n1 has the largest number and leads at first; n3
// has the smallest, and both others dial back to it.
func TestMemberCutOff(t *testing.T) {
	members := ensemble(t, 3)
	serves := func(i int) bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		mode, err := ask(ctx, members[i].Addr())
		return err == nil && mode != ""
	}
	for i, s := range members {
		name, others := fmt.Sprintf("n%d", i+1), []int{(i + 1) % 3, (i + 2) % 3}
		for _, other := range others {
			if err := s.host.Part(fmt.Sprintf("n%d", other+1), name); err != nil {
				t.Fatal(err)
			}
		}
		waitFor(t, name+" to see that it is alone", func() bool { return !serves(i) })
		waitFor(t, "the others to serve without "+name, func() bool { return serves(others[0]) && serves(others[1]) })
		for began := time.Now(); time.Since(began) < 3*silence; time.Sleep(5 * time.Millisecond) {
			if serves(i) {
				t.Fatalf("%s serves, though it is cut off", name)
			}
		}
		if !serves(others[0]) || !serves(others[1]) {
			t.Errorf("without %s the others don't serve any more", name)
		}
		for _, other := range others {
			if err := s.host.Rejoin(fmt.Sprintf("n%d", other+1), name); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		waitFor(t, name+" to be one of them again", func() bool { return serves(i) })
		t.Logf("%s was one of them again after %v", name, time.Since(began).Round(time.Millisecond))
	}
}

// TestMembersReachEachOtherByWays checks that only this process reaches a member's own ports, even
// when a member dials back to the address that another one has sent: n3, with the smallest number,
// is dialled back by both others after a restart.
func TestMembersReachEachOtherByWays(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says whose a connection is")
	}
	members := ensemble(t, 3)
	if err := errors.Join(members[2].Kill(), members[2].Restart(t.Context(), false)); err != nil {
		t.Fatal(err)
	}
	for i, own := range members[0].host.peers {
		for what, port := range map[string]int{"data": own.data, "election": own.election} {
			ours, others := dialled(t, port)
			if others > 0 {
				t.Errorf("%d connections to the %s port of n%d are not this process's", others, what, i+1)
			}
			if what == "election" && i == 2 && ours < 2 {
				t.Errorf("n3 is reached by %d others, want both", ours)
			}
		}
	}
}

// dialled returns how many connections to a port of loopback were made by this process, and by others.
func dialled(t *testing.T, port int) (ours, others int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	mine := map[string]bool{}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil {
			mine[to] = true
		}
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue // there is no IPv6
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			const established = "01"
			if len(f) < 10 || f[3] != established || !strings.HasSuffix(f[2], fmt.Sprintf(":%04X", port)) {
				continue
			}
			if mine["socket:["+f[9]+"]"] {
				ours++
			} else {
				others++
			}
		}
	}
	return ours, others
}

// What a member names when it introduces itself becomes the way to it, and nothing else changes.
func TestIntroduction(t *testing.T) {
	message := func(version int64, name string) string {
		head := binary.BigEndian.AppendUint64(nil, uint64(version))
		head = binary.BigEndian.AppendUint64(head, 3)
		return string(binary.BigEndian.AppendUint32(head, uint32(len(name)))) + name
	}
	const own, way, more = "127.0.0.1:12345", "127.0.0.1:9", "what comes next"
	for _, c := range []struct{ name, says, becomes, left, why string }{
		{"one address", message(version1, own) + more, message(version1, way), more, ""},
		{"several addresses", message(version2, "x:1|"+own+"|y:2") + more, message(version2, "x:1|"+way+"|y:2"), more, ""},
		{"of another version", message(-65534, own), message(-65534, own)[:8], message(-65534, own)[8:], ""},
		{"a number in place of a version", "\x00\x00\x00\x00\x00\x00\x00\x03" + more, "\x00\x00\x00\x00\x00\x00\x00\x03", more, ""},
		{"nothing", "", "", "", ""},
		{"a part", message(version1, own)[:5], message(version1, own)[:5], "", ""},
		{"a larger part", message(version1, own)[:30], message(version1, own)[:30], "", ""},
		{"too much", message(version1, strings.Repeat("x", 3000)), message(version1, strings.Repeat("x", 3000))[:20], strings.Repeat("x", 3000), ""},
		{"another's address", message(version1, "127.0.0.1:54321"), "", "", "and not at " + own},
	} {
		in, out := strings.NewReader(c.says), new(strings.Builder)
		err := introduce(in, out, own, way)
		if c.why != "" {
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if left, _ := io.ReadAll(in); err != nil || out.String() != c.becomes || string(left) != c.left {
			t.Errorf("%s: %q became %q, and %q is left: %v", c.name, c.says, out, left, err)
		}
	}
}

func TestLeaderIsTheFirstWhoeverWasQuicker(t *testing.T) {
	members := ensemble(t, 3)
	if err := members[0].Kill(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "another leader", func() bool { mode, _ := ask(t.Context(), members[1].Addr()); return mode == "leader" })
	for _, s := range []*server{members[0], members[2]} {
		if err := errors.Join(s.Kill(), s.Restart(t.Context(), false)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	if err := members[0].lead(ctx); err != nil {
		t.Fatal(err)
	}
	if mode, err := ask(ctx, members[0].Addr()); mode != "leader" || err != nil {
		t.Errorf("it is %q: %v", mode, err)
	}
}

// dial connects, with a password unless it is empty.
func dial(t *testing.T, s *server, password string) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect([]string{s.Addr()}, 10*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if password != "" {
		login := Service{}.Login(password)
		if err := conn.AddAuth("digest", []byte(login.Username+":"+login.Password)); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

func TestServersAskForAPassword(t *testing.T) {
	members := ensemble(t, 1)
	knows := dial(t, members[0], "secret")
	if _, err := knows.Create("/lock", []byte("mine"), 0, zk.AuthACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	world := zk.WorldACL(zk.PermAll)
	for name, do := range map[string]func(*zk.Conn) error{
		"reads a lock":            func(c *zk.Conn) error { _, _, err := c.Get("/lock"); return err },
		"lists locks":             func(c *zk.Conn) error { _, _, err := c.Children("/"); return err },
		"writes a lock":           func(c *zk.Conn) error { _, err := c.Set("/lock", nil, -1); return err },
		"deletes a lock":          func(c *zk.Conn) error { return c.Delete("/lock", -1) },
		"deletes one with more":   func(c *zk.Conn) error { _, err := c.Multi(&zk.DeleteRequest{Path: "/lock", Version: -1}); return err },
		"makes a lock":            func(c *zk.Conn) error { _, err := c.Create("/other", nil, 0, world); return err },
		"queues for a lock":       func(c *zk.Conn) error { _, err := c.Create("/lock/a", nil, zk.FlagEphemeral, world); return err },
		"makes something else":    func(c *zk.Conn) error { _, err := c.Create("/zookeeper/a", nil, 0, world); return err },
		"takes everything":        func(c *zk.Conn) error { _, err := c.SetACL("/", world, -1); return err },
		"takes a lock":            func(c *zk.Conn) error { _, err := c.SetACL("/lock", world, -1); return err },
		"changes who are members": func(c *zk.Conn) error { _, err := c.IncrementalReconfig(nil, []string{"1"}, -1); return err },
	} {
		for _, password := range []string{"", "wrong"} {
			c := dial(t, members[0], password) // a new one each time: who says none is thrown out
			if err := do(c); err == nil {
				t.Errorf("who says %q for the password %s", password, name)
			}
			c.Close()
		}
	}
	if data, _, err := knows.Get("/lock"); err != nil || string(data) != "mine" {
		t.Errorf("the lock is %q: %v", data, err)
	}
	if err := members[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := members[0].Restart(t.Context(), true); err == nil {
		t.Error("it came back without its data")
	}
	if err := members[0].Restart(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	again := dial(t, members[0], "secret")
	if data, _, err := again.Get("/lock"); err != nil || string(data) != "mine" {
		t.Errorf("when it is back the lock is %q: %v", data, err)
	}
}

// What members listen on is loopback's, among themselves too.
func TestServersListenOnLoopback(t *testing.T) {
	members := ensemble(t, 1)
	others := otherAddresses(t)
	for _, port := range []int{members[0].host.peers[0].data, members[0].host.peers[0].election} {
		for _, addr := range others {
			if conn, err := net.DialTimeout("tcp", net.JoinHostPort(addr, fmt.Sprint(port)), time.Second); err == nil {
				_ = conn.Close()
				t.Errorf("something listens at %s:%d", addr, port)
			}
		}
	}
	_, port, _ := net.SplitHostPort(members[0].Addr())
	for _, addr := range others {
		if conn, err := net.DialTimeout("tcp", net.JoinHostPort(addr, port), time.Second); err == nil {
			_ = conn.Close()
			t.Errorf("clients are served at %s", addr)
		}
	}
}

// otherAddresses returns the addresses of this machine that are not loopback addresses.
func otherAddresses(t *testing.T) (list []string) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range all {
		if n, ok := addr.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			list = append(list, n.IP.String())
		}
	}
	return list
}

func TestLogSaysWhy(t *testing.T) {
	for _, c := range []struct{ log, says string }{
		{"5 WARN A - no\n9 ERROR B - Unexpected exception, exiting abnormally\njava.net.BindException: Address already in use\n\tat java.base/x\n9 ERROR C - Exiting JVM with code 1\n", "java.net.BindException: Address already in use"},
		{"9 ERROR B - Invalid config\na.b.Config$ConfigException: Error processing\n\tat x\nCaused by: java.lang.NumberFormatException: For input\n\tat y\n\t... 2 more\n", "java.lang.NumberFormatException: For input"},
		{"Unrecognized option: --bad\nError: Could not create the Java Virtual Machine.\n", "Unrecognized option: --bad"},
		{"5 WARN A - no\n6 WARN A - never\n", "6 WARN A - never"},
		{"", ""},
	} {
		if got := failureReason(c.log); got != c.says {
			t.Errorf("%q says %q", c.log, got)
		}
	}
}

func TestFind(t *testing.T) {
	java := filepath.Join(t.TempDir(), "java")
	write(t, java)
	home := t.TempDir()
	write(t, filepath.Join(home, "lib", "zookeeper-3.9.3.jar"))
	write(t, filepath.Join(home, "bin", "zkServer.sh"))
	brewed := t.TempDir()
	write(t, filepath.Join(brewed, "libexec", "lib", "zookeeper-3.9.3.jar"))
	write(t, filepath.Join(brewed, "bin", "zkServer"))
	linked := t.TempDir()
	if err := os.Symlink(filepath.Join(home, "bin", "zkServer.sh"), filepath.Join(linked, "zkServer.sh")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, home, path, classes, says string }{
		{"at home", home, "", filepath.Join(home, "lib", "*"), ""},
		{"nobody's home", t.TempDir(), "", "", "ZOOKEEPER_HOME is "},
		{"its script", "", filepath.Join(home, "bin"), filepath.Join(home, "lib", "*"), ""},
		{"a link to its script", "", linked, filepath.Join(home, "lib", "*"), ""},
		{"Homebrew's", "", filepath.Join(brewed, "bin"), filepath.Join(brewed, "libexec", "lib", "*"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("JAVA_HOME", "")
			t.Setenv("ZOOKEEPER_HOME", c.home)
			t.Setenv("PATH", filepath.Dir(java)+":"+c.path)
			found, err := Find()
			if c.says != "" {
				var missing *daemon.MissingError
				if !errors.As(err, &missing) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
					t.Error(err)
				}
				return
			}
			if err != nil || found.Java != java || found.Classes != c.classes {
				t.Errorf("%+v %v", found, err)
			}
		})
	}
	t.Run("no Java", func(t *testing.T) {
		t.Setenv("JAVA_HOME", "")
		t.Setenv("PATH", linked)
		if _, err := Find(); err == nil || !strings.Contains(err.Error(), "default-jre-headless") {
			t.Error(err)
		}
	})
}

// write writes a program that does nothing.
func write(t *testing.T, file string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain for " + what)
		}
	}
}
