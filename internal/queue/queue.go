// Package queue is what work for many machines goes through: who asks publishes items and
// takes answers, and workers anywhere take items and give answers.
//
// It names the parts and holds no engine. One is in [github.com/lockfault/lockfault/internal/queue/nats],
// and programs that don't distribute work link none.
//
// What an engine promises, whatever dies at whatever moment: every item that was put is
// answered once, and what is answered is kept until the campaign is closed. So an item may be
// played more than once, by workers of which all but one are too late.
package queue

import (
	"context"
	"errors"
	"fmt"
)

// An Address says where the servers of a queue are, and how to be let in.
type Address struct {
	// URLs are those of its servers, with commas between them. They hold no user and no password.
	URLs string
	// Credentials is the file that holds the secret of a user; empty means none.
	Credentials string
	// CA, Certificate and Key are files of TLS: who vouches for the servers, and what
	// vouches for us; empty is what the system has, and nothing.
	CA, Certificate, Key string
}

// A Program is who plays: all that take part in a campaign must be the same, since another's
// locks may not do the same.
type Program struct {
	// Class is a short name of the build and of the strategies that it knows: letters and
	// digits.
	Class string
	// Version is what it calls itself.
	Version string
}

// A Kind says what an item takes of a worker.
type Kind string

const (
	// Cell is an item for one of a worker's processes.
	Cell Kind = "cell"
	// Search is an item for all of them.
	Search Kind = "search"
)

// An Item is a piece of work.
type Item struct {
	Kind Kind
	// Name tells it from others of its campaign: letters, digits and hyphens. Items of one name
	// are one item.
	Name string
	Body []byte
}

// MaxAnswer is the largest size of an answer in bytes, decompressed: its body and its files.
const MaxAnswer = 128 << 20

// An Answer is what came of an item. Whatever is in it comes from a worker, and proves nothing:
// the requester checks it.
type Answer struct {
	Name string
	Body []byte
	// Files are what goes with it, by the name that its worker gave each.
	Files map[string][]byte
	// Worker identifies the worker: [Job.Next] fills it with the worker's public key, after
	// it has verified the worker's signature.
	Worker string `json:"-"`
	// Err says why the item has no answer: MostTimes answers to it were refused. The rest is
	// empty then.
	Err error `json:"-"`
}

// An AddressError is of an address that makes no sense, or of a file that is named with it and
// can't be read: trying again is of no use.
type AddressError struct{ Err error }

// Error says what is wrong.
func (e *AddressError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *AddressError) Unwrap() error { return e.Err }

// BadAddress returns an [AddressError].
func BadAddress(format string, args ...any) error {
	return &AddressError{fmt.Errorf(format, args...)}
}

// Short returns the beginning of the name of a worker, for messages.
func Short(worker string) string { return worker[:min(len(worker), 12)] }

// ErrForeign is of a worker that there is work for, but of another program's.
var ErrForeign = errors.New("work of another program")

// ErrBadItem is of what is in a queue and is no item: it is removed from the queue, and gets no answer.
var ErrBadItem = errors.New("not an item")

// An Engine reaches queues. Safe for concurrent use.
type Engine interface {
	// Connect connects to one that runs, and returns an error that names it if it can't be
	// reached within a few seconds. If it can't be reached later on, it is waited for, and say
	// is told of that, and when it is there again. Whoever connects closes.
	Connect(ctx context.Context, at Address, say func(string)) (Conn, error)
}

// A Host is an [Engine] that can be a queue's server itself.
type Host interface {
	Engine
	// Serve is a server until ctx is done. It calls ready with its address once it takes
	// connections, and with the file of its credentials; without one if Config says who is let in.
	Serve(ctx context.Context, o ServerOptions, ready func(url, credentials string)) error
}

// ServerOptions say what server [Host.Serve] is.
type ServerOptions struct {
	// Listen is HOST:PORT. Without Config the host has to be a loopback one.
	Listen string
	// Dir is where it keeps what was put.
	Dir string
	// Credentials is the file that holds the secret of the server's one user. Serve creates it
	// with mode 0600 if it does not exist. Empty means a file in Dir. It must be empty with
	// Config, which says itself who is let in.
	Credentials string
	// Config is a file in the engine's own language, for all that there is beside that; Listen
	// and Dir replace what it says if they aren't empty.
	Config string
}

// A Conn is a connection to a queue. Safe for concurrent use.
type Conn interface {
	// Campaign opens the campaign of that name, of a program, or goes on with it: what was
	// put and answered before is there. Says is told to workers of other programs.
	Campaign(ctx context.Context, p Program, name, says string) (Job, error)
	// Work takes items of any campaign of the program and hands them over, until ctx is done:
	// then it gives back those that aren't answered. If all that waits is another
	// program's when it begins, the error is [ErrForeign].
	Work(ctx context.Context, p Program, w Worker) error
	// Worker returns the name by which requesters know the worker of this connection, see
	// [Answer.Worker].
	Worker() string
	// Close ends the connection.
	Close()
}

// A Job is the work of one command. Put and Next may be called concurrently with each
// other and with anything else; two calls of Next may not.
type Job interface {
	// Put adds an item. It blocks while the queue can't be reached.
	Put(ctx context.Context, item Item) error
	// Next returns the next answer to an item that was put: each once. It blocks. An answer that
	// is larger than [MaxAnswer], can't be decoded or is not signed by its worker, and every answer
	// of a worker that was excluded, is refused, and its item is asked anew.
	Next(ctx context.Context) (Answer, error)
	// Refuse removes an answer that Next returned, because it is wrong, and asks its item anew. From
	// then on all answers of its worker are refused if exclude is set.
	Refuse(ctx context.Context, item Item, a Answer, exclude bool) error
	// Refused returns how many answers were refused so far.
	Refused() int
	// State says how much is on its way.
	State(ctx context.Context) (State, error)
	// SetNote sets a note that workers see which are at work on an item: see [Task.Notes].
	SetNote(ctx context.Context, key, value string) error
	// Drop takes an item back: nobody needs its answer any more. A worker that is at work on
	// it is told by the note [Dropped].
	Drop(ctx context.Context, item Item) error
	// Close ends it. All that the queue has of it is removed, if forget is set.
	Close(forget bool) error
}

// A State is how much work is on its way in all campaigns of a program.
type State struct {
	Waiting int // items that no worker has
	InHand  int // that one has
	Idle    int // workers that wait for one
}

// A Task is an item in the hands of a worker.
type Task struct {
	Item
	Campaign string
	// Times is how often it was given to a worker, this time included.
	Times int
	// Notes are those of the campaign, as they are and as they change: keys and values. It ends with
	// the task. Only searches have it.
	Notes <-chan Note
}

// A Note is what [Job.SetNote] says.
type Note struct{ Key, Value string }

// Dropped and an item's name are the key of the note that says that nobody needs its answer.
const Dropped = "dropped-"

// A Worker is what does the work of one process.
type Worker struct {
	// Slots is how many cells it plays at a time.
	Slots int
	// Do does a task, and returns what came of it. [ErrBadItem] removes the task from the queue; any
	// other error gives it back, for others. Called concurrently, for twice as many cells as there are hands: so the next ones
	// are there when one is done. A search is alone.
	Do func(ctx context.Context, t Task) (Answer, error)
}

// MostTimes is how often an item is given to workers: one that so many died of is answered
// without being played, and one so many answers of which were refused gets an answer that says so.
const MostTimes = 10
