package zookeeper

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// stands compares how the lock stood on the members since the last time, one change a line.
func (s *stage) stands(what, want string) {
	s.t.Helper()
	var b strings.Builder
	for _, e := range s.events {
		if e.Kind == checker.State {
			whose := "free"
			if e.Owner != "" || e.Value != "" {
				whose = strings.TrimSpace(fmt.Sprintf("%s (%s)", e.Owner, e.Value))
			}
			fmt.Fprintf(&b, "%s: %s by %s\n", e.Node, whose, strings.TrimSpace(string(e.Cause)+" "+e.Client))
		}
	}
	s.events = nil
	want = strings.ReplaceAll(strings.TrimSpace(want), "\t", "")
	if got := strings.TrimSpace(b.String()); got != want {
		s.t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

// The lock is as the ensemble has it: his whose node has the smallest number, by what is in it, as long as his session lasts. Members that
// stood still hear of it when they go on.
func TestWhoseALockIs(t *testing.T) {
	const (
		ofA = "A-0123456789abcdef"
		ofB = "B-fedcba9876543210"
	)
	s := newStageFor(t, faults.Lock{Keys: []string{"lock"}, Query: "/$1"}, 3)
	a, b := s.connect("A"), s.connect("B")
	s.Begin()
	acl := zk.AuthACL(zk.PermAll)
	s.must(func() error { _, err := a.Create("/lock", nil, 0, acl); return err })
	s.stands("nothing below it", "")
	var node string
	create := func(c *zk.Conn, prefix, owner string, flags int32) func() error {
		return func() (err error) {
			node, err = c.Create("/lock/"+prefix, []byte(owner), flags, acl)
			return err
		}
	}
	s.must(create(b, "z-", ofB, zk.FlagEphemeral|zk.FlagSequence))
	s.stands("taken", `
		n1: B (B1) by command B
		n2: B (B1) by command B
		n3: B (B1) by command B`)
	s.must(create(a, "a-", ofA, zk.FlagSequence))
	first := node
	s.stands("one more who wants it", "")
	s.apply(faults.PauseNode{Node: "n3"})
	done := s.begin(func() error { b.Close(); return nil })
	if err := s.end(done); err != nil {
		t.Fatal(err)
	}
	s.await("it is A's", func() bool { return strings.Contains(fmt.Sprint(s.events), "A1") })
	s.events = nil // B's session has ended, of which he was told, or was not
	s.apply(faults.ResumeNode{Node: "n3"})
	s.await("n3 to hear of it", func() bool { return strings.Contains(fmt.Sprint(s.events), string(checker.ByReplication)) })
	s.stands("n3 goes on", "n3: A (A1) by replication")
	s.must(func() error { return a.Delete(first, -1) })
	s.stands("given back", `
		n1: free by command A
		n2: free by command A
		n3: free by command A`)
	s.must(create(a, "x-", "somebody", zk.FlagSequence))
	s.stands("of whom nobody heard", `
		n1: (somebody) by command A
		n2: (somebody) by command A
		n3: (somebody) by command A`)
}

// Who has lost the majority says nothing, and is not waited for.
func TestLookWithoutAMajority(t *testing.T) {
	members := ensemble(t, 3)
	waitFor(t, "the first to say what it knows", func() bool {
		_, err := members[0].Look(t.Context(), "/$1", "lock")
		return err == nil
	})
	for _, other := range members[1:] {
		if err := other.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the first to be alone", func() bool {
		_, err := members[0].Look(t.Context(), "/$1", "lock")
		return err != nil
	})
	for _, other := range members[1:] {
		if err := other.Restart(t.Context(), false); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the first to say again what it knows", func() bool {
		seen, err := members[0].Look(t.Context(), "/$1", "lock")
		return err == nil && len(seen.Holders) == 0
	})
}
