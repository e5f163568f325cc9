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

// A Talk is a conversation with one program, a request at a time. Make one with
// [NewTalk]. Only [Talk.Shutdown] and [Talk.Broken] may be called beside the others.
type Talk struct {
	in      io.WriteCloser
	answers chan Answer
	silent  chan struct{} // closed when nothing more can come
	broken  chan struct{} // closed when the program has not kept to the form

	mu     sync.Mutex
	last   int   // the number of the last request
	asked  bool  // it has not been answered
	over   bool  // the program was told to end
	wrong  error // what it did, once broken is closed
	ending int   // the number of the shutdown; 0 before
}

// longestLine is how long a line of a program may be.
const longestLine = 1 << 20

// NewTalk returns the conversation over a program's standard streams. It reads out to
// its end, and blocks nobody with that.
func NewTalk(in io.WriteCloser, out io.Reader) *Talk {
	t := &Talk{in: in, answers: make(chan Answer, 1), silent: make(chan struct{}), broken: make(chan struct{})}
	go t.listen(out)
	return t
}

// listen takes what the program says.
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
	_, _ = io.Copy(io.Discard, out) // so that it need not wait for a reader
}

func (t *Talk) heard(line []byte) {
	a, err := read(line)
	if err != nil {
		t.breaks(err)
		return
	}
	t.mu.Lock()
	if t.wrong != nil { // nothing that it says is believed any more
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
	case *a.ID <= id: // the next is only asked when one is answered
		t.breaks(fmt.Errorf("answered request %d twice: %s", *a.ID, shown(line)))
	default:
		t.breaks(fmt.Errorf("answered request %d, which nobody had asked: %s", *a.ID, shown(line)))
	}
}

// breaks notes the first thing that is wrong with what the program says.
func (t *Talk) breaks(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wrong == nil && !t.over {
		t.wrong = why
		close(t.broken)
	}
}

// Broken returns a channel that is closed when the program has said what it must not,
// and [Talk.Wrong] says what that was.
func (t *Talk) Broken() <-chan struct{} { return t.broken }

// Wrong returns what the program did that it must not, once it is broken.
func (t *Talk) Wrong() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wrong
}

// Silent returns a channel that is closed when the program has said all that it ever
// will.
func (t *Talk) Silent() <-chan struct{} { return t.silent }

// Ask sends a request and blocks until it is answered. It gives it its number. An
// answer that the program doesn't give is waited for until ctx is done, also where it has broken
// the form or ended: what becomes of that is for whoever watches it.
func (t *Talk) Ask(ctx context.Context, r Request) (Answer, error) {
	t.mu.Lock()
	t.last++
	r.ID, t.asked = t.last, true
	t.mu.Unlock()
	if err := t.say(r); err == nil { // else it has ended
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

// Shutdown tells the program to end, and ends its standard input. What it does instead
// is no longer looked at.
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
	_ = t.say(Request{ID: id, Do: Shutdown}) // one that has ended needs not be told
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
