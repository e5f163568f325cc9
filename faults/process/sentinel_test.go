//go:build unix

package process_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/process/processtest"
	"github.com/lockfault/lockfault/faults/real"
)

// Three sentinels promote the replica of a primary that was killed, go-redis
// finds it, and the old primary follows it when it comes back.
func TestSentinelsFailOver(t *testing.T) {
	dir := t.TempDir()
	h := processtest.Host(t, process.Options{Dir: dir})
	ctx := t.Context()
	primary := start(t, h, real.ServerSpec{Name: "n1"})
	replica := start(t, h, real.ServerSpec{Name: "n1-r1"})
	follow(t, replica, primary)
	begun := time.Now()
	sentinels, err := h.StartSentinels(ctx, 3, "n1", primary.Addr(), password)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("three sentinels agree after %v", time.Since(begun))
	if len(sentinels) != 3 {
		t.Fatalf("the sentinels: %q", sentinels)
	}
	naked := redis.NewSentinelClient(&redis.Options{Addr: sentinels[0], MaxRetries: -1})
	defer naked.Close()
	if err := naked.GetMasterAddrByName(ctx, "n1").Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without a password: %v", err)
	}

	c := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "n1", SentinelAddrs: sentinels, SentinelPassword: password, Password: password,
		// When as many dials as the pool is large have failed, go-redis
		// dials only once a second.
		DialerRetries: 1, PoolSize: 1000, ContextTimeoutEnabled: true,
	})
	defer c.Close()
	if err := c.Set(ctx, "before", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	p := client(t, primary.Addr())
	eventually(t, "the replica has the key", func() bool {
		return client(t, replica.Addr()).Exists(ctx, "before").Val() == 1
	})
	process := pid(t, p)
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if !gone(process) {
		t.Error("the primary is left")
	}
	begun = time.Now()
	r := client(t, replica.Addr())
	eventually(t, "the replica is promoted", func() bool {
		return strings.Contains(r.Info(ctx, "replication").Val(), "role:master")
	})
	t.Logf("promoted %v after the kill", time.Since(begun))
	eventually(t, "the failover client writes", func() bool { return c.Set(ctx, "after", "v", 0).Err() == nil })
	t.Logf("the failover client writes %v after the kill", time.Since(begun))
	if n, err := r.Exists(ctx, "before", "after").Result(); err != nil || n != 2 {
		t.Errorf("the promoted replica has %d of both keys, %v", n, err)
	}

	if err := primary.Restart(ctx, false); err != nil {
		t.Fatal(err)
	}
	inSync(t, primary, replica)
	eventually(t, "the old primary has the new key", func() bool {
		return client(t, primary.Addr()).Exists(ctx, "after").Val() == 1
	})

	logs := t.TempDir()
	if err := h.CopyLogs(logs); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"n1", "n1-r1", "n1-s1", "n1-s2", "n1-s3"} {
		if info, err := os.Stat(filepath.Join(logs, name+".log")); err != nil || info.Size() == 0 {
			t.Errorf("the log of %s: %v", name, err)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for _, addr := range sentinels {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Errorf("a sentinel is left: %v", err)
			continue
		}
		l.Close()
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}

func TestSentinelsRefuse(t *testing.T) {
	primary := start(t, processtest.Host(t, process.Options{}), real.ServerSpec{Name: "n1"})
	h := processtest.Host(t, process.Options{StartLimit: 2 * time.Second}) // for one that has another password
	for _, c := range []struct {
		n                      int
		master, addr, password string
		want                   string
	}{
		{0, "n1", primary.Addr(), password, "0 of them"},
		{1, "n1", "nowhere", password, "the primary's address"},
		{1, "../n1", primary.Addr(), password, "can't name"},
		{1, "n1", primary.Addr(), "", "must have a password"},
		{1, "n2", primary.Addr(), "another", "n2"},
	} {
		_, err := h.StartSentinels(t.Context(), c.n, c.master, c.addr, c.password)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d sentinels of %s at %s: %v", c.n, c.master, c.addr, err)
		}
	}
}
