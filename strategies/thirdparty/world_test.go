package thirdparty_test

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/sim"
	"github.com/lockfault/lockfault/internal/rediscli"
	"github.com/lockfault/lockfault/internal/resp"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/strategies/internal/rig"
)

// stage plays locks that connect by themselves, and hear of their server unasked, in
// the world of virtual time: the nodes of package rig know no CLIENT TRACKING.
type stage struct {
	*sim.World
	t     *testing.T
	of    strategies.Strategy
	locks map[string]strategies.Lock
	nodes []*redis.Client
	sent  []request
	began time.Time
}

// request is a command that a client wrote.
type request struct {
	at     time.Duration
	client string
	words  []string
}

// inWorld calls play in a bubble with a world of one node, and takes all down
// afterwards.
func inWorld(t *testing.T, of strategies.Strategy, play func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, err := sim.New(sim.Config{Nodes: 1, Lock: faults.OnKey(of.Keys(rig.Key)[0]), TTL: rig.TTL, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		w.Begin()
		s := &stage{World: w, t: t, of: of, locks: map[string]strategies.Lock{}, began: time.Now()}
		defer func() {
			closing := make(chan error, 1)
			go func() { closing <- s.close() }()
			s.pass(time.Minute) // for those whose process is there
			if err := errors.Join(w.Close(), <-closing); err != nil {
				t.Error(err)
			}
		}()
		play(s)
	})
}

// close closes all locks at once.
func (s *stage) close() error {
	result := make(chan error, len(s.locks))
	for _, lock := range s.locks {
		go func() { result <- lock.(io.Closer).Close() }()
	}
	var all error
	for range s.locks {
		all = errors.Join(all, <-result)
	}
	for _, node := range s.nodes {
		all = errors.Join(all, node.Close())
	}
	return all
}

// tapped is a connection whose requests are written down, but for those that set it
// up and those that ask whether it is there.
type tapped struct {
	net.Conn
	stage  *stage
	client string
	rest   []byte
}

// Write is called by one goroutine at a time, and no two clients write while a test
// looks.
func (c *tapped) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	for {
		words, n, err := resp.Command(c.rest)
		if n == 0 || err != nil {
			break
		}
		c.rest = c.rest[n:]
		c.stage.Notify()
		if name := strings.ToUpper(words[0]); name != "HELLO" && name != "CLIENT" && name != "PING" {
			c.stage.sent = append(c.stage.sent, request{time.Since(c.stage.began), c.client, words})
		}
	}
	return c.Conn.Write(p)
}

// lock returns the client's lock, and makes it if it is new.
func (s *stage) lock(name string) strategies.Lock {
	s.t.Helper()
	if s.locks[name] == nil {
		o := rediscli.Options("127.0.0.1:1")
		o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := s.Dial(ctx, name, "n1")
			if err != nil {
				return nil, err
			}
			return &tapped{Conn: conn, stage: s, client: name}, nil
		}
		node := redis.NewClient(o)
		s.nodes = append(s.nodes, node)
		err := s.do(func() (err error) {
			s.locks[name], err = s.of.New(strategies.Env{
				Nodes: []redis.UniversalClient{node}, Key: rig.Key, TTL: rig.TTL, Owner: "process-" + name, Thread: "thread-" + name,
				Now: time.Now, Rand: rand.New(rand.NewPCG(1, 1)),
			})
			return err
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return s.locks[name]
}

// begin calls an operation and returns where its result will be.
func (s *stage) begin(op func() error) <-chan error {
	result := make(chan error, 1)
	go func() {
		result <- op()
		s.Notify()
	}()
	return result
}

// await lets time pass until there is a result.
func (s *stage) await(result <-chan error) error {
	s.t.Helper()
	if !s.Run(time.Hour, func() bool { return len(result) > 0 }) {
		s.t.Fatal("nothing came of it within an hour")
	}
	return <-result
}

func (s *stage) do(op func() error) error {
	s.t.Helper()
	return s.await(s.begin(op))
}

func (s *stage) pass(d time.Duration) { s.Run(d, func() bool { return false }) }

func (s *stage) fault(f faults.Fault) {
	s.t.Helper()
	if err := s.Apply(f); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) acquire(name string, patience time.Duration) func() error {
	lock := s.lock(name)
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return lock.Acquire(ctx)
	}
}

func (s *stage) try(name string) error {
	lock := s.lock(name).(strategies.TryAcquirer)
	return s.do(func() error { return lock.TryAcquire(context.Background()) })
}

func (s *stage) release(name string) error {
	lock := s.lock(name)
	return s.do(func() error { return lock.Release(context.Background()) })
}

// lost reports whether the client's lock says that it is lost.
func (s *stage) lost(name string) bool {
	select {
	case <-s.lock(name).(strategies.LossNotifier).Lost():
		return true
	default:
		return false
	}
}

var call = regexp.MustCompile(`redis\.call\("(\w+)"`)

// wire returns what was written since the last time, as package rig shows it, and
// forgets it. Owner values stand behind the key.
func (s *stage) wire(names map[string]string) string {
	slices.SortStableFunc(s.sent, func(a, b request) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.client, b.client)) })
	var out strings.Builder
	for _, r := range s.sent {
		words := slices.Clone(r.words)
		if words[0] == "EVAL" {
			sum := sha1.Sum([]byte(words[1]))
			var verbs []string
			for _, found := range call.FindAllStringSubmatch(words[1], -1) {
				verbs = append(verbs, strings.ToLower(found[1]))
			}
			words[1] = "{" + strings.Join(verbs, " ") + "}"
			names[hex.EncodeToString(sum[:])] = words[1]
		}
		for i, word := range words {
			if i == 4 && names[word] == "" {
				names["count "+r.client] += "."
				names[word] = r.client + "#" + strconv.Itoa(len(names["count "+r.client]))
			}
			if moment, err := strconv.ParseInt(word, 10, 64); err == nil && len(word) >= 12 {
				from := s.began.Add(r.at).Truncate(time.Second) // coarse enough for latencies
				words[i] = fmt.Sprintf("<s+%d>", time.UnixMilli(moment).Sub(from)/time.Second)
			}
			words[i] = cmp.Or(names[word], words[i])
		}
		fmt.Fprintf(&out, "%8s  %s n1  %s\n", r.at.Round(time.Millisecond), r.client, strings.Join(words, " "))
	}
	s.sent = nil
	return out.String()
}

// golden compares a tale with testdata/NAME.txt.
func golden(t *testing.T, name, got string) {
	t.Helper()
	rig.Golden(t, filepath.Join("testdata", name+".txt"), got)
}
