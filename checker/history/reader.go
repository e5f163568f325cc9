package history

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/lockfault/lockfault/checker/linear"
)

// A Format is a way to write a history down. The zero value is [Auto].
type Format string

// The formats.
const (
	Auto      Format = ""      // whichever the content looks like
	JSONLines Format = "jsonl" // what lockfault run writes
	EDN       Format = "edn"   // what Jepsen writes: a map for each line, or one vector of maps
	CSV       Format = "csv"   // a table whose first line names its columns
)

// Formats returns the formats that can be asked for by name.
func Formats() []Format { return []Format{JSONLines, EDN, CSV} }

// Options say how to read. The zero value reads any format, strictly.
type Options struct {
	// Name is what errors call the input, most often a file's name; empty
	// means "stdin".
	Name string
	// Format is how the history is written.
	Format Format
	// TimeUnit is what the plain numbers among the times of CSV count. The
	// other formats say what theirs are, so for them it must be AutoUnit.
	TimeUnit TimeUnit
	// ByServer makes an event, [linear.Expired], of each lease that ended by the server's
	// clock, of JSON lines that say what one server had. Other formats have such
	// events by themselves.
	ByServer bool
	// Skip, unless it is nil, makes the reader lenient: it leaves out the
	// lines that can't be read, or can't be true, and calls Skip with what is
	// wrong with each, instead of stopping at the first. What it leaves out
	// is missing from the history, so a verdict is only as good as the rest.
	Skip func(*Error)
}

// An Error says what is wrong with a history, and where.
type Error struct {
	Name string
	Line int // from 1
	Err  error
}

// Error returns name:line: reason, in the form that editors understand.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %v", e.Name, e.Line, e.Err) }

// Unwrap returns the reason alone.
func (e *Error) Unwrap() error { return e.Err }

// A Reader reads one history, once. Make it with [New]. It is not safe for
// concurrent use.
type Reader struct {
	options Options
	input   io.Reader
	parser  parser // nil before it is known
	started bool
	skipped int
	ignored int
	events  int
}

// New returns a reader of the history in r, which it does not close. Nothing is
// read before [Reader.Events] is ranged over.
func New(r io.Reader, o Options) *Reader {
	if o.Name == "" {
		o.Name = "stdin"
	}
	return &Reader{options: o, input: r}
}

// Format returns the format of the history: [Auto] until it is known.
func (r *Reader) Format() Format { return r.options.Format }

// Skipped returns how many lines have been left out because something was wrong
// with them; only a lenient reader leaves out any.
func (r *Reader) Skipped() int { return r.skipped }

// Ignored returns how many well-formed lines have been read that are about
// something else than operations of a lock: commands on the wire, faults, writes
// without a fencing token, Jepsen's nemesis.
func (r *Reader) Ignored() int { return r.ignored }

// Times returns what the reader has found out about the times of CSV that are
// plain numbers: most of it after the first of them has been read.
func (r *Reader) Times() Times {
	if t, ok := r.parser.(*table); ok {
		return t.clock.times
	}
	return Times{}
}

// Separator returns what stands between the fields of CSV: a comma, a semicolon
// or a tab; 0 of other formats, and before it is known.
func (r *Reader) Separator() byte {
	if t, ok := r.parser.(*table); ok {
		return t.separator
	}
	return 0
}

// IgnoredEvents returns what events of Jepsen that are no operation of a lock are called,
// and how many there were of each, the most first: they are among those that
// [Reader.Ignored] counts.
func (r *Reader) IgnoredEvents() []IgnoredEvent {
	if p, ok := r.parser.(*jepsen); ok {
		return p.ignored.all()
	}
	return nil
}

// A record is what a line says: an event, and which call it belongs to where the
// format numbers calls, else 0.
type record struct {
	linear.Event
	call int64
}

// A splitter cuts the input into pieces that make sense alone. A piece is valid
// until the next call, begins on the given line, and is never empty. A skippable
// error is about one piece only; behind the last comes io.EOF.
type splitter interface {
	next() (text []byte, line int, err error)
}

// A parser makes records of a piece: none if it says nothing of a lock, two if
// it tells of a call and its return in one.
type parser interface {
	parse(text []byte, line int, out *[2]record) (int, error)
}

// A badLine is an error that is over with its line.
type badLine struct{ error }

func (b badLine) Unwrap() error { return b.error }

// A badFile is an error of a parser that makes all lines behind it worthless.
type badFile struct{ error }

func (b badFile) Unwrap() error { return b.error }

// ofLine makes the error of a parser one that is over with its line, unless it is
// about the whole file.
func ofLine(err error) error {
	var whole badFile
	if errors.As(err, &whole) {
		return err
	}
	return badLine{err}
}

// errUsed is what a second pass over a Reader gets.
var errUsed = errors.New("the history was read already; open it anew")

// Events returns the events in the order of the file. It yields the error that
// ends the reading, always an *[Error], last and once; a lenient reader goes on
// after errors that concern one line. A Reader can be ranged over once.
func (r *Reader) Events() iter.Seq2[linear.Event, error] {
	return func(yield func(linear.Event, error) bool) {
		line := 1
		fail := func(err error) {
			yield(linear.Event{}, &Error{r.options.Name, line, err})
		}
		if r.started {
			fail(errUsed)
			return
		}
		r.started = true
		split, parse, at, err := r.open()
		if err != nil {
			line = max(1, at)
			fail(err)
			return
		}
		r.parser = parse
		order := newOrder()
		var out [2]record
		for {
			text, at, err := split.next()
			line = max(line, at)
			if errors.Is(err, io.EOF) {
				break
			}
			n := 0
			if err == nil {
				if n, err = parse.parse(text, at, &out); err != nil {
					err = ofLine(err)
				} else if n == 0 {
					r.ignored++
				}
			}
			for i := 0; i < n && err == nil; i++ {
				out[i].Line = at
				if err = order.check(&out[i]); err != nil {
					err = badLine{err}
					break
				}
				r.events++
				if !yield(out[i].Event, nil) {
					return
				}
			}
			if err == nil {
				continue
			}
			line = at
			var bad badLine
			if errors.As(err, &bad) {
				err = bad.error
				if r.options.Skip != nil {
					r.skipped++
					r.options.Skip(&Error{r.options.Name, at, err})
					continue
				}
			}
			fail(err)
			return
		}
		switch {
		case r.events > 0:
		case r.skipped > 0:
			fail(errors.New("no line that can be read tells of an operation of a lock"))
		case len(r.IgnoredEvents()) > 0:
			fail(fmt.Errorf("the history tells of no operation of a lock: there are %s, but no :acquire, :try-acquire, :release, :extend or :use", namesOf(r.IgnoredEvents())))
		default:
			fail(errors.New("the history tells of no operation of a lock"))
		}
	}
}
