package lockproc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Talk is a conversation with one program, with one request at a time. Make it with [NewTalk]. Only
// [Talk.Shutdown] and [Talk.Broken] may be called concurrently with other methods.
type Talk struct {
	in      io.WriteCloser
	answers chan Answer
	silent  chan struct{} // closed when the program's output has ended
	broken  chan struct{} // closed when the program has violated the protocol

	mu     sync.Mutex
	last   int   // the number of the last request
	asked  bool  // the last request is not answered yet
	over   bool  // the program was asked to end
	wrong  error // the violation, after broken is closed
	ending int   // the number of the shutdown request; 0 before
}

// longestLine is the maximum length of a program's line, in bytes.
const longestLine = 1 << 20

// NewTalk returns the conversation over a program's standard streams. A goroutine reads out to its
// end.
func NewTalk(in io.WriteCloser, out io.Reader) *Talk {
	t := &Talk{in: in, answers: make(chan Answer, 1), silent: make(chan struct{}), broken: make(chan struct{})}
	go t.listen(out)
	return t
}

// listen reads the program's lines.
func (t *Talk) listen(out io.Reader) {
	defer close(t.silent)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		if len(lines.Bytes()) > 0 {
			t.heard(lines.Bytes())
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		t.breaks(fmt.Errorf("wrote a line of more than %d bytes on its standard output", longestLine))
	}
	_, _ = io.Copy(io.Discard, out) // so that the program does not block on its output
}

func (t *Talk) heard(line []byte) {
	a, err := read(line)
	if err != nil {
		t.breaks(err)
		return
	}
	t.mu.Lock()
	if t.wrong != nil { // after a violation, all further lines are ignored
		t.mu.Unlock()
		return
	}
	id, asked := t.last, t.asked
	if farewell := t.ending != 0 && *a.ID == t.ending; !farewell && asked && *a.ID == id {
		t.asked = false
		t.mu.Unlock()
		t.answers <- a
		return
	} else if farewell {
		t.mu.Unlock()
		return
	}
	t.mu.Unlock()
	switch {
	case *a.ID <= id: // a request is sent only after the previous one is answered
		t.breaks(fmt.Errorf("answered request %d twice: %s", *a.ID, shown(line)))
	default:
		t.breaks(fmt.Errorf("answered request %d, which nobody had asked: %s", *a.ID, shown(line)))
	}
}

// breaks records the program's first violation of the protocol.
func (t *Talk) breaks(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wrong == nil && !t.over {
		t.wrong = why
		close(t.broken)
	}
}

// Broken returns a channel that is closed when the program has violated the protocol. [Talk.Wrong]
// returns the violation.
func (t *Talk) Broken() <-chan struct{} { return t.broken }

// Wrong returns the program's violation of the protocol, after Broken is closed.
func (t *Talk) Wrong() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wrong
}

// Silent returns a channel that is closed when the program's output has ended.
func (t *Talk) Silent() <-chan struct{} { return t.silent }

// Ask assigns the request its number, sends it and blocks until it is answered or ctx is done. Ask
// also waits for ctx if the program has violated the protocol or has ended: the watcher of the
// program handles these cases.
func (t *Talk) Ask(ctx context.Context, r Request) (Answer, error) {
	t.mu.Lock()
	t.last++
	r.ID, t.asked = t.last, true
	t.mu.Unlock()
	if err := t.say(r); err == nil { // otherwise the program has ended
		select {
		case a := <-t.answers:
			return a, nil
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		}
	}
	<-ctx.Done()
	return Answer{}, ctx.Err()
}

// Shutdown asks the program to end, and closes its standard input. Later violations of the protocol
// are ignored.
func (t *Talk) Shutdown() {
	t.mu.Lock()
	over := t.over
	t.over = true
	// The last request may not be answered yet.
	t.ending = t.last + 1
	id := t.ending
	t.mu.Unlock()
	if over {
		return
	}
	_ = t.say(Request{ID: id, Do: Shutdown}) // an error means that the program has already ended
	_ = t.in.Close()
}

func (t *Talk) say(r Request) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = t.in.Write(append(line, '\n'))
	return err
}
