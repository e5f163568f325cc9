package harness_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/strategies"
)

// maker returns a strategy whose New does that first, and then makes a lock of one
// SET.
func maker(first func(strategies.Env) error) strategies.Strategy {
	return strategies.Strategy{Name: "maker", New: func(env strategies.Env) (strategies.Lock, error) {
		if err := first(env); err != nil {
			return nil, err
		}
		return setLock{env}, nil
	}}
}

type setLock struct{ env strategies.Env }

func (l setLock) Acquire(ctx context.Context) error {
	for {
		won, err := l.env.Nodes[0].SetNX(ctx, l.env.Key, l.env.Owner, l.env.TTL).Result()
		if won || err != nil {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return strategies.ErrNotAcquired
		}
	}
}

func (l setLock) Release(ctx context.Context) error {
	return l.env.Nodes[0].Del(ctx, l.env.Key).Err()
}

func ping(env strategies.Env) error { return env.Nodes[0].Ping(context.Background()).Err() }

// requests returns the commands of a client that came to a server, but for those that
// set a connection up.
func requests(h checker.History, client string) (list []string) {
	for _, e := range h.Events {
		if word, _, _ := strings.Cut(e.Command, " "); e.Kind == checker.Request && e.Client == client && word != "HELLO" {
			list = append(list, word)
		}
	}
	return list
}

