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

// Auth holds the password that a link with a tap asks its client for, and the login for the
// upstream. The client shows the password with AUTH or HELLO in the first request of each
// connection; the link then logs in to the upstream in the client's place. Before a correct login,
// neither the tap, the upstream nor the toxics see the connection, and a connection without a
// correct login is closed. The zero value asks for no password.
//
// Links listen on loopback, where any user of the machine can connect, so the link must tell its
// client from strangers. The upstream can't do that: it may ask for no password, and by the time it
// refuses a password the stranger's requests have already been held, counted and forwarded one by
// one. The operating system could, but by other means on each system, and finding the owner of a
// port takes longer than a command. A password of the link needs neither, and the upstream's
// password stays in this process.
type Auth struct {
	// Asks is the password that the client must show; empty asks for none.
	Asks string
	// Username and Password log in to the upstream; if both are empty, the upstream asks for no
	// login.
	Username, Password string
}

const (
	// maxLogin is the maximum length of the first request of a connection, in bytes.
	maxLogin = 4 << 10
	// maxStrangers is the maximum number of a link's connections that may wait for their first
	// request: as many as a client's pool holds. If another connection comes, the oldest one is
	// closed, because a client logs in at once. There is no time limit, because a client may be
	// stopped before its login.
	maxStrangers = 128
)

var (
	errWrong = errors.New("WRONGPASS this is the link of a lockfault client, which shows another password")
	errFirst = errors.New("NOAUTH this is the link of a lockfault client, which shows its password first")
)

// meet reads from a connection until its login is complete. It returns the bytes read, and false if
// the connection is not the client's.
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
		_, _ = fmt.Fprintf(conn, "-%v\r\n", err) // best effort
		return nil, false
	}
}

func (g Auth) opens(shown string) bool {
	return subtle.ConstantTimeCompare([]byte(shown), []byte(g.Asks)) == 1
}

// translate returns the request that replaces a login at the upstream, or nil if the request is not
// a correct login.
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
		// AUTH with one word is an error if the server has no password; with two words, any
		// password is accepted.
		return []string{words[0], name, "none"}
	case g.Username == "" && at == 1:
		return []string{words[0], password}
	}
	return []string{words[0], name, password}
}

// password returns the index of the word that is a login's password, or 0 if the request is not a
// login.
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

// encode returns a request in RESP.
func encode(words []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b
}
