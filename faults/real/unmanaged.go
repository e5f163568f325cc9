package real

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults"
)

// An UnmanagedServer is a [Server] that somebody else runs, and where this world is only a
// visitor: it serves clients, and takes no orders. Its methods may be called
// concurrently.
type UnmanagedServer interface {
	Server
	// Login says how clients, and the world, log in.
	Login() Login
	// Trip is how long a command takes, there and back, when nothing is in
	// its way: for so long nobody is late.
	Trip() time.Duration
	// Sent is told each request that a client sends to it, before it does.
	Sent(words []string)
}

// A Login says how to log in to a server. The zero value asks for nothing.
type Login struct {
	Username, Password string
	// DB is the number of the database.
	DB int
}

// ErrTooFar says that a server answers too slowly for so short a lease. Its
// reason follows.
var ErrTooFar = errors.New("the server is too far away")

// ErrRefused says that a server can't, or won't, do its work, for reasons that
// are none of the lock's. They follow.
var ErrRefused = errors.New("the server refuses")

// tripsInLease is how many commands must find room in a lease, one after the
// other: clients wait for a tenth of a lease, and each of their commands also waits
// for the world's look at the key, and perhaps for those of other clients.
const tripsInLease = 50

// near returns an error if the server is too far away for the lease.
func (s *server) near() error {
	if least := tripsInLease * s.trip(); least > s.world.cfg.TTL {
		return fmt.Errorf("%w: %s takes %v for a command, too long for a lease of %v: give --ttl %v or more",
			ErrTooFar, s.Name, s.trip().Round(time.Microsecond), s.world.cfg.TTL, (least + time.Second - 1).Truncate(time.Second))
	}
	return nil
}

func (s *server) login() Login {
	if s.unmanaged != nil {
		return s.unmanaged.Login()
	}
	if of := s.world.cfg.Service; of != nil {
		return of.Login(s.world.password)
	}
	return Login{Password: s.world.password}
}

// trip returns for how long a command is not late.
func (s *server) trip() time.Duration {
	if s.unmanaged != nil {
		return s.unmanaged.Trip()
	}
	return 0
}

// observe tells a guest what it will be sent.
func (s *server) observe(words []string) {
	if s.unmanaged != nil {
		s.unmanaged.Sent(words)
	}
}

// SparesGuests reports whether a fault leaves servers, and what others keep there,
// alone: it befalls clients, links or the lock's key. No other is possible where
// nodes are guests.
func SparesGuests(f faults.Fault) bool {
	_, evict := f.(faults.Evict)
	return evict || faults.TargetNode(f) == ""
}

// refusals are the beginnings of errors by which a server says that it can't,
// or won't, do its work for anybody.
var refusals = [...]string{"NOPERM", "NOAUTH", "WRONGPASS", "OOM", "MISCONF", "READONLY", "MOVED", "CLUSTERDOWN", "LOADING", "MASTERDOWN"}

// strange matches an error by which a server says that it doesn't know a
// command, or not with such words, called by a client or by its script.
var strange = regexp.MustCompile(`(?i)^ERR.*(unknown (redis )?command|unknown subcommand|syntax error|wrong number of arg|unsupported option)`)

// serves returns an error if a server refused a command for reasons that are
// none of the lock's: what follows would say nothing about the lock. Our own
// servers refuse what they are too old for; all else only in scenarios about that.
func (s *server) serves(command string, reply []byte) error {
	if len(reply) == 0 || reply[0] != '-' || command == "HELLO" || command == "CLIENT" {
		return nil // clients ask by those what there is, and can do without
	}
	line, _, _ := bytes.Cut(reply[1:], []byte("\r\n"))
	text := string(line)
	if strange.MatchString(text) {
		return fmt.Errorf("real: %w %s on %s: %s: it is too old for this lock, or the lock is wrong", ErrRefused, command, s.Name, text)
	}
	if s.unmanaged == nil {
		return nil
	}
	// What a script may not do has no word of its own in some versions.
	inScript := strings.Contains(text, "-NOPERM") || strings.Contains(text, "The user executing the script")
	if inScript || slices.ContainsFunc(refusals[:], func(r string) bool { return strings.HasPrefix(text, r) }) {
		return fmt.Errorf("real: %w %s on %s: %s: docs/external.md says what the user must be allowed to do", ErrRefused, command, s.Name, text)
	}
	return nil
}
