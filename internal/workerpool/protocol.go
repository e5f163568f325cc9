package workerpool

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// A request is the line that carries a job to a worker.
type request struct {
	Seq int             `json:"seq"`
	Job json.RawMessage `json:"job"`
}

// An answer is the line that carries a result back.
type answer struct {
	Seq    int             `json:"seq"`
	Result json.RawMessage `json:"result"`
	// Retire asks the parent not to use the worker again.
	Retire bool `json:"retire,omitempty"`
	// Ready is set only in a worker's first line, which answers no job.
	Ready bool `json:"ready,omitempty"`
}

// lineLimit is the largest length of a line in bytes, so that a worker that prints without end does
// not exhaust its parent's memory.
const lineLimit = 16 << 20

var errEndlessLine = errors.New("a line without end")

// A lineWriter splits its input into lines.
type lineWriter struct {
	part []byte
	// take receives each line, without its newline. An error of take ends the writing.
	take func(line []byte) error
	// endless, if not nil, is called when a line exceeds lineLimit.
	endless func()
}

// Write passes each complete line to take, and blocks as long as take does.
func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, found := bytes.Cut(p, []byte("\n"))
		if len(w.part)+len(line) > lineLimit {
			if w.endless != nil {
				w.endless()
			}
			return 0, errEndlessLine
		}
		w.part = append(w.part, line...)
		if !found {
			return n, nil
		}
		if err := w.take(w.part); err != nil {
			return 0, err
		}
		w.part, p = nil, rest
	}
}

// writeLine writes v as one line of JSON.
func writeLine(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}
