package strategies_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/strategies"
)

// at returns an Env whose nodes are go-redis clients set up like that.
func at(t *testing.T, options ...*redis.Options) (env strategies.Env) {
	t.Helper()
	for _, o := range options {
		c := redis.NewClient(o)
		t.Cleanup(func() { c.Close() })
		env.Nodes = append(env.Nodes, c)
	}
	return env
}

// say sends words to a server and returns the line that it answers.
func say(t *testing.T, conn net.Conn, words ...string) string {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	request := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(answer)
}

// A connection is ready to use: logged in, on its node, on the node's database.
func TestDial(t *testing.T) {
	open, secret, users := miniredis.RunT(t), miniredis.RunT(t), miniredis.RunT(t)
	secret.RequireAuth("one word")
	users.RequireUserAuth("somebody", "two words")
	env := at(t,
		&redis.Options{Addr: open.Addr()},
		&redis.Options{Addr: secret.Addr(), Password: "one word", DB: 3},
		&redis.Options{Addr: users.Addr(), Username: "somebody", Password: "two words"},
	)
	for i, server := range []*miniredis.Miniredis{open, secret, users} {
		if got := env.Addr(i); got != server.Addr() {
			t.Errorf("node %d is at %q, want %q", i, got, server.Addr())
		}
		conn, err := env.Dial(t.Context(), "tcp", env.Addr(i))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got := say(t, conn, "SET", "here", "yes"); got != "+OK" {
			t.Errorf("node %d answers %q", i, got)
		}
	}
	if _, err := open.Get("here"); err != nil {
		t.Errorf("the first node: %v", err)
	}
	if _, err := secret.DB(3).Get("here"); err != nil {
		t.Errorf("the second node's database 3: %v", err)
	}
	if _, err := users.Get("here"); err != nil {
		t.Errorf("the third node: %v", err)
	}
}

// Who asks for what there isn't is told what there is.
func TestDialRefused(t *testing.T) {
	open, secret := miniredis.RunT(t), miniredis.RunT(t)
	secret.RequireAuth("right")
	down, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := down.Addr().String()
	if err := down.Close(); err != nil {
		t.Fatal(err)
	}
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{open.Addr()}})
	defer cluster.Close()
	for name, c := range map[string]struct {
		env        strategies.Env
		addr, want string
	}{
		"an address of nobody": {at(t, &redis.Options{Addr: open.Addr()}), "example.org:6379", `no node is at "example.org:6379", only at ["` + open.Addr()},
		"two nodes at one":     {at(t, &redis.Options{Addr: open.Addr()}, &redis.Options{Addr: open.Addr()}), open.Addr(), "two of Env.Nodes have the address"},
		"a cluster":            {strategies.Env{Nodes: []redis.UniversalClient{cluster}}, open.Addr(), "Env.Nodes[0] is a *redis.ClusterClient"},
		"a wrong password":     {at(t, &redis.Options{Addr: secret.Addr(), Password: "wrong"}), secret.Addr(), "AUTH: WRONGPASS"},
		"a database too many":  {at(t, &redis.Options{Addr: open.Addr(), DB: -1}), open.Addr(), "SELECT: ERR"},
		"nobody there":         {at(t, &redis.Options{Addr: nobody}), nobody, "connection refused"},
	} {
		conn, err := c.env.Dial(t.Context(), "tcp", c.addr)
		if err == nil {
			conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
	if got := (strategies.Env{Nodes: []redis.UniversalClient{cluster}}).Addr(0); got != "" {
		t.Errorf("a cluster has the address %q", got)
	}
}

// A server that says nothing, or no end of it, doesn't keep anybody.
func TestDialGivesUp(t *testing.T) {
	for name, says := range map[string]string{"silent": "", "half a line": "+O", "no end": strings.Repeat("+", 5000)} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			heard := make(chan struct{}, 2)
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					defer conn.Close()
					if _, err := bufio.NewReader(conn).ReadByte(); err == nil {
						_, _ = conn.Write([]byte(says))
						heard <- struct{}{}
					}
				}
			}()
			o := &redis.Options{Addr: listener.Addr().String(), Password: "p", DialTimeout: 50 * time.Millisecond}
			if _, err := at(t, o).Dial(context.Background(), "tcp", o.Addr); err == nil {
				t.Error("it connected")
			} else if name != "no end" && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			<-heard
			if name == "no end" {
				return
			}
			o = &redis.Options{Addr: o.Addr, Password: "p", DialTimeout: time.Hour}
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				<-heard
				cancel()
			}()
			if _, err := at(t, o).Dial(ctx, "tcp", o.Addr); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// The login's deadline is not the connection's.
func TestDialLeavesNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			if _, err := far.Read(make([]byte, 100)); err == nil {
				_, _ = far.Write([]byte("+OK\r\n"))
			}
		}()
		dialled := &deadlines{Conn: near}
		env := at(t, &redis.Options{Addr: "127.0.0.1:1", Password: "p", Dialer: func(context.Context, string, string) (net.Conn, error) {
			return dialled, nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		conn, err := env.Dial(ctx, "tcp", env.Addr(0))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait() // for whoever the context's end wakes
		if conn != net.Conn(dialled) {
			t.Error("the connection is not what the client's own dialer returned")
		}
		if !dialled.last.IsZero() {
			t.Errorf("its deadline is %v", dialled.last)
		}
	})
}

type deadlines struct {
	net.Conn
	last time.Time
}

func (d *deadlines) SetDeadline(t time.Time) error {
	d.last = t
	return d.Conn.SetDeadline(t)
}

func TestReadTimeout(t *testing.T) {
	for in, want := range map[time.Duration]time.Duration{time.Second: time.Second, -1: 0} {
		if got := at(t, &redis.Options{ReadTimeout: in}).ReadTimeout(); got != want {
			t.Errorf("of %v: %v, want %v", in, got, want)
		}
	}
}
