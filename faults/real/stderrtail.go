package real

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
)

// tail keeps the end of what a process writes to a pipe. String includes everything written before
// the call, so a program's standard error is complete when its next output on standard output
// arrives. Make one with newTail. It is safe for concurrent use.
type tail struct {
	from *os.File
	raw  syscall.RawConn

	mu  sync.Mutex
	buf bytes.Buffer
}

// tailLimit is the number of bytes that are kept. pipeHolds is the default capacity of a pipe, in
// bytes.
const (
	tailLimit = 64 << 10
	pipeHolds = 64 << 10
)

// newTail returns a tail, and the write end of its pipe for the process.
func newTail() (t *tail, to *os.File, err error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	raw, err := from.SyscallConn()
	if err != nil {
		return nil, nil, errors.Join(err, from.Close(), to.Close())
	}
	t = &tail{from: from, raw: raw}
	go t.follow()
	return t, to, nil
}

// follow reads until the pipe ends or is closed, so that a writer never waits for room.
func (t *tail) follow() {
	for ended := false; !ended; {
		err := t.raw.Read(func(fd uintptr) (ready bool) {
			t.mu.Lock()
			defer t.mu.Unlock()
			n, err := t.take(fd)
			ended = n == 0 && err == nil || err != nil && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
			return n > 0 || ended
		})
		ended = ended || err != nil
	}
}

// take reads once, without blocking.
func (t *tail) take(fd uintptr) (n int, err error) {
	var buf [4096]byte
	n, err = readOnce(fd, buf[:])
	n = max(n, 0)
	t.buf.Write(buf[:n])
	if over := t.buf.Len() - tailLimit; over > 0 {
		t.buf.Next(over)
	}
	return n, err
}

// drain reads everything that was written until now.
func (t *tail) drain() {
	_ = t.raw.Control(func(fd uintptr) { // fails only after Close, when nothing more comes
		for read := 0; read < pipeHolds; { // don't wait for a process that keeps writing
			n, err := t.take(fd)
			if n == 0 && !errors.Is(err, syscall.EINTR) {
				return
			}
			read += n
		}
	})
}

// String returns the end of everything that was written until now.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drain()
	return strings.TrimSpace(strings.ToValidUTF8(t.buf.String(), "\uFFFD"))
}

// Close closes the read end, and keeps what was written until now.
func (t *tail) Close() error {
	t.mu.Lock()
	t.drain()
	t.mu.Unlock()
	return t.from.Close()
}
