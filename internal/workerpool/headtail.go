package workerpool

import (
	"fmt"
	"strings"
	"sync"
)

// A headTail keeps the beginning and the end of its input. A stack trace shows its cause first and
// its location last, and neither may be lost in between. The zero value is empty and ready for use.
// Safe for concurrent use.
type headTail struct {
	mu   sync.Mutex
	head []byte
	tail []byte // a ring buffer once it is full; the oldest byte is at next
	next int
	lost int
}

// The sizes of the two parts in bytes.
const (
	headLimit = 40 << 10
	tailLimit = 16 << 10
)

// Write never fails.
func (e *headTail) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(p)
	room := min(headLimit-len(e.head), len(p))
	e.head = append(e.head, p[:room]...)
	p = p[room:]
	if extra := len(p) - tailLimit; extra > 0 {
		e.lost += extra
		p = p[extra:]
	}
	for len(p) > 0 {
		if len(e.tail) < tailLimit {
			room := min(tailLimit-len(e.tail), len(p))
			e.tail = append(e.tail, p[:room]...)
			p = p[room:]
			continue
		}
		copied := copy(e.tail[e.next:], p)
		e.next = (e.next + copied) % tailLimit
		e.lost += copied
		p = p[copied:]
	}
	return n, nil
}

// Reset discards everything.
func (e *headTail) Reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.head, e.tail, e.next, e.lost = e.head[:0], e.tail[:0], 0, 0
}

// String returns the kept text, with the number of bytes left out.
func (e *headTail) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	b.Write(e.head)
	if e.lost > 0 {
		fmt.Fprintf(&b, "\n… %d bytes left out …\n", e.lost)
	}
	b.Write(e.tail[e.next:])
	b.Write(e.tail[:e.next])
	return strings.TrimSpace(strings.ToValidUTF8(b.String(), "\uFFFD"))
}
