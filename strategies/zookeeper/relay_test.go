package zookeeper

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

// A relay stands between clients and a server, and can be cut.
type relay struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	isCut bool
	conns map[net.Conn]bool
	after func(opcode int32)
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, to: to, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = l.Close()
		r.cut()
	})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go r.carry(conn)
		}
	}()
	return r
}

// handed has that called with what a client has asked for, whenever the answer has been handed to it.
func (r *relay) handed(after func(opcode int32)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.after = after
}

// cut ends all connections, and lets nobody in any more.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isCut = true
	for conn := range r.conns {
		_ = conn.Close()
	}
}

// mend lets clients in again.
func (r *relay) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isCut = false
}

func (r *relay) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer server.Close()
	r.mu.Lock()
	cut := r.isCut
	r.conns[client], r.conns[server] = true, true
	r.mu.Unlock()
	if cut {
		return
	}
	var mu sync.Mutex
	asked := map[int32]int32{} // operations by the numbers of their requests
	go func() {
		defer server.Close()
		copyFrames(server, client, func(body []byte, first bool) func() {
			if len(body) >= 8 && !first {
				mu.Lock()
				asked[int32(binary.BigEndian.Uint32(body))] = int32(binary.BigEndian.Uint32(body[4:]))
				mu.Unlock()
			}
			return nil
		})
	}()
	copyFrames(client, server, func(body []byte, first bool) func() {
		if len(body) < 4 || first {
			return nil
		}
		mu.Lock()
		opcode, ok := asked[int32(binary.BigEndian.Uint32(body))]
		mu.Unlock()
		r.mu.Lock()
		after := r.after
		r.mu.Unlock()
		if !ok || after == nil {
			return nil
		}
		return func() { after(opcode) }
	})
}

// copyFrames copies frames, and shows each before; what comes of that is called behind. The first one is a greeting.
func copyFrames(to io.Writer, from io.Reader, show func(body []byte, first bool) (behind func())) {
	for first := true; ; first = false {
		var size [4]byte
		if _, err := io.ReadFull(from, size[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		behind := show(body, first)
		if _, err := to.Write(append(size[:], body...)); err != nil {
			return
		}
		if behind != nil {
			behind()
		}
	}
}
