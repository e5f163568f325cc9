// Package lockproc implements the simple form of the client protocol (docs/subject.md) for a user's
// program that is one client's process. A request is a line of JSON, and the next line from the
// program is its answer.
//
// The inputs are a program's standard streams; the output is a [Talk] and, with [Talk.Strategy], a
// lock that the program implements and that package client uses like any other lock. The package
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

// Do is the kind of a [Request].
type Do string

// Kinds of requests.
const (
	Init     Do = "init"     // the client's identity and the addresses of its nodes
	Acquire  Do = "acquire"  // wait for the lock
	Try      Do = "try"      // take the lock if it is free
	Release  Do = "release"  // release the lock
	Extend   Do = "extend"   // reset the lease to its full length
	Shutdown Do = "shutdown" // close connections, and end
)

// Request is a line to the program. Durations are whole milliseconds.
type Request struct {
	ID int `json:"id"`
	Do Do  `json:"do"`
	// Key is the lock's name, Within the time limit of the operation.
	Key    string `json:"key,omitempty"`
	Within int64  `json:"within_ms,omitempty"`
	*Start
}

// Start holds the additional fields of init.
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

// Node is the address of a Redis node and the login of its connections.
type Node struct {
	Host     string `json:"host"`
	Port     int    `json:"port"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	DB       int    `json:"db,omitempty"`
}

// Values of an answer.
const (
	OK     = "ok"     // done
	Failed = "failed" // not done, and without effect: the lock is taken, or not held
	Error  = "error"  // the program cannot know whether it was done
)

// Answer is a line of the program.
type Answer struct {
	ID     *int   `json:"id"`
	Answer string `json:"answer"`
	// Error is the reason for an answer other than ok.
	Error string `json:"error,omitempty"`
	// Token is the fencing token of a successful acquire.
	Token int64 `json:"token,omitempty"`
	// Fenced reports, in the answer to init, that acquires return tokens.
	Fenced bool `json:"fenced,omitempty"`
}

// read parses a line of the program. The error describes the problem with the line.
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

// mostShown is the maximum length of an invalid line in an error message.
const mostShown = 120

func shown(line []byte) string {
	if len(line) > mostShown {
		return fmt.Sprintf("%q…", line[:mostShown])
	}
	return fmt.Sprintf("%q", line)
}

// errNothing is the error of an answer without a reason.
var errNothing = errors.New("it says nothing more")

// reason returns the reason for an answer other than ok.
func (a Answer) reason() error {
	if a.Error == "" {
		return errNothing
	}
	return errors.New(a.Error)
}

// ms returns a duration in whole milliseconds, at least 1.
func ms(d time.Duration) int64 { return max(1, d.Milliseconds()) }

// StartOf returns the init fields for a client with the given setup and nodes.
func StartOf(setup client.Setup, owner, thread string, nodes []Node) *Start {
	return &Start{
		Client: setup.Client, Owner: owner, Thread: thread, TTL: ms(setup.TTL), Nodes: nodes,
		Replicas: setup.Replicas, Retries: setup.Retries, ReadTimeout: ms(setup.ReadTimeout),
	}
}
