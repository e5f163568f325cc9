package real

import (
	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/faults/real/proxy"
)

// A Service is what kind of servers a world has, if not Redis. Its servers keep together by
// themselves, so each is a node and none has replicas; what a lock looks like on them nobody asks.
type Service interface {
	// Name is the word for it, such as etcd.
	Name() string
	// Protocol returns what is spoken on a new connection of a client.
	Protocol() proxy.Protocol
	// Login returns how clients log in, given the world's password.
	Login(password string) Login
}

// let lets a server of a service have a request. Nobody looks at what it does there, so
// it keeps nobody waiting.
func (m *message) let() {
	c := m.conn
	w := c.wire.world
	if m.told() {
		m.text = w.ledger.Command(c.wire.client, m.words)
		w.tell(checker.Event{
			Kind: checker.Request, Client: c.wire.client, Node: c.wire.node.Name, Server: c.server.Name, Command: m.text, Sent: w.at(m.SetOut),
		})
	}
	c.has = append(c.has, m)
	m.Forward()
}

// told reports whether histories have the message: where messages are not told apart they would say
// nothing.
func (m *message) told() bool { return m.conn.wire.world.cfg.Service == nil || m.conn.pairs }

// replied takes note of what a server of a service has written, before anything is decided
// about its way back.
func (m *message) replied() {
	c := m.conn
	if !c.pairs {
		m.words, m.command = []string{"BYTES"}, "BYTES"
		c.has = nil
		return
	}
	if len(c.has) == 0 {
		return // it was not asked for
	}
	request := c.has[0]
	c.has = c.has[1:]
	m.words, m.command, m.text = request.words, request.command, request.text
}

// ServicesTake reports whether a fault is possible where servers are not Redis: what becomes of
// clients, links and nodes is, and nothing that is a command of Redis, or concerns replicas.
func ServicesTake(f faults.Fault) bool {
	switch f := f.(type) {
	case faults.RestartNode:
		return !f.Empty
	case faults.Failover, faults.Split, faults.Join, faults.NodeClock, faults.NodeDrift, faults.Flush, faults.Evict, faults.ScriptFlush, faults.Replication:
		return false
	}
	return true
}