// What New asks servers is answered, and no more a part of the history than the
// warm-up is: neither the commands nor the time.
func TestNewMayTalk(t *testing.T) {
	const script = "clients A B\nA acquire\nbegin B acquire\nwait 1s\nA release\nB release\nexpect none\n"
	silent := play(t, maker(func(strategies.Env) error { return nil }), script)
	talks := maker(func(env strategies.Env) error {
		ctx, rdb := context.Background(), env.Nodes[0]
		time.Sleep(3 * time.Second) // which nobody counts
		for _, err := range []error{
			rdb.Ping(ctx).Err(), rdb.ScriptLoad(ctx, "return 1").Err(), rdb.Time(ctx).Err(),
			rdb.SetNX(ctx, env.Key+":fence", 0, 0).Err(), rdb.Publish(ctx, "hello", env.Owner).Err(),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	first := play(t, talks, script)
	if silent.Status != harness.Held || first.Status != harness.Held {
		t.Fatalf("%s %s, %s %s", silent.Status, silent.Reason, first.Status, first.Reason)
	}
	for _, client := range []string{"A", "B"} {
		if got, want := requests(first.History, client), requests(silent.History, client); !slices.Equal(got, want) {
			t.Errorf("%s sent %q, want %q", client, got, want)
		}
	}
	if diff := (first.Virtual - silent.Virtual).Abs(); diff > 200*time.Millisecond { // B's pauses begin at another time
		t.Errorf("it took %v with a New that talks, and %v without", first.Virtual, silent.Virtual)
	}
	if e := first.History.Events[0]; e.Time != 0 || e.Kind != checker.Step {
		t.Errorf("the history begins with %+v", e)
	}
	second := play(t, talks, script)
	if differs := differing(first.History, second.History); differs != "" {
		t.Errorf("the same seed gave two histories: %s", differs)
	}
}

// hearing is a lock that listens for as long as it lives.
type hearing struct {
	setLock
	messages *redis.PubSub
	ended    chan struct{}
}

func (l hearing) Close() error {
	err := l.messages.Close()
	<-l.ended
	return err
}

// A goroutine that New starts and that subscribes hears what is said in the script,
// and its SUBSCRIBE came before: New doesn't wait for the answer.
func TestNewMaySubscribe(t *testing.T) {
	var heard []string
	listens := strategies.Strategy{Name: "listens", New: func(env strategies.Env) (strategies.Lock, error) {
		l := hearing{setLock: setLock{env}, messages: env.Nodes[0].Subscribe(context.Background(), "ch"), ended: make(chan struct{})}
		go func() {
			defer close(l.ended)
			for m := range l.messages.Channel() {
				if strings.HasPrefix(env.Owner, "A") && env.Key == harness.LockKey {
					heard = append(heard, m.Payload)
				}
			}
		}()
		return publishing{l}, nil
	}}
	const script = "clients A B\nB acquire\nB release\nwait 1s\nexpect none\n"
	outcome := play(t, listens, script)
	if outcome.Status != harness.Held {
		t.Fatal(outcome.Status, outcome.Reason)
	}
	// The warm-up's locks publish too.
	if len(heard) == 0 || heard[len(heard)-1] != harness.LockKey {
		t.Errorf("A heard %q", heard)
	}
	for _, client := range []string{"A", "B"} {
		if got := requests(outcome.History, client); slices.Contains(got, "SUBSCRIBE") {
			t.Errorf("the history has what New sent: %q", got)
		}
	}
}

type publishing struct{ hearing }

func (l publishing) Release(ctx context.Context) error {
	return errors.Join(l.hearing.Release(ctx), l.env.Nodes[0].Publish(ctx, "ch", l.env.Key).Err())
}

// What a New comes to is said in a sentence that names it.
func TestNewThatMakesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		first func(strategies.Env) error
		want  []string
	}{
		"panics": {
			func(strategies.Env) error { panic("out of luck") },
			[]string{"harness: client A: maker can't be made: its New panicked: out of luck", "making_test.go"},
		},
		"fails": {
			func(env strategies.Env) error { return env.Nodes[0].Do(context.Background(), "NONSENSE").Err() },
			[]string{"harness: client A: maker can't be made: ERR unknown command"},
		},
		"never returns": {
			func(strategies.Env) error { select {} },
			[]string{"harness: client A: maker can't be made: its New still runs after ", "making_test.go"},
		},
		"waits for what never comes": {
			func(env strategies.Env) error { return env.Nodes[0].BLPop(context.Background(), 0, "nothing").Err() },
			[]string{"harness: client A: maker can't be made: its New still runs after "},
		},
		"never tires": {
			func(strategies.Env) error {
				for {
					time.Sleep(time.Millisecond)
				}
			},
			[]string{"harness: client A: maker can't be made: its New still runs after ", "making_test.go"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := play(t, maker(c.first), "clients A B\nA acquire\nA release\nexpect none\n")
			if outcome.Status != harness.Error {
				t.Fatalf("status %s, want error", outcome.Status)
			}
			for _, want := range c.want {
				if !strings.Contains(outcome.Reason, want) {
					t.Errorf("the reason doesn't say %q:\n%s", want, outcome.Reason)
				}
			}
		})
	}
	for _, nothing := range []strategies.Lock{nil, (*embedding)(nil)} {
		neither := strategies.Strategy{Name: "maker", New: func(strategies.Env) (strategies.Lock, error) { return nothing, nil }}
		if outcome := play(t, neither, simple); !strings.Contains(outcome.Reason, "can't be made: its New returned neither a lock nor an error") {
			t.Errorf("%#v: %s: %s", nothing, outcome.Status, outcome.Reason)
		}
	}
}

// embedding is a lock whose pointer may be nil.
type embedding struct{ strategies.Lock }

// A client that is restarted makes its lock under the faults of that moment. What
// comes of it is recorded, or the cell's error.
func TestNewOfARestartedClient(t *testing.T) {
	const head = "clients A B\nA crash\n"
	waits := func(env strategies.Env) error {
		if env.Nodes[0].Exists(context.Background(), "begun").Val() == 0 {
			return nil
		}
		return env.Nodes[0].BLPop(context.Background(), 0, "nothing").Err()
	}
	begins := func(env strategies.Env) error { // B's release says that the script has begun
		return waits(env)
	}
	for name, c := range map[string]struct {
		first  func(strategies.Env) error
		script string
		status harness.Status
		says   string
		sent   []string // by A
	}{
		"nothing is in its way": {
			ping, "A restart\nA acquire\nA release\n", harness.Held, "", []string{"PING", "SET", "DEL"},
		},
		"nobody waits for it": {
			ping, "A restart\nwait 1s\n", harness.Held, "", []string{"PING"},
		},
		"the node is down": {
			ping, "n1 crash\nA restart\nA acquire\n", harness.Error, "client A, restarted in line 4: maker can't be made: dial ", nil,
		},
		"it is cut off": {
			ping, "partition A from n1\nA restart\nA acquire\n", harness.Error, "client A, restarted in line 4: maker can't be made: ", nil,
		},
		"it is cut off, and nobody waits for it": {
			ping, "partition A from n1\nA restart\nwait 1ttl\n", harness.Error, "client A, restarted in line 4: maker can't be made: ", nil,
		},
		"the cut is mended in time": {
			ping, "n1 pause\nA restart\nwait 0.01ttl\nn1 resume\nA acquire\nA release\n", harness.Held, "", []string{"PING", "SET", "DEL"},
		},
		"its command is held": {
			ping, "hold A before PING\nA restart\nawait A held\nwait 0.01ttl\npass A\nA acquire\nA release\n", harness.Held, "",
			[]string{"PING", "SET", "DEL"},
		},
		"it is paused meanwhile": {
			ping, "hold A before PING\nA restart\nawait A held\nA pause\npass A\nwait 0.01ttl\nA acquire\nA resume\nwait 0.1ttl\nA release\n", harness.Held, "",
			[]string{"PING", "SET", "DEL"},
		},
		"it crashes again meanwhile": {
			ping, "hold A before PING\nA restart\nawait A held\nA crash\nA restart\npass A\nA acquire\nA release\n", harness.Held, "",
			[]string{"PING", "PING", "SET", "DEL"},
		},
		"it lives already": {
			ping, "A restart\nA restart\nA acquire\nA release\n", harness.Held, "", []string{"PING", "SET", "DEL"},
		},
		"it never returns": {
			begins, "B acquire\nB release\nA restart\nA acquire\n", harness.Error, "client A, restarted in line 5: maker can't be made: its New still runs after ", nil,
		},
		"it never returns, and nobody waits for it": {
			begins, "B acquire\nB release\nA restart\nwait 10ttl\n", harness.Error, "client A, restarted in line 5: maker can't be made: its New still runs after ", nil,
		},
		"it has not returned when the script ends": {
			begins, "B acquire\nB release\nA restart\nwait 0.01ttl\n", harness.Held, "", []string{"EXISTS", "BLPOP"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			strategy := maker(c.first)
			of := strategy.New
			strategy.New = func(env strategies.Env) (strategies.Lock, error) {
				lock, err := of(env)
				if err != nil {
					return nil, err
				}
				return marking{lock.(setLock)}, nil
			}
			outcome := play(t, strategy, head+c.script+"expect none\n")
			if outcome.Status != c.status || !strings.Contains(outcome.Reason, c.says) {
				t.Fatalf("%s: %s", outcome.Status, outcome.Reason)
			}
			if got := requests(outcome.History, "A"); c.status == harness.Held && !slices.Equal(got, c.sent) {
				t.Errorf("A sent %q, want %q", got, c.sent)
			}
			again := play(t, strategy, head+c.script+"expect none\n")
			if differs := differing(outcome.History, again.History); differs != "" {
				t.Errorf("the same seed gave two histories: %s", differs)
			}
		})
	}
}

// marking is a lock whose holder leaves a mark.
type marking struct{ setLock }

func (l marking) Release(ctx context.Context) error {
	if strings.HasPrefix(l.env.Owner, "B") && l.env.Key == harness.LockKey {
		return errors.Join(l.setLock.Release(ctx), l.env.Nodes[0].Set(ctx, "begun", 1, 0).Err())
	}
	return l.setLock.Release(ctx)
}

// What New sends without waiting for the answer still comes before the history.
func TestNewMayLeaveItUnderWay(t *testing.T) {
	s := strategies.Strategy{Name: "hasty", New: func(env strategies.Env) (strategies.Lock, error) {
		go func() { _ = ping(env) }()
		return lock{fine, fine}, nil
	}}
	outcome := play(t, s, "clients A\nA acquire\nwait 1s\nA release\nexpect none\n")
	if got := requests(outcome.History, "A"); outcome.Status != harness.Held || len(got) > 0 {
		t.Errorf("%s %s; the history has what New sent: %q", outcome.Status, outcome.Reason, got)
	}
}

// A lock that comes when everybody has left is closed all the same.
func TestNewThatComesTooLate(t *testing.T) {
	var closed atomic.Int32
	s := strategies.Strategy{Name: "late", New: func(env strategies.Env) (strategies.Lock, error) {
		if env.Nodes[0].Exists(context.Background(), "begun").Val() == 1 {
			_ = env.Nodes[0].BLPop(context.Background(), 0, "nothing") // until the world ends
		}
		l := lasting{marking{setLock{env}}, make(chan int), make(chan int), &closed}
		go func() {
			defer close(l.ended)
			<-l.ends
		}()
		return l, nil
	}}
	outcome := play(t, s, "clients A B\nA crash\nB acquire\nB release\nA restart\nwait 0.01ttl\nexpect none\n")
	if outcome.Status != harness.Held {
		t.Fatal(outcome.Status, outcome.Reason)
	}
	if n := closed.Load(); n != 5 { // of A, of B, of their warm-ups, and of A's next life
		t.Errorf("%d locks were closed, want 5", n)
	}
}

// The warm-up's lock is closed with it: what it polls in the background reaches no history.
func TestTheWarmUpEnds(t *testing.T) {
	polling := strategies.Strategy{Name: "polling", New: func(env strategies.Env) (strategies.Lock, error) {
		ctx, end := context.WithCancel(context.Background())
		ended := make(chan int)
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				_ = env.Nodes[0].PTTL(ctx, env.Key).Err()
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		}()
		return closing{setLock{env}, func() { end(); <-ended }}, nil
	}}
	outcome := play(t, polling, "clients A\nA acquire\nwait 1s\nA release\nexpect none\n")
	if outcome.Status != harness.Held {
		t.Fatal(outcome.Status, outcome.Reason)
	}
	polls := slices.DeleteFunc(requests(outcome.History, "A"), func(r string) bool { return !strings.HasPrefix(r, "PTTL") })
	if len(polls) < 9 || slices.ContainsFunc(polls, func(r string) bool { return strings.Contains(r, "warm-up") }) {
		t.Errorf("the history has the polls %q, want those of the script's lock", polls)
	}
}

