package external

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/rediscli"
)

// An address is the address of a Redis and the login for it.
type address struct {
	at    string // host:port
	login real.Login
	tls   *tls.Config // nil for plain text
}

// ErrAddress marks errors about invalid addresses.
var ErrAddress = errors.New("address")

// String returns the Redis's address and database, without secrets.
func (a address) String() string {
	if a.login.DB != 0 {
		return fmt.Sprintf("%s/%d", a.at, a.login.DB)
	}
	return a.at
}

// parse parses addresses: host:port, or URLs as redis.io and go-redis define them. The errors
// contain no password.
func parse(list []string) ([]address, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("external: no Redis has an %w: give one, such as redis://127.0.0.1:6379", ErrAddress)
	}
	var all []address
	seen := map[string]int{}
	for i, text := range list {
		a, err := parseOne(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("external: the %s %w: %w", nth(i), ErrAddress, err)
		}
		if first, ok := seen[a.String()]; ok {
			return nil, fmt.Errorf("external: the %s %w and the %s are the same database, %s: nodes must be independent of each other",
				nth(first), ErrAddress, nth(i), a)
		}
		seen[a.String()] = i
		all = append(all, a)
	}
	return all, nil
}

func nth(i int) string {
	names := [...]string{"first", "second", "third", "fourth", "fifth"}
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%dth", i+1)
}

// parseOne parses one address. An unescaped password may have ended up in any part of it, so errors
// quote no part.
func parseOne(text string) (address, error) {
	if !strings.Contains(text, "://") {
		text = "redis://" + text
	}
	const form = "write redis://user:password@host:6379/0, with special characters in user and password as %XX"
	u, err := url.Parse(text)
	if err != nil || strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(u.Host, "[") {
		return address{}, errors.New("it can't be read: " + form)
	}
	switch u.Scheme {
	case "redis", "rediss":
	case "unix":
		return address{}, errors.New("clients reach a Redis through a TCP port here, not a Unix socket: let it listen on one")
	default:
		return address{}, errors.New("it begins with neither redis:// nor, for TLS, rediss://")
	}
	for name := range u.Query() {
		if name != "db" && name != "skip_verify" {
			return address{}, errors.New("only db and skip_verify may follow its question mark: scripts say how clients behave")
		}
	}
	skip := false // checked here, because releases of go-redis differ in what they refuse
	if u.Query().Has("skip_verify") {
		skip, err = strconv.ParseBool(u.Query().Get("skip_verify"))
	}
	o, refused := redis.ParseURL(text)
	if err != nil || refused != nil || o.DB < 0 {
		return address{}, errors.New("its database must be a number, and its skip_verify true or false: " + form)
	}
	if o.TLSConfig != nil {
		o.TLSConfig.InsecureSkipVerify = skip
	}
	return address{at: o.Addr, login: real.Login{Username: o.Username, Password: o.Password, DB: o.DB}, tls: o.TLSConfig}, nil
}

// patience is the maximum time for a server to answer requests of this package.
const patience = 5 * time.Second

// options returns the options of the package's own connection to the Redis, which passes no link.
func (a address) options() *redis.Options {
	o := rediscli.Options(a.at)
	o.Username, o.Password, o.DB, o.TLSConfig = a.login.Username, a.login.Password, a.login.DB, a.tls
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolSize = patience, patience, patience, 2
	return o
}

// explain returns an error of one line: why the Redis couldn't be asked, and what to do.
func (a address) explain(err error) error {
	text, do := strings.TrimSuffix(err.Error(), "."), ""
	var op *net.OpError
	var plain tls.RecordHeaderError
	var timeout net.Error
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &cert):
		do = "name the host that its certificate is for and have the system trust who signed it, or add ?skip_verify=true to trust it unseen"
	case errors.As(err, &plain):
		do = "it seems to speak plain text: write redis:// for rediss://"
	case a.tls != nil && strings.Contains(text, "tls: "):
		do = "does it speak TLS on that port, and want no certificate of its clients?"
	case strings.HasPrefix(text, "WRONGPASS"), strings.HasPrefix(text, "NOAUTH"), strings.HasPrefix(text, "ERR AUTH"), strings.HasPrefix(text, "ERR Client sent AUTH"):
		do = "check user and password, as in redis://user:password@host:port"
	case strings.Contains(text, "NOPERM"):
		do = "docs/external.md says what the user must be allowed to do"
	case strings.HasPrefix(text, "ERR DB index"):
		do = fmt.Sprintf("there is no database %d", a.login.DB)
	case errors.As(err, &timeout) && timeout.Timeout(), strings.Contains(text, "i/o timeout"):
		text, do = fmt.Sprintf("no answer within %v", patience), "is the address right, and reachable from here?"
		if a.tls != nil {
			do += " does it speak TLS on that port?"
		}
	case errors.As(err, &op) && op.Op == "dial":
		do = "is the address right, and does a Redis listen there?"
	case a.tls == nil && (text == "EOF" || errors.As(err, &op)):
		do = "does a Redis listen there, and in plain text? write rediss:// for TLS"
	}
	if do != "" {
		do = ": " + do
	}
	return fmt.Errorf("external: %s: %w%s", a, briefError{text, err}, do)
}

// briefError replaces the text of an error.
type briefError struct {
	text string
	err  error
}

func (e briefError) Error() string { return e.text }
func (e briefError) Unwrap() error { return e.err }
