// Package subject speaks the simple form of the client protocol (docs/subject.md) with
// a program of the user's that is one client's process: a request goes out as a line of
// JSON, and the next line that comes back is its answer.
//
// A program's standard streams come in; a [Talk] comes out, and with [Talk.Strategy] a
// lock that is the program's, which package client uses like any other. The package
// starts no processes.
package lockproc

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/lockfault/lockfault/internal/harness/client"
)

// Do names what a [Request] asks for.
type Do string

// What a program is asked for.
const (
	Init     Do = "init"     // who it is, and where its nodes are
	Acquire  Do = "acquire"  // wait for the lock
	Try      Do = "try"      // take the lock if it is free
	Release  Do = "release"  // give it up
	Extend   Do = "extend"   // have its full lease again
	Shutdown Do = "shutdown" // close connections, and end
)

// A Request is a line to the program. Lengths of time are whole milliseconds.
type Request struct {
	ID int `json:"id"`
	Do Do  `json:"do"`
	// Key is the lock's name, and Within how long the operation may take.
	Key    string `json:"key,omitempty"`
	Within int64  `json:"within_ms,omitempty"`
	*Start
}

// A Start is what init says besides.
type Start struct {
	Client      string `json:"client"`
	Owner       string `json:"owner"`
	Thread      string `json:"thread,omitempty"`
	TTL         int64  `json:"ttl_ms"`
	Nodes       []Node `json:"nodes"`
	Replicas    int    `json:"replicas,omitempty"`
	Retries     int    `json:"retries,omitempty"`
	ReadTimeout int64  `json:"read_timeout_ms"`
}

// A Node is where a Redis node is, and how each connection has to log in.
type Node struct {
	Host     string `json:"host"`
	Port     int    `json:"port"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	DB       int    `json:"db,omitempty"`
}

// The answers.
const (
	OK     = "ok"     // done
	Failed = "failed" // not done, and without effect: the lock is taken, or not held
	Error  = "error"  // whether it was done the program can't tell
)

// An Answer is a line of the program.
type Answer struct {
	ID     *int   `json:"id"`
	Answer string `json:"answer"`
	// Error says why, of an answer that is not ok.
	Error string `json:"error,omitempty"`
	// Token is the fencing token of an acquire that is ok.
	Token int64 `json:"token,omitempty"`
	// Fenced says, in the answer to init, that acquires hand out tokens.
	Fenced bool `json:"fenced,omitempty"`
}

// read reads a line of the program. The error says what is wrong with it.
func read(line []byte) (a Answer, err error) {
	var kind *json.UnmarshalTypeError
	switch err := json.Unmarshal(line, &a); {
	case errors.As(err, &kind) && kind.Field != "":
		want := map[reflect.Kind]string{reflect.String: "a string", reflect.Bool: "true or false"}[kind.Type.Kind()]
		if want == "" {
			want = "a whole number"
		}
		return a, fmt.Errorf("answered with %q that is a %s, and has to be %s: %s", kind.Field, kind.Value, want, shown(line))
	case err != nil:
		return a, fmt.Errorf("wrote on its standard output what is no answer: %s: an answer is a line of JSON, and all else goes to standard error", shown(line))
	}
	switch {
	case a.ID == nil:
		return a, fmt.Errorf("answered without the request's id: %s", shown(line))
	case a.Answer != OK && a.Answer != Failed && a.Answer != Error:
		return a, fmt.Errorf(`answered %q: the answers are "ok", "failed" and "error": %s`, a.Answer, shown(line))
	}
	return a, nil
}

// mostShown is how much of a line is said of what is wrong with it.
const mostShown = 120

func shown(line []byte) string {
	if len(line) > mostShown {
		return fmt.Sprintf("%q…", line[:mostShown])
	}
	return fmt.Sprintf("%q", line)
}

// errNothing is the error of an answer that gives no reason.
var errNothing = errors.New("it says nothing more")

// reason returns why an answer is not ok.
func (a Answer) reason() error {
	if a.Error == "" {
		return errNothing
	}
	return errors.New(a.Error)
}

// ms returns a length of time in whole milliseconds, and at least one.
func ms(d time.Duration) int64 { return max(1, d.Milliseconds()) }

// StartOf returns what init says to a client with that setup, whose nodes are there.
func StartOf(setup client.Setup, owner, thread string, nodes []Node) *Start {
	return &Start{
		Client: setup.Client, Owner: owner, Thread: thread, TTL: ms(setup.TTL), Nodes: nodes,
		Replicas: setup.Replicas, Retries: setup.Retries, ReadTimeout: ms(setup.ReadTimeout),
	}
}
