package proxy

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/lockfault/lockfault/internal/resp"
)

// An Auth is what a link with a tap asks for: a password that only its client
// knows, shown by AUTH or HELLO in the first request of each connection. It
// logs in to the upstream in the client's place. Until then there is no
// connection, for the tap, for the upstream or for the toxics, and there never
// is one for anybody else. The zero value asks for nothing.
//
// Links listen on loopback, where any user of the machine can connect, so
// somebody has to tell the client from strangers. The upstream can't: it may
// ask for no password, and by the time it refuses one the stranger's requests
// have been held, counted and let in one by one. The system can, but by other
// means on each, and looking up who owns a port takes longer than a command.
// A password of the link's own needs nothing of either, and the upstream's
// stays here.
type Auth struct {
	// Asks is the password; empty asks for nothing.
	Asks string
	// Username and Password log in to the upstream; two empty ones say that
	// it asks for nothing.
	Username, Password string
}

const (
	// maxLogin is how long the first request of a connection may be, in bytes.
	maxLogin = 4 << 10
	// maxStrangers is how many connections of a link may wait for their first
	// request: as many as a client's pool holds. Whoever came first has to go
	// when there is another one, for a client says who it is at once. No time
	// is set: it may be stopped before it gets to that.
	maxStrangers = 128
)

var (
	errWrong = errors.New("WRONGPASS this is the link of a lockfault client, which shows another password")
	errFirst = errors.New("NOAUTH this is the link of a lockfault client, which shows its password first")
)

// meet reads from a connection until it is known to be the client's, and
// returns what was read, or that it never will be.
func (g Auth) meet(conn net.Conn) (read []byte, ok bool) {
	if g.Asks == "" {
		return nil, true
	}
	chunk := make([]byte, maxLogin)
	for {
		n, err := conn.Read(chunk)
		read = append(read, chunk[:n]...)
		words, used, wrong := resp.Command(read)
		switch at := password(words); {
		case wrong == nil && used == 0 && len(read) <= maxLogin && err == nil:
			continue
		case wrong != nil || used == 0:
			return nil, false
		case at == 0:
			err = errFirst
		case !g.opens(words[at]):
			err = errWrong
		default:
			return read, true
		}
		_, _ = fmt.Fprintf(conn, "-%v\r\n", err) // a courtesy
		return nil, false
	}
}

func (g Auth) opens(shown string) bool {
	return subtle.ConstantTimeCompare([]byte(shown), []byte(g.Asks)) == 1
}

// translate returns the request that takes the place of a login at the link, and
// nil for all others.
func (g Auth) translate(words []string) []string {
	at := password(words)
	if g.Asks == "" || at == 0 || !g.opens(words[at]) {
		return nil
	}
	name, password := g.Username, g.Password
	if name == "" {
		name = "default"
	}
	switch hello := at > 2; {
	case hello && g.Username == "" && password == "":
		return slices.Delete(slices.Clone(words), at-2, at+1)
	case hello:
		words = slices.Clone(words)
		words[at-1], words[at] = name, password
		return words
	case g.Username == "" && password == "":
		// AUTH with one word is an error where there is no password; with
		// two, any will do.
		return []string{words[0], name, "none"}
	case g.Username == "" && at == 1:
		return []string{words[0], password}
	}
	return []string{words[0], name, password}
}

// password returns which word of a request is the password of a login, 0 if
// none is.
func password(words []string) int {
	switch {
	case len(words) < 2:
	case strings.EqualFold(words[0], "AUTH"): // [username] password
		if len(words) <= 3 {
			return len(words) - 1
		}
	case strings.EqualFold(words[0], "HELLO"): // version [AUTH username password] [SETNAME name]
		for i := 2; i < len(words); i += 2 {
			if strings.EqualFold(words[i], "AUTH") && i+2 < len(words) {
				return i + 2
			}
		}
	}
	return 0
}

// encode writes a request.
func encode(words []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b
}
