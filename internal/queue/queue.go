// Package queue defines the interface of a work queue that spreads work over many machines. A
// requester publishes items and takes answers; workers on any machine take items and give answers.
//
// The package contains no engine. Package [github.com/lockfault/lockfault/internal/queue/nats]
// implements one, so that programs that do not distribute work do not link an engine.
//
// An engine guarantees, whatever process is killed at any time, that each item that was put is
// answered exactly once, and that each answer is kept until the campaign is closed. An item may
// therefore be played more than once; all answers to it but the first are discarded. The queue must
// not be trusted: the requester checks each answer.
package queue

import (
	"context"
	"errors"
	"fmt"
)

// An Address holds the location of a queue's servers and the credentials for them.
type Address struct {
	// URLs are the servers' URLs, separated by commas. URLs must not contain a user or a password.
	URLs string
	// Credentials is the file that holds the secret of a user; empty means no credentials.
	Credentials string
	// CA is the file with the CA certificates for the servers (default: system roots). Certificate
	// and Key are the files of the client's certificate and its key (default: none).
	CA, Certificate, Key string
}

// A Program identifies the program that plays the items. All workers and requesters of a campaign
// must run the same program, because the locks of another build may behave differently.
type Program struct {
	// Class is a short name of the build and of the strategies that it contains: letters and
	// digits.
	Class string
	// Version is the program's version, for messages.
	Version string
}

// A Kind is the kind of an item, which determines how much of a worker the item takes.
type Kind string

const (
	// Cell is the kind of an item that takes one of a worker's processes.
	Cell Kind = "cell"
	// Search is the kind of an item that takes all of a worker's processes.
	Search Kind = "search"
)

// An Item is a piece of work.
type Item struct {
	Kind Kind
	// Name identifies the item within its campaign: letters, digits and hyphens. Items with the
	// same name are the same item.
	Name string
	Body []byte
}

// MaxAnswer is the largest size of an answer in bytes, decompressed: its body and its files.
const MaxAnswer = 128 << 20

// An Answer is the result of an item. Its content comes from a worker and proves nothing: the
// requester checks it.
type Answer struct {
	Name string
	Body []byte
	// Files are files that belong to the answer, by the names that the worker gave them.
	Files map[string][]byte
	// Worker identifies the worker: [Job.Next] fills it with the worker's public key, after it has
	// verified the worker's signature.
	Worker string `json:"-"`
	// Err is the reason why the item has no answer: [MostTimes] answers to it were refused. All
	// other fields except Name are empty then.
	Err error `json:"-"`
}

// An AddressError reports an invalid address, or an unreadable file that an address names. Retrying
// is useless.
type AddressError struct{ Err error }

// Error returns the text of Err.
func (e *AddressError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *AddressError) Unwrap() error { return e.Err }

// BadAddress returns an [AddressError] with a formatted text; format may contain %w.
func BadAddress(format string, args ...any) error {
	return &AddressError{fmt.Errorf(format, args...)}
}

// Short returns the first 12 characters of the name of a worker, for messages.
func Short(worker string) string { return worker[:min(len(worker), 12)] }

// ErrForeign reports that only work of another program is waiting.
var ErrForeign = errors.New("work of another program")

// ErrBadItem reports a message in a queue that is not an item. The message is removed from the
// queue and gets no answer.
var ErrBadItem = errors.New("not an item")

// An Engine connects to queues. Safe for concurrent use.
type Engine interface {
	// Connect connects to a running queue. It returns an error that names the queue if the queue
	// cannot be reached within a few seconds. If the connection is lost later, it is restored when
	// possible; say is called with a message when that takes long, and again when it is restored.
	// The caller must close the Conn.
	Connect(ctx context.Context, at Address, say func(string)) (Conn, error)
}

// A Host is an [Engine] that can also run a queue's server.
type Host interface {
	Engine
	// Serve runs a server until ctx is done. It calls ready with the server's URL once the server
	// accepts connections, and with the path of its credentials file; credentials is empty if
	// [ServerOptions.Config] configures authentication.
	Serve(ctx context.Context, o ServerOptions, ready func(url, credentials string)) error
}

