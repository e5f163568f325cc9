package printable

import "io"

// A Quoter writes text to another writer, with "| " before a line that CI systems take for an
// annotation: one that begins with "::", perhaps behind blanks. Create it with [NewQuoter]. It is
// not safe for concurrent use.
type Quoter struct {
	to    io.Writer
	state lineState
}

// A lineState is what a Quoter has seen of a line.
type lineState int

const (
	blank  lineState = iota // nothing but blanks
	colon                   // a colon behind them, which is not written yet
	inside                  // more
)

// NewQuoter returns a Quoter at the beginning of a line.
func NewQuoter(w io.Writer) *Quoter { return &Quoter{to: w} }

// Write writes text. It returns how much of text was accepted.
func (q *Quoter) Write(text []byte) (int, error) {
	var out []byte
	written := 0 // of text, to out
	for i, c := range text {
		was := q.state
		switch {
		case was == blank && c == ':':
			q.state = colon
			out = append(out, text[written:i]...)
			written = i + 1
			continue
		case was == colon && c == ':':
			out = append(out, "| :"...)
			q.state = inside
		case was == colon:
			out = append(out, ':')
			q.state = inside
		case was == blank && c != ' ' && c != '\t' && c != '\n' && c != '\r':
			q.state = inside
		}
		if c == '\n' {
			q.state = blank
		}
	}
	return len(text), q.write(append(out, text[written:]...))
}

// Flush writes a colon that is held back.
func (q *Quoter) Flush() error {
	if q.state != colon {
		return nil
	}
	q.state = inside
	return q.write([]byte{':'})
}

func (q *Quoter) write(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	_, err := q.to.Write(text)
	return err
}