// closing is a lock with a goroutine that end ends.
type closing struct {
	strategies.Lock
	end func()
}

func (c closing) Close() error { c.end(); return nil }

type lasting struct {
	marking
	ends, ended chan int
	closed      *atomic.Int32 // by the client that leaves and by the New that comes too late, at once
}

func (l lasting) Close() error {
	close(l.ends)
	<-l.ended
	l.closed.Add(1)
	return nil
}

// A restarted client doesn't warm up, and so makes no lock for that.
func TestARestartedClientMakesOneLock(t *testing.T) {
	var made []string
	s := maker(func(env strategies.Env) error {
		made = append(made, fmt.Sprintf("%.1s %s", env.Owner, env.Key))
		return nil
	})
	if outcome := play(t, s, "clients A\nA crash\nA restart\nA acquire\nA release\nexpect none\n"); outcome.Status != harness.Held {
		t.Fatal(outcome.Status, outcome.Reason)
	}
	if want := []string{"A lock", "A lock:warm-up:A", "A lock"}; !slices.Equal(made, want) {
		t.Errorf("made %q, want %q", made, want)
	}
}

// What New leaves in the lock's key is nobody's: who first touches it afterwards has
// not put it there.
func TestNewMayUseTheKey(t *testing.T) {
	s := strategies.Strategy{Name: "semaphore", New: func(env strategies.Env) (strategies.Lock, error) {
		rdb := env.Nodes[0]
		if err := rdb.HSetNX(context.Background(), env.Key, "free", 1).Err(); err != nil {
			return nil, err
		}
		return lock{
			func(ctx context.Context) error { return rdb.Expire(ctx, env.Key+":other", time.Second).Err() }, fine,
		}, nil
	}}
	outcome := play(t, s, simple)
	if outcome.Status == harness.Error {
		t.Fatal(outcome.Reason)
	}
	for _, e := range outcome.History.Events {
		if e.Kind == checker.State {
			t.Errorf("the history says that %s did what New had done: %+v", e.Client, e)
		}
	}
}