// ServerOptions configure [Host.Serve].
type ServerOptions struct {
	// Listen is the address HOST:PORT to listen on. Without Config the server requires its
	// credentials on every address. With Config, an address other than loopback requires that Config
	// configures authentication.
	Listen string
	// Dir is the directory for stored data.
	Dir string
	// Credentials is the file that holds the secret of the server's one user. Serve creates it with
	// mode 0600 if it does not exist. Empty means a file in Dir. Credentials must be empty with
	// Config, which configures authentication itself.
	Credentials string
	// Config is a configuration file in the engine's own language, for all other settings. Listen
	// and Dir, if not empty, override it.
	Config string
}

// A Conn is a connection to a queue. Safe for concurrent use.
type Conn interface {
	// Campaign opens or resumes the campaign of a program with the given name. Items and answers of
	// an unfinished campaign are still there. The text says describes the campaign to workers of
	// other programs.
	Campaign(ctx context.Context, p Program, name, says string) (Job, error)
	// Work takes items of all campaigns of the program and passes them to w, until ctx is done;
	// then it gives back the items without an answer. If only work of another program is waiting at
	// the beginning, Work returns [ErrForeign].
	Work(ctx context.Context, p Program, w Worker) error
	// Worker returns the name by which requesters identify the worker of this connection; see
	// [Answer.Worker].
	Worker() string
	// Close closes the connection.
	Close()
}

// A Job is the requester's side of a campaign: the work of one command. Its methods are safe for
// concurrent use, except that only one goroutine may call Next at a time.
type Job interface {
	// Put adds an item. Put blocks while the queue cannot be reached.
	Put(ctx context.Context, item Item) error
	// Next returns the next answer to an item that was put, each answer once. Next blocks until
	// there is one or ctx is done. An answer is refused if it is larger than [MaxAnswer], cannot be
	// decoded, is not signed by its worker, or comes from an excluded worker; its item is then
	// published again.
	Next(ctx context.Context) (Answer, error)
	// Refuse removes a wrong answer that Next returned, and publishes its item again. If exclude is
	// set, all later answers of its worker are refused.
	Refuse(ctx context.Context, item Item, a Answer, exclude bool) error
	// Refused returns the number of answers refused so far.
	Refused() int
	// State returns how much work is in progress.
	State(ctx context.Context) (State, error)
	// SetNote sets a note, which workers that are at work on an item receive; see [Task.Notes].
	SetNote(ctx context.Context, key, value string) error
	// Drop withdraws an item whose answer is not needed any more. A worker that is at work on the
	// item receives the note [Dropped].
	Drop(ctx context.Context, item Item) error
	// Close closes the job. If forget is set, everything that the queue stores of the campaign is
	// removed.
	Close(forget bool) error
}

// A State counts the work in progress in all campaigns of a program.
type State struct {
	Waiting int // items that no worker has
	InHand  int // items that a worker has
	Idle    int // requests of workers that wait for an item
}

// A Task is an item that was given to a worker.
type Task struct {
	Item
	Campaign string
	// Times is the number of times that the item was given to a worker, this time included.
	Times int
	// Notes receives the campaign's notes: the current ones first, then each change. It is closed
	// when the task ends. Notes is nil for a cell.
	Notes <-chan Note
}

// A Note is a note set by [Job.SetNote].
type Note struct{ Key, Value string }

// Dropped, followed by an item's name, is the key of the note that the item's answer is not needed
// any more.
const Dropped = "dropped-"

// A Worker performs the tasks of one process.
type Worker struct {
	// Slots is the number of cells that the worker plays at a time; less than 1 means 1.
	Slots int
	// Do performs a task and returns its answer. [ErrBadItem] removes the item from the queue; any
	// other error gives the item back, for other workers. Do is called concurrently, for up to 2 ×
	// Slots cells, so that the next cells are already there when others are done. A search runs
	// alone.
	Do func(ctx context.Context, t Task) (Answer, error)
}

// MostTimes limits how often an item is given to workers. An item that so many workers did not
// survive is answered without being played, and an item with so many refused answers gets an answer
// with [Answer.Err].
const MostTimes = 10
