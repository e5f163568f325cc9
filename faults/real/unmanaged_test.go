package real

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/topology"
)

// visited is a guest that takes so long for a command.
type visited struct {
	Server
	took time.Duration
}

func (visited) Login() Login          { return Login{Username: "u", Password: "p", DB: 2} }
func (v visited) Trip() time.Duration { return v.took }
func (visited) Sent([]string)         {}

// alone is the only server of a world.
func alone(found Server, ttl time.Duration) *server {
	w := &World{cfg: Config{TTL: ttl}}
	w.top = topology.New(topology.Config{Nodes: 1}, driver{w})
	s := &server{Server: w.top.Servers[0], world: w}
	s.is(found)
	w.servers = []*server{s}
	return s
}

func visit(took, ttl time.Duration) *server {
	return alone(visited{took: took}, ttl)
}

// TestServes checks that a cell fails if a server doesn't support a command, or if an unmanaged
// server refuses one to every client, but not if it refuses one because of the lock.
func TestServes(t *testing.T) {
	const (
		nobody = iota
		guests
		everybody
	)
	tests := []struct {
		command, reply string
		spoils         int
	}{
		{"SET", "+OK\r\n", nobody},
		{"SET", "$-1\r\n", nobody},
		{"GET", "$6\r\nNOPERM\r\n", nobody},
		{"EVALSHA", "-NOSCRIPT No matching script\r\n", nobody},
		{"GET", "-WRONGTYPE Operation against a key\r\n", nobody},
		{"SET", "-ERR value is not an integer\r\n", nobody},
		{"HELLO", "-ERR unknown command 'HELLO'\r\n", nobody},
		{"CLIENT", "-NOPERM this user has no permissions\r\n", nobody},

		{"SET", "-NOPERM this user has no permissions\r\n", guests},
		{"SET", "-OOM command not allowed\r\n", guests},
		{"SET", "-READONLY You can't write\r\n", guests},
		{"SET", "-MOVED 1 127.0.0.1:1\r\n", guests},
		{"EVALSHA", "-ERR The user executing the script can't run this command or subcommand script: f, on @user_script:5.\r\n", guests},
		{"EVALSHA", "-ERR Error running script: @user_script: 1: -NOPERM this user has no permissions\r\n", guests},

		{"GETDEL", "-ERR unknown command `GETDEL`, with args beginning with: `lock`, \r\n", everybody},
		{"SET", "-ERR syntax error\r\n", everybody},
		{"PEXPIRE", "-ERR wrong number of arguments for 'pexpire' command\r\n", everybody},
		{"PEXPIRE", "-ERR Unsupported option x\r\n", everybody},
		{"SCRIPT", "-ERR Unknown subcommand or wrong number of arguments for 'FLUSH'. Try SCRIPT HELP.\r\n", everybody},
		{"EVAL", "-ERR Error running script (call to f_1): @user_script:1: ERR syntax error\r\n", everybody},
		{"EVAL", "-ERR Error running script (call to f_1): @user_script: 1: Unknown Redis command called from Lua script\r\n", everybody},
		{"EVAL", "-ERR Unknown Redis command called from script script: 1, on @user_script:1.\r\n", everybody},
	}
	for _, test := range tests {
		err := visit(0, time.Second).serves(test.command, []byte(test.reply))
		if (err != nil) != (test.spoils >= guests) {
			t.Errorf("%s: %q: %v", test.command, test.reply, err)
		}
		err = alone(movable{}, 0).serves(test.command, []byte(test.reply))
		if (err != nil) != (test.spoils >= everybody) {
			t.Errorf("our own server: %s: %q: %v", test.command, test.reply, err)
		}
	}
}

// A lease must have room for commands.
func TestNear(t *testing.T) {
	for _, test := range []struct {
		took, ttl time.Duration
		says      string
	}{
		{time.Millisecond, time.Second, ""},
		{20 * time.Millisecond, time.Second, ""},
		{21 * time.Millisecond, time.Second, "give --ttl 2s or more"},
		{100 * time.Millisecond, time.Second, "give --ttl 5s or more"},
		{100 * time.Millisecond, 5 * time.Second, ""},
		{time.Hour, 0, "n1/0 takes 1h0m0s"},
	} {
		err := visit(test.took, test.ttl).near()
		if test.says == "" {
			if err != nil {
				t.Errorf("%v of %v: %v", test.took, test.ttl, err)
			}
			continue
		}
		if !errors.Is(err, ErrTooFar) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v of %v: %v", test.took, test.ttl, err)
		}
	}
	if err := alone(movable{}, 0).near(); err != nil {
		t.Errorf("our own server: %v", err)
	}
}

// A server that isn't ours takes no orders, but the lock's key is ours.
func TestGuestsSupport(t *testing.T) {
	guest := visit(0, time.Second)
	orders := []faults.Fault{
		faults.CrashNode{Node: "n1"}, faults.PauseNode{Node: "n1"}, faults.NodeClock{Node: "n1"}, faults.Flush{Node: "n1"},
		faults.ScriptFlush{Node: "n1"}, faults.Failover{Node: "n1"}, faults.Replication{Node: "n1"},
	}
	for _, f := range orders {
		if err := guest.world.supports(f); !errors.Is(err, faults.ErrUnsupported) {
			t.Errorf("%s: %v", f, err)
		}
		if err := alone(movable{}, 0).world.supports(f); err != nil {
			t.Errorf("our own server: %s: %v", f, err)
		}
	}
	if err := guest.world.supports(faults.Evict{Node: "n1"}); err != nil {
		t.Error(err)
	}
	if login := guest.login(); !slices.Equal([]any{login.Username, login.Password, login.DB}, []any{"u", "p", 2}) {
		t.Errorf("login %+v", login)
	}
}
