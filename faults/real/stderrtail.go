package real

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
)

// tail keeps the end of what a process writes on a pipe, and knows at each moment all
// that was written before: what a program says on standard error is there when its next
// words on standard output are. Make one with newTail. Safe for concurrent use.
type tail struct {
	from *os.File
	raw  syscall.RawConn

	mu  sync.Mutex
	buf bytes.Buffer
}

// How much is kept, and how much a pipe holds, where nobody has made it larger.
const (
	tailLimit = 64 << 10
	pipeHolds = 64 << 10
)

// newTail returns one, and the end of its pipe that the process gets.
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

// follow reads until the pipe ends, or is closed, so that nobody waits for it to have room.
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

// take reads once, without waiting.
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

// drain takes all that was written until now.
func (t *tail) drain() {
	_ = t.raw.Control(func(fd uintptr) { // once it is closed nothing comes
		for read := 0; read < pipeHolds; { // who goes on writing is not waited for
			n, err := t.take(fd)
			if n == 0 && !errors.Is(err, syscall.EINTR) {
				return
			}
			read += n
		}
	})
}

// String returns the end of all that was written until now.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drain()
	return strings.TrimSpace(strings.ToValidUTF8(t.buf.String(), "\uFFFD"))
}

// Close ends it. What was written until now is kept.
func (t *tail) Close() error {
	t.mu.Lock()
	t.drain()
	t.mu.Unlock()
	return t.from.Close()
}
