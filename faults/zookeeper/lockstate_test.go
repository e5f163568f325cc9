package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real"
)

// TestWhoseALockIs checks that the node with the smallest number holds the lock, with its data as
// the owner, while its session lasts. Members that were stopped catch up when they continue.
func TestWhoseALockIs(t *testing.T) {
	const (
		ofA = "A-0123456789abcdef"
		ofB = "B-fedcba9876543210"
	)
	s := newStageFor(t, faults.Lock{Keys: []string{"lock"}, Query: "/$1"}, 3)
	a, b := s.connect("A"), s.connect("B")
	s.Begin()
	acl := zk.AuthACL(zk.PermAll)
	s.Must(func() error { _, err := a.Create("/lock", nil, 0, acl); return err })
	s.Stands("nothing below it", "")
	var node string
	create := func(c *zk.Conn, prefix, owner string, flags int32) func() error {
		return func() (err error) {
			node, err = c.Create("/lock/"+prefix, []byte(owner), flags, acl)
			return err
		}
	}
	s.Must(create(b, "z-", ofB, zk.FlagEphemeral|zk.FlagSequence))
	s.Stands("taken", `
		n1: B (B1) by command B
		n2: B (B1) by command B
		n3: B (B1) by command B`)
	s.Must(func() error { return a.Delete(node, -1) })
	s.Stands("taken away, though B's session lasts", `
		n1: free by command A
		n2: free by command A
		n3: free by command A`)
	s.Must(create(b, "z-", ofB, zk.FlagEphemeral|zk.FlagSequence))
	s.Events = nil
	s.Must(create(a, "a-", ofA, zk.FlagSequence))
	first := node
	s.Stands("one more who wants it", "")
	s.Inject(faults.PauseNode{Node: "n3"})
	done := s.Start(func() error { b.Close(); return nil })
	if err := s.End(done); err != nil {
		t.Fatal(err)
	}
	s.Await("it is A's", func() bool { return strings.Contains(fmt.Sprint(s.Events), "A1") })
	s.Events = nil // B's session has ended, of which he was told, or was not
	s.Inject(faults.ResumeNode{Node: "n3"})
	s.Await("n3 to hear of it", func() bool { return strings.Contains(fmt.Sprint(s.Events), string(checker.ByReplication)) })
	s.Stands("n3 goes on", "n3: A (A1) by replication")
	s.Must(func() error { return a.Delete(first, -1) })
	s.Stands("given back", `
		n1: free by command A
		n2: free by command A
		n3: free by command A`)
	s.Must(create(a, "y-", ofA, zk.FlagSequence))
	s.Events = nil
	s.Must(func() error {
		_, err := a.Multi(&zk.DeleteRequest{Path: node, Version: -1}, &zk.DeleteRequest{Path: "/lock", Version: -1})
		return err
	})
	s.Stands("given back, and the place with it", `
		n1: free by command A
		n2: free by command A
		n3: free by command A`)
	s.Must(func() error { _, err := a.Create("/lock", nil, 0, acl); return err })
	s.Must(create(a, "x-", "somebody", zk.FlagSequence))
	s.Stands("of whom nobody heard", `
		n1: (somebody) by command A
		n2: (somebody) by command A
		n3: (somebody) by command A`)
}

// A lock may be right below the root, where ZooKeeper has something of its own; and what is no path can't be asked.
func TestPathsOfLocks(t *testing.T) {
	members := ensemble(t, 1)
	look := func(query string) (seen real.LockState, err error) {
		waitFor(t, "it to say what it knows of "+query, func() bool {
			seen, err = members[0].Inspect(t.Context(), query, "lock")
			return err == nil || errors.Is(err, real.ErrQuery)
		})
		return seen, err
	}
	for _, query := range []string{"/", "/nowhere/$1", "/$1"} {
		if seen, err := look(query); err != nil || len(seen.Holders) != 0 {
			t.Errorf("%s: %v %v", query, seen, err)
		}
	}
	for _, query := range []string{"$1", "/$1/", "//$1", ""} {
		if _, err := look(query); !errors.Is(err, real.ErrQuery) {
			t.Errorf("%q: %v", query, err)
		}
	}
}

// TestLookWithoutAMajority checks that a member without a majority gives no answer, and gets only a
// short time.
func TestLookWithoutAMajority(t *testing.T) {
	members := ensemble(t, 3)
	look := func() (real.LockState, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		return members[0].Inspect(ctx, "/$1", "lock")
	}
	waitFor(t, "the first to say what it knows", func() bool {
		_, err := look()
		return err == nil
	})
	for _, other := range members[1:] {
		if err := other.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the first to be alone", func() bool {
		_, err := look()
		return err != nil
	})
	for _, other := range members[1:] {
		if err := other.Restart(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the first to say again what it knows", func() bool {
		seen, err := look()
		return err == nil && len(seen.Holders) == 0
	})
}

// TestLookThatIsCutShort checks that a member that fails during an inspection gives no answer.
func TestLookThatIsCutShort(t *testing.T) {
	conn, _, err := zk.Connect([]string{"127.0.0.1:1"}, time.Second, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := without(conn, "/locks/lock"); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Errorf("no place: %v", err)
	}
	if _, err := inspect(conn, "/locks/lock"); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Errorf("a look: %v", err)
	}
}
