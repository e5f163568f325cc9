package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/daemon"
)

// hostOf makes a host of the given number of members, and skips the test where etcd is missing.
func hostOf(t *testing.T, members int) *Host {
	t.Helper()
	binary, err := Find(t.Context())
	var missing *daemon.MissingError
	if errors.As(err, &missing) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(Options{Binary: binary, Members: members, Dir: t.TempDir()})
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

// cluster starts members.
func cluster(t *testing.T, members int) []real.ManagedServer {
	t.Helper()
	h := hostOf(t, members)
	found := make([]real.ManagedServer, members)
	var starting sync.WaitGroup
	for i := range members {
		starting.Go(func() {
			s, err := h.Start(context.WithoutCancel(t.Context()), real.ServerSpec{Name: fmt.Sprintf("n%d-0", i+1), Node: fmt.Sprintf("n%d", i+1), Password: "secret"})
			if err != nil {
				t.Error(err)
				return
			}
			found[i] = s.(real.ManagedServer)
		})
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return found
}

func TestClusterLivesOnWithoutOne(t *testing.T) {
	members := cluster(t, 3)
	if err := members[0].Kill(); err != nil {
		t.Fatal(err)
	}
	other := members[1].(*server)
	waitFor(t, "a majority without the first", func() bool { return other.healthy(t.Context()) })
	if err := members[2].Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if other.healthy(ctx) {
		t.Error("one of three serves reads")
	}
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
}

func TestServersAskForAPassword(t *testing.T) {
	members := cluster(t, 1)
	response, err := http.Post("http://"+members[0].Addr()+"/v3/kv/range", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode == http.StatusOK {
		t.Error("who says nothing of a password may read")
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
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain for " + what)
		}
	}
}

// TestMemberCutOff checks that a member without connections to the others leaves the majority,
// leader or not, and rejoins it afterwards.
func TestMemberCutOff(t *testing.T) {
	if !(Service{}).Clusters() {
		t.Skip("members can't be cut off here")
	}
	members := cluster(t, 3)
	serves := func(i int) bool {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		return members[i].(*server).healthy(ctx)
	}
	for _, i := range []int{0, 2} { // the leader, and a follower of the next one
		h, others := members[i].(*server).host, []int{(i + 1) % 3, (i + 2) % 3}
		name := fmt.Sprintf("n%d", i+1)
		for _, other := range others {
			if err := h.Part(name, fmt.Sprintf("n%d", other+1)); err != nil {
				t.Fatal(err)
			}
		}
		waitFor(t, "the others to serve without "+name, func() bool { return serves(others[0]) && serves(others[1]) })
		waitFor(t, name+" to see that it is alone", func() bool { return !serves(i) })
		for began := time.Now(); time.Since(began) < 3*election; {
			if serves(i) {
				t.Fatalf("%s serves reads, though it is cut off", name)
			}
		}
		if !serves(others[0]) || !serves(others[1]) {
			t.Errorf("without %s the others don't serve any more", name)
		}
		for _, other := range others {
			if err := h.Rejoin(name, fmt.Sprintf("n%d", other+1)); err != nil {
				t.Fatal(err)
			}
		}
		waitFor(t, name+" to be one of them again", func() bool { return serves(i) })
	}
}
