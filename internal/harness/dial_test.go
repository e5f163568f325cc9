package harness_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/strategies"
)

// dialling is a lock that says by itself what goes over a connection to each node,
// and returns what it dialled.
type dialling struct {
	env   strategies.Env
	conns []net.Conn
}

func diallers(nodes int) strategies.Strategy {
	return strategies.Strategy{Name: "dialler", Nodes: nodes, New: func(env strategies.Env) (strategies.Lock, error) {
		l := &dialling{env: env}
		for i := range env.Nodes {
			conn, err := env.Dial(context.Background(), "tcp", env.Addr(i))
			if err != nil {
				return nil, err
			}
			l.conns = append(l.conns, conn)
		}
		return l, nil
	}}
}

// ask sends a line to each node, and returns what they answer.
func (l *dialling) ask(line string) (answers []string, err error) {
	for i, conn := range l.conns {
		if err := conn.SetDeadline(time.Now().Add(l.env.ReadTimeout())); err != nil {
			return nil, err
		}
		if _, err := fmt.Fprintf(conn, "%s\r\n", strings.ReplaceAll(line, "NODE", l.env.Addr(i))); err != nil {
			return nil, err
		}
		answer, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil {
			return nil, err
		}
		answers = append(answers, strings.TrimSpace(answer))
	}
	return answers, nil
}

