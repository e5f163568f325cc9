package kit

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/lockfault/lockfault/internal/printable"
)

// Output wraps a standard stream of a command. Text passes [printable.Writer] and
// [printable.Quoter], so that foreign names and errors can neither control the terminal nor pass
// for annotations. After the reader has closed the pipe, as head does, an output discards text, so
// that the command finishes its work. An output keeps the first write error, because cobra drops
// errors when it prints help. Output is safe for concurrent use: connections to a queue report from
// their own goroutines.
type Output struct {
	to    io.Writer
	mu    sync.Mutex // guards the fields below
	text  *printable.Writer
	lines *printable.Quoter
	Err   error
}

func NewOutput(to io.Writer) *Output {
	lines := printable.NewQuoter(pipe{to})
	return &Output{to: to, text: printable.NewWriter(lines), lines: lines}
}

// AllowAnnotations lets annotation lines pass unquoted. AllowAnnotations must be called before the
// first write.
func (o *Output) AllowAnnotations() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = printable.NewWriter(pipe{o.to})
}

// pipe is a writer that discards text after the reader has closed the pipe.
type pipe struct{ to io.Writer }

func (p pipe) Write(text []byte) (int, error) {
	n, err := p.to.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		return len(text), nil
	}
	return n, err
}

func (o *Output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(text)
	o.keep(err)
	return n, err
}

// control writes an escape sequence of the program itself, which Write would replace.
func (o *Output) control(sequence string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, err := io.WriteString(pipe{o.to}, sequence)
	o.keep(err)
}

// Flush writes the rest of an incomplete character.
func (o *Output) Flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep(o.text.Flush())
	o.keep(o.lines.Flush())
}

func (o *Output) keep(err error) {
	if o.Err == nil {
		o.Err = err
	}
}

// File returns the underlying file, or nil if the stream is not a file.
func (o *Output) File() *os.File {
	f, _ := o.to.(*os.File)
	return f
}
