package history

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/lockfault/lockfault/checker/linear"
)

// A Format is a file format of histories. The zero value is [Auto].
type Format string

// The formats.
const (
	Auto      Format = ""      // detected from the content
	JSONLines Format = "jsonl" // JSON lines, as lockfault run writes them
	EDN       Format = "edn"   // Jepsen's format: one map per line, or one vector of maps
	CSV       Format = "csv"   // a table whose first line names its columns
)

// Formats returns the formats that can be selected by name.
func Formats() []Format { return []Format{JSONLines, EDN, CSV} }

// Options configure a [Reader]. The zero value reads any format, strictly.
type Options struct {
	// Name is the name of the input in errors, usually a file name; empty means "stdin".
	Name string
	// Format is the format of the history.
	Format Format
	// TimeUnit is the unit of plain numbers in the times of CSV. The other formats have fixed
	// units, so for them TimeUnit must be AutoUnit.
	TimeUnit TimeUnit
	// ByServer reports each lease that ended by the server's clock as an event, [linear.Expired].
	// ByServer applies to JSON lines with the states of one server; other formats have such events
	// themselves.
	ByServer bool
	// Skip, if not nil, makes the reader lenient: instead of stopping at the first line that is
	// unreadable or inconsistent, the reader omits such lines and calls Skip with each error.
	// Omitted lines are missing from the history, so a verdict is only as reliable as the rest.
	Skip func(*Error)
}

// An Error reports what is wrong with a history, and where.
type Error struct {
	Name string
	Line int // from 1
	Err  error
}

// Error returns name:line: reason, in the form that editors recognize.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %v", e.Name, e.Line, e.Err) }

// Unwrap returns the reason without name and line.
func (e *Error) Unwrap() error { return e.Err }

// A Reader reads one history, once. [New] returns one. A Reader is not safe for concurrent use.
type Reader struct {
	options Options
	input   io.Reader
	parser  parser // nil until the format is known
	started bool
	skipped int
	ignored int
	events  int
}

// New returns a reader of the history in r. The reader does not close r, and reads nothing before
// [Reader.Events] is ranged over.
func New(r io.Reader, o Options) *Reader {
	if o.Name == "" {
		o.Name = "stdin"
	}
	return &Reader{options: o, input: r}
}

// Format returns the format of the history; [Auto] until it is known.
func (r *Reader) Format() Format { return r.options.Format }

// Skipped returns the number of lines omitted because of errors; 0 unless the reader is lenient.
func (r *Reader) Skipped() int { return r.skipped }

// Ignored returns the number of well-formed lines that are not about operations of locks: commands
// on the wire, faults, writes without a fencing token, Jepsen's nemesis.
func (r *Reader) Ignored() int { return r.ignored }

// Times returns what the reader has detected about plain numbers in the times of CSV. Most of it is
// known after the first such number.
func (r *Reader) Times() Times {
	if t, ok := r.parser.(*table); ok {
		return t.clock.times
	}
	return Times{}
}

// Separator returns the separator between the fields of CSV: a comma, a semicolon or a tab. The
// result is 0 for other formats, and before the separator is known.
func (r *Reader) Separator() byte {
	if t, ok := r.parser.(*table); ok {
		return t.separator
	}
	return 0
}

// IgnoredEvents returns the kinds of Jepsen events that are not lock operations and their numbers,
// the most frequent first. [Reader.Ignored] counts these events, too.
func (r *Reader) IgnoredEvents() []IgnoredEvent {
	if p, ok := r.parser.(*jepsen); ok {
		return p.ignored.all()
	}
	return nil
}

// The words of CSV and of JSON lines. The events in completed stand for an operation that was
// invoked and has returned ok.
var (
	operations = map[string]linear.Op{
		"acquire": linear.Acquire, "try": linear.TryAcquire, "release": linear.Release, "extend": linear.Extend, "use": linear.Use,
	}
	completed = map[string]linear.Op{"acquired": linear.Acquire, "released": linear.Release, "extended": linear.Extend}
	results   = map[string]linear.Phase{
		"call": linear.Invoke, "ok": linear.ReturnOK, "fail": linear.ReturnFail, "unknown": linear.ReturnUnknown,
	}
)

// A record is an event of a line, and the number of its call if the format numbers calls, otherwise
// 0.
type record struct {
	linear.Event
	call int64
}

// A splitter splits the input into pieces that can be parsed separately. A piece is never empty,
// begins on the returned line, and is valid until the next call. A badLine error concerns one piece
// only; after the last piece, next returns io.EOF.
type splitter interface {
	next() (text []byte, line int, err error)
}

// A parser makes records of a piece and returns their number: 0 if the piece is not about a lock, 2
// if it contains a call and its return.
type parser interface {
	parse(text []byte, line int, out *[2]record) (int, error)
}

// A badLine is an error that concerns one line only.
type badLine struct{ error }

func (b badLine) Unwrap() error { return b.error }

// A badFile is an error of a parser that invalidates all following lines.
type badFile struct{ error }

func (b badFile) Unwrap() error { return b.error }

// ofLine returns a parser's error as a badLine, unless it is a badFile.
func ofLine(err error) error {
	var whole badFile
	if errors.As(err, &whole) {
		return err
	}
	return badLine{err}
}

// errUsed is the error of a second range over Reader.Events.
var errUsed = errors.New("the history was read already; open it anew")

// Events returns the events in the order of the file. The error that ends the reading, always an
// *[Error], is yielded last and once. A lenient reader continues after errors that concern one
// line. A Reader can be ranged over once.
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