func (l *dialling) Acquire(ctx context.Context) error {
	for {
		answers, err := l.ask(fmt.Sprintf("SET %s %s@NODE NX PX %d", l.env.Key, l.env.Owner, l.env.TTL.Milliseconds()))
		if err != nil || answers[0] == "+OK" {
			return err
		}
		if deadline, _ := ctx.Deadline(); time.Until(deadline) < 100*time.Millisecond {
			return strategies.ErrNotAcquired
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (l *dialling) Release(context.Context) error {
	_, err := l.ask("DEL " + l.env.Key)
	return err
}

// Close leaves the connections to the world.
func (l *dialling) Close() error { return nil }

// What goes over a connection of Env.Dial is the client's, to the node that the
// address names: recorded, and befallen by faults.
func TestDialledConnections(t *testing.T) {
	for name, c := range map[string]struct {
		nodes  int
		script string
		want   []string // of A: what came to a node, and what came of its operations
	}{
		"nothing is in its way": {1, "A acquire\nA release\n", []string{"n1 SET", "acquire ok", "n1 DEL", "release ok"}},
		"each node has its own": {3, "A acquire\n", []string{"n1 SET", "n2 SET", "n3 SET", "acquire ok"}},
		"the gate":              {1, "hold A before SET\nbegin A acquire\nawait A held\nwait 0.01ttl\npass A\nawait A done\n", []string{"n1 SET", "acquire ok"}},
		"a reply is lost":       {1, "drop A after SET\nA acquire\n", []string{"n1 SET", "acquire unknown"}},
		"a partition":           {1, "partition A from n1\nA acquire\n", []string{"acquire unknown"}},
		"the node crashes":      {1, "n1 crash\nA acquire\n", []string{"acquire unknown"}},
		"it is reset":           {1, "reset A after SET\nA acquire\n", []string{"n1 SET", "acquire unknown"}},
		"the client crashes":    {1, "hold A before SET\nbegin A acquire\nawait A held\nA crash\nA restart\npass A\nwait 1s\nA release\n", []string{"n1 SET", "n1 DEL", "release ok"}},
		"it restarts cut off":   {1, "A crash\npartition A from n1\nA restart\nwait 1ttl\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			script := "clients A\n" + c.script + "expect none\n"
			if c.nodes > 1 {
				script = fmt.Sprintf("nodes %d\n", c.nodes) + script
			}
			outcome := play(t, diallers(c.nodes), script)
			if cut := name == "it restarts cut off"; cut != (outcome.Status == harness.Error) {
				t.Fatalf("%s: %s", outcome.Status, outcome.Reason)
			}
			var got []string
			for _, e := range outcome.History.Events {
				switch word, _, _ := strings.Cut(e.Command, " "); {
				case e.Client != "A":
				case e.Kind == checker.Request:
					got = append(got, e.Node+" "+word)
				case e.Kind == checker.Return:
					got = append(got, fmt.Sprintf("%s %s", e.Op, e.Result))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			again := play(t, diallers(c.nodes), script)
			if differs := differing(outcome.History, again.History); differs != "" {
				t.Errorf("the same seed gave two histories: %s", differs)
			}
		})
	}
}

// Somebody who waits on such a connection is set free when the client ends.
func TestDialledConnectionsEnd(t *testing.T) {
	var mu sync.Mutex
	var ends []error
	listens := strategies.Strategy{Name: "listens", New: func(env strategies.Env) (strategies.Lock, error) {
		conn, err := env.Dial(context.Background(), "tcp", env.Addr(0))
		if err != nil {
			return nil, err
		}
		go func() {
			_, err := io.Copy(io.Discard, conn)
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, err)
		}()
		return lock{fine, fine}, nil
	}}
	if outcome := play(t, listens, "clients A\nA acquire\nA crash\nA restart\nA acquire\nexpect none\n"); outcome.Status != harness.Held {
		t.Fatal(outcome.Status, outcome.Reason)
	}
	if len(ends) != 3 { // of A, of its warm-up, of its next life
		t.Errorf("%d connections ended, want 3", len(ends))
	}
	for _, err := range ends {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("one ended with %v", err)
		}
	}
}

// A go-redis client of the lock's own may be set up as it likes. In RESP3 it begins
// with HELLO 3, and what it subscribes to comes as pushes.
func TestGoRedisOfOnesOwn(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			var mu sync.Mutex
			heard := map[string]int{} // by the client
			own := strategies.Strategy{Name: "own", New: func(env strategies.Env) (strategies.Lock, error) {
				client := redis.NewClient(&redis.Options{Addr: env.Addr(0), Dialer: env.Dial, Protocol: protocol, MaxRetries: -1})
				l := owning{setLock{env}, client, client.Subscribe(context.Background(), "ch"), make(chan struct{})}
				l.env.Nodes = []redis.UniversalClient{client}
				go func() {
					defer close(l.ended)
					for m := range l.messages.Channel() {
						if env.Key == harness.LockKey && m.Payload == harness.LockKey {
							mu.Lock()
							heard[env.Owner[:1]]++
							mu.Unlock()
						}
					}
				}()
				return l, nil
			}}
			const script = "clients A B\nA acquire\nbegin B acquire\nwait 1s\nA release\nawait B done\nB release\nwait 1s\n" +
				"A crash\nA restart\nA acquire\nA release\nwait 1s\nexpect none\n"
			first := play(t, own, script)
			if first.Status != harness.Held {
				t.Fatal(first.Status, first.Reason)
			}
			// Before A crashes two releases are told, and one after that.
			if heard["A"] != 3 || heard["B"] != 3 {
				t.Errorf("heard %v, want 3 of each", heard)
			}
			hellos := 0
			for _, e := range first.History.Events {
				if e.Kind == checker.Request && strings.HasPrefix(e.Command, "HELLO 3") {
					hellos++
				}
			}
			if (protocol == 3) != (hellos > 0) {
				t.Errorf("%d times HELLO 3", hellos)
			}
			again := play(t, own, script)
			if differs := differing(first.History, again.History); differs != "" {
				t.Errorf("the same seed gave two histories: %s", differs)
			}
		})
	}
}

// owning is a lock on a client of its own, which tells all of its release.
type owning struct {
	setLock
	client   *redis.Client
	messages *redis.PubSub
	ended    chan struct{}
}

func (l owning) Release(ctx context.Context) error {
	return errors.Join(l.setLock.Release(ctx), l.client.Publish(ctx, "ch", l.env.Key).Err())
}

func (l owning) Close() error {
	err := errors.Join(l.messages.Close(), l.client.Close())
	<-l.ended
	return err
}
