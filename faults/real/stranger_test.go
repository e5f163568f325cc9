package real_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/external"
	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/process/processtest"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/worldtest"
)

// listeners returns the loopback addresses on which this process listens, as any user of the
// machine can find them.
func listeners(t *testing.T) (list []string) {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Skip(err)
	}
	ours := map[string]bool{}
	fds, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range fds {
		link, _ := os.Readlink(fd) // one may have been closed since
		ours[strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")] = true
	}
	for line := range strings.Lines(string(table)) {
		const local, state, listen, inode = 1, 3, "0A", 9
		fields := strings.Fields(line)
		var port int
		if len(fields) <= inode || fields[state] != listen || !ours[fields[inode]] {
			continue
		}
		if _, err := fmt.Sscanf(fields[local], "0100007F:%X", &port); err == nil {
			list = append(list, fmt.Sprintf("127.0.0.1:%d", port))
		}
	}
	return list
}

// shout connects to every listener of this process, repeatedly until end is called, and sends what
// a stranger might send. It counts the connections.
func shout(t *testing.T) (shouts *atomic.Int64, end func()) {
	texts := [][]byte{
		nil,
		worldtest.Request("SET lock stranger", "PUBLISH channel stranger"),
		worldtest.Request("AUTH wrong", "SET lock stranger", "BLPOP list 0"),
		worldtest.Request("HELLO 3", "DEL lock"),
		worldtest.Request("HELLO 2 AUTH default wrong", "DEL lock"),
		[]byte("SET lock stranger\r\n"), []byte("*3\r\n$3\r\nSET\r\n$4\r\nlo"), []byte("*2\r\n$4\r\nAUTH\r\n$26\r\nABC"),
		[]byte("*x\r\n"), []byte("\x16\x03\x01\x02\x00\x01\x00"), []byte("GET / HTTP/1.1\r\n\r\n"),
	}
	all := listeners(t)
	if len(all) == 0 {
		t.Fatal("nobody listens")
	}
	shouts = &atomic.Int64{}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, addr := range all {
		running.Go(func() {
			var crowd []net.Conn
			defer func() {
				for _, conn := range crowd {
					conn.Close()
				}
			}()
			for i := 0; ctx.Err() == nil; i++ {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					continue // it had to go at once
				}
				_, _ = conn.Write(texts[i%len(texts)])
				if crowd = append(crowd, conn); len(crowd) > 200 {
					crowd[0].Close()
					crowd = crowd[1:]
				}
				shouts.Add(1)
				time.Sleep(100 * time.Microsecond) // leaves something of the machine
			}
		})
	}
	return shouts, func() {
		cancel()
		running.Wait()
	}
}

// withoutPassword makes a host of an unmanaged Redis without a password.
func withoutPassword(t *testing.T) *external.Host {
	t.Helper()
	owned := processtest.Host(t, process.Options{})
	server, err := owned.Start(t.Context(), real.ServerSpec{Name: "n1", Password: "p"})
	if err != nil {
		t.Fatal(err)
	}
	if err := processtest.Connect(t, server.Addr(), "p", 0).ConfigSet(t.Context(), "requirepass", "").Err(); err != nil {
		t.Fatal(err)
	}
	host, err := external.New(external.Options{Redis: []string{server.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// TestStrangers checks that no event, count, gate order or server is affected by what strangers
// send to the links, whether or not the servers require a password.
func TestStrangers(t *testing.T) { // alone, for it shouts at everybody here
	for _, c := range []struct {
		name string
		host func(*testing.T) *external.Host
	}{
		{"at servers with a password", nil},
		{"at a server without", withoutPassword},
	} {
		t.Run(c.name, func(t *testing.T) {
			key, cfg := worldtest.Key, real.Config{Lock: faults.SingleKeyLock(worldtest.Key)}
			if c.host != nil {
				host := c.host(t)
				key = host.Key()
				cfg.Host, cfg.Lock = host, faults.SingleKeyLock(key)
			}
			s := newStage(t, cfg, "client")
			a := s.conn("A", "n1")
			for _, name := range []string{"B", "C", "D"} {
				s.place(name, "n1") // they have links, and say nothing
			}
			shouts, quiet := shout(t)
			defer quiet()
			s.Begin()
			s.apply(
				faults.Hold{Match: faults.Match{Clients: []string{"B"}, Way: faults.Before}},
				faults.Drop{Match: faults.Match{Clients: []string{"C"}, Way: faults.Before}, Times: 1},
				faults.Hold{Match: faults.Match{Clients: []string{"B"}, Way: faults.Before, Commands: []string{"AUTH", "HELLO"}}},
				faults.Latency{Clients: []string{"D"}, Base: faults.Span{Abs: time.Millisecond}},
				faults.Hold{Match: faults.Match{Clients: []string{"A"}, Way: faults.Before, Commands: []string{"SET"}}},
			)
			s.forget()
			a.say("SET " + key + " A-value-1")
			s.await("A's request is held", func() bool { return s.Client("A").Held == 1 })
			const enough = 2000
			s.await("strangers shout", func() bool {
				time.Sleep(time.Millisecond) // nobody tells
				s.Notify()
				return shouts.Load() > enough
			})
			s.apply(faults.Pass{Clients: []string{"A"}})
			a.hear("+OK")
			for range 20 {
				a.ask("GET "+key, "$9 A-value-1")
			}
			quiet()
			s.run(100 * time.Millisecond) // for what is still on its way
			want := "held A request SET KEY A1\nfault pass A\npassed A request SET KEY A1\nA > n1/0 SET KEY A1\nn1/0 A1 by command A\nA < n1 SET KEY A1 = OK" +
				strings.Repeat("\nA > n1/0 GET KEY\nA < n1 GET KEY = \"A1\"", 20)
			if got := strings.ReplaceAll(worldtest.Lines(s.events), key, "KEY"); got != want {
				t.Errorf("told was\n%s\nwant\n%s", got, want)
			}
			for _, name := range []string{"B", "C", "D"} {
				if got := s.Client(name); got != (faults.ClientState{}) {
					t.Errorf("%s's state is %+v", name, got)
				}
				for _, e := range s.events {
					if e.Client == name && e.Kind != checker.Fault {
						t.Errorf("told of %s is %+v", name, e)
					}
				}
			}
			if got := s.Client("A"); got.Replies != 21 || got.RoundTrips != 21 || got.Lost != 0 || got.UnderWay != 0 {
				t.Errorf("A's state is %+v", got)
			}
		})
	}
}
