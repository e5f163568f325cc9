package etcd

import (
	"context"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockfault/lockfault/faults/real"
)

// TestLook checks that every member reports the oldest key below the prefix as the holder, and the
// version of its own state.
func TestLook(t *testing.T) {
	members := cluster(t, 3)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{members[0].Addr()}, Username: user, Password: "secret", DialTimeout: startLimit})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := t.Context()
	lease, err := client.Grant(ctx, 60)
	if err != nil {
		t.Fatal(err)
	}
	put := func(key, owner string, lease clientv3.LeaseID) func() error {
		return func() error {
			_, err := client.Put(ctx, key, owner, clientv3.WithLease(lease))
			return err
		}
	}
	versions := make([]int64, len(members))
	for _, step := range []struct {
		what string
		do   func() error
		want string // on every member
	}{
		{"nothing", func() error { return nil }, "[]"},
		{"beside it", put("lockfault", "A", 0), "[]"},
		{"B's", put("lock/b", "B", lease.ID), "[{B 0s expiry }]"},
		{"A behind B", put("lock/a", "A", 0), "[{B 0s expiry }]"},
		{"B's lease ends", func() error { _, err := client.Revoke(ctx, lease.ID); return err }, "[{A 0s  }]"},
		{"nobody's", func() error { _, err := client.Delete(ctx, "lock/a"); return err }, "[]"},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		for i, member := range members {
			var seen real.LockState
			waitFor(t, fmt.Sprintf("%s: member %d to say %s, and not %v", step.what, i+1, step.want, seen.Holders), func() bool {
				seen, err = member.(real.LockInspector).Inspect(ctx, "$1/", "lock")
				for i := range seen.Holders {
					if h := &seen.Holders[i]; (h.Bond != "") != (h.Ends != "") {
						t.Errorf("%s: %+v", step.what, h)
					}
					seen.Holders[i].Bond = ""
				}
				return err == nil && fmt.Sprint(seen.Holders) == step.want
			})
			if seen.Version < versions[i] {
				t.Errorf("%s: member %d knows less than before: %d, then %d", step.what, i+1, versions[i], seen.Version)
			}
			versions[i] = seen.Version
		}
	}
	if versions[0] < 5 {
		t.Errorf("versions are %v, after five writes", versions)
	}

	// Who has stopped, or ended, knows nothing; one that is alone says what it knows.
	look := func(i int) (real.LockState, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		return members[i].(real.LockInspector).Inspect(ctx, "$1/", "lock")
	}
	if err := members[1].Pause(); err != nil {
		t.Fatal(err)
	}
	if err := members[2].Kill(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "member 1 to say what it knows", func() bool { _, err := look(0); return err == nil })
	for i := 1; i < 3; i++ {
		if seen, err := look(i); err == nil {
			t.Errorf("member %d says %v", i+1, seen)
		}
	}
	if err := members[1].Resume(); err != nil {
		t.Fatal(err)
	}
	if err := members[2].Restart(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 3; i++ {
		waitFor(t, fmt.Sprintf("member %d to say again what it knows", i+1), func() bool { _, err := look(i); return err == nil })
	}
}
