package real

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// An UnmanagedServer is a running [Server] of the user. It serves the world's clients, but the
// world can't control its process. Its methods must be safe for concurrent use.
type UnmanagedServer interface {
	Server
	// Login returns the login for clients and for the world.
	Login() Login
	// Trip returns the round-trip time of a command on an undisturbed connection; a delay up to
	// that time is no lateness.
	Trip() time.Duration
	// Sent reports a request to the server, before a client's request is forwarded.
	Sent(words []string)
}

// A Login is the login for a server. The zero value means no login.
type Login struct {
	Username, Password string
	// DB is the number of the database.
	DB int
}

// ErrTooFar reports that a server answers too slowly for the given lease. The reason follows in the
// error text.
var ErrTooFar = errors.New("the server is too far away")

// ErrRefused reports that a server refuses to work, for reasons unrelated to the lock. The reasons
// follow in the error text.
var ErrRefused = errors.New("the server refuses")

// tripsInLease is the number of sequential commands that a lease must have time for. Clients wait
// for a tenth of a lease, and each of their commands also waits for the world's look at the key,
// and perhaps for commands of other clients.
const tripsInLease = 50

// near returns an error if the server is too slow for the lease.
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

// trip returns the maximum duration of a command that is not late.
func (s *server) trip() time.Duration {
	if s.unmanaged != nil {
		return s.unmanaged.Trip()
	}
	return 0
}

// observe reports a request to an unmanaged server before it is forwarded.
func (s *server) observe(words []string) {
	if s.unmanaged != nil {
		s.unmanaged.Sent(words)
	}
}

// refusals are the prefixes of errors by which a server refuses to work for any client.
var refusals = [...]string{"NOPERM", "NOAUTH", "WRONGPASS", "OOM", "MISCONF", "READONLY", "MOVED", "CLUSTERDOWN", "LOADING", "MASTERDOWN"}

// strange matches an error for an unknown command or for unknown arguments, called by a client or
// by its script.
var strange = regexp.MustCompile(`(?i)^ERR.*(unknown (redis )?command|unknown subcommand|syntax error|wrong number of arg|unsupported option)`)

// serves returns an error if a server refused a command for reasons unrelated to the lock: the
// history after that would prove nothing about the lock. Managed servers refuse unknown commands if
// they are too old; their other errors occur only in scenarios about them.
func (s *server) serves(command string, reply []byte) error {
	if len(reply) == 0 || reply[0] != '-' || command == "HELLO" || command == "CLIENT" {
		return nil // clients use these commands to detect features, and work without them
	}
	line, _, _ := bytes.Cut(reply[1:], []byte("\r\n"))
	text := string(line)
	if strange.MatchString(text) {
		return fmt.Errorf("real: %w %s on %s: %s: it is too old for this lock, or the lock is wrong", ErrRefused, command, s.Name, text)
	}
	if s.unmanaged == nil {
		return nil
	}
	// Some versions have no error code for commands that a script may not call.
	inScript := strings.Contains(text, "-NOPERM") || strings.Contains(text, "The user executing the script")
	if inScript || slices.ContainsFunc(refusals[:], func(r string) bool { return strings.HasPrefix(text, r) }) {
		return fmt.Errorf("real: %w %s on %s: %s: docs/external.md says what the user must be allowed to do", ErrRefused, command, s.Name, text)
	}
	return nil
}
