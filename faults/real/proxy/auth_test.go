package proxy_test

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

const secret = "link-password"

// guarded opens a link that asks for a password, to the rig's server.
func (r *rig) guarded(t *testing.T, login proxy.Auth) *proxy.Link {
	t.Helper()
	login.Asks = secret
	l, err := r.proxies.OpenGuarded("A-n1", r.server.addr(), login, r.tap)
	must(t, err)
	return l
}

// The upstream hears its own login in place of the link's, and nothing else is
// changed.
func TestAGuardLogsIn(t *testing.T) {
	none, word, user := proxy.Auth{}, proxy.Auth{Password: "p"}, proxy.Auth{Username: "u", Password: "p"}
	for _, c := range []struct {
		guard      proxy.Auth
		says, asks string
	}{
		{word, "AUTH " + secret, "AUTH p"},
		{word, "auth anybody " + secret, "auth default p"},
		{word, "HELLO 3 AUTH anybody " + secret, "HELLO 3 AUTH default p"},
		{word, "hello 2 setname AUTH auth anybody " + secret, "hello 2 setname AUTH auth default p"},
		{user, "AUTH " + secret, "AUTH u p"},
		{user, "AUTH anybody " + secret, "AUTH u p"},
		{user, "HELLO 2 AUTH default " + secret + " SETNAME x", "HELLO 2 AUTH u p SETNAME x"},
		{none, "AUTH " + secret, "AUTH default none"},
		{none, "AUTH anybody " + secret, "AUTH default none"},
		{none, "HELLO 2 AUTH default " + secret + " SETNAME x", "HELLO 2 SETNAME x"},
	} {
		t.Run(c.says, func(t *testing.T) {
			r := newRig(t)
			client := dial(t, r.guarded(t, c.guard).Addr())
			client.send(c.says, "GET lock", "AUTH wrong", "ECHO "+secret, c.says)
			want := []string{c.asks, "GET lock", "AUTH wrong", "ECHO " + secret, c.asks}
			client.want(want...)
			if got := r.server.requests(); !slices.Equal(got, want) {
				t.Errorf("the server was asked %q; want %q", got, want)
			}
			if got := r.tap.sending()[0]; got != "> "+c.asks {
				t.Errorf("the tap saw %q", got)
			}
		})
	}
}

// The first request may come in pieces.
func TestAGuardIsPatient(t *testing.T) {
	r := newRig(t)
	c := dial(t, r.guarded(t, proxy.Auth{Password: "p"}).Addr())
	for _, b := range request("AUTH", secret) {
		c.write(string(b))
		time.Sleep(time.Millisecond)
	}
	c.want("AUTH p")
}

// strangers are what others than the client say first, and what they hear.
var strangers = map[string]struct{ says, hears string }{
	"nothing":             {"", ""},
	"a request":           {string(request("SET", "lock", "stranger")), "-NOAUTH"},
	"a handshake":         {string(request("HELLO", "3")), "-NOAUTH"},
	"a line":              {"SET lock stranger\r\n", "-NOAUTH"},
	"an empty line":       {"\r\n", "-NOAUTH"},
	"no words":            {"*0\r\n", "-NOAUTH"},
	"half a login":        {"*2\r\n$4\r\nAUTH\r\n$13\r\nlink-", ""},
	"half a request":      {"*3\r\n$3\r\nSET\r\n$4\r\nlo", ""},
	"garbage":             {"*x\r\n\x00\xff", ""},
	"HTTP":                {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "-NOAUTH"},
	"too much":            {"*2\r\n$4\r\nAUTH\r\n$99999999\r\n" + strings.Repeat("x", 1<<16), ""},
	"a wrong password":    {string(request("AUTH", "link-passwore")) + string(request("SET", "lock", "stranger")), "-WRONGPASS"},
	"the beginning of it": {string(request("AUTH", "link-pass")), "-WRONGPASS"},
	"no password":         {string(request("AUTH", "")), "-WRONGPASS"},
	"a wrong HELLO":       {string(request("HELLO", "3", "AUTH", "default", "x")), "-WRONGPASS"},
	"it as a name":        {string(request("HELLO", "3", "SETNAME", secret)), "-NOAUTH"},
	"it as a user":        {string(request("AUTH", secret, "x")), "-WRONGPASS"},
	"it somewhere else":   {string(request("AUTH", "x", "y", secret)), "-NOAUTH"},
	"it behind something": {string(request("PING")) + string(request("AUTH", secret)), "-NOAUTH"},
}

// TestAGuardKeepsStrangersOut checks that neither the tap nor the server sees a stranger's
// connection or its bytes.
func TestAGuardKeepsStrangersOut(t *testing.T) {
	for name, s := range strangers {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			link := r.guarded(t, proxy.Auth{Password: "p"})
			conn := dial(t, link.Addr())
			_, _ = io.WriteString(conn, s.says) // may be cut short
			conn.CloseWrite()
			heard, _ := io.ReadAll(conn.in) // whose end may be a reset
			if !strings.HasPrefix(string(heard), s.hears) || s.hears == "" && len(heard) > 0 {
				t.Errorf("it heard %q; want %q", heard, s.hears)
			}
			must(t, link.Close())
			r.tap.mu.Lock()
			defer r.tap.mu.Unlock()
			if len(r.tap.states) > 0 || len(r.tap.sent) > 0 {
				t.Errorf("the tap saw %d connections and %q", len(r.tap.states), r.tap.sent)
			}
			r.server.mu.Lock()
			defer r.server.mu.Unlock()
			if len(r.server.conns) > 0 || len(r.server.asked) > 0 {
				t.Errorf("the server saw %d connections and %q", len(r.server.conns), r.server.asked)
			}
		})
	}
}

// Thousands of strangers keep no client out, and no more of them stay than a few.
func TestAGuardInACrowd(t *testing.T) {
	r := newRig(t)
	link := r.guarded(t, proxy.Auth{Password: "p"})
	client := dial(t, link.Addr())
	client.send("AUTH " + secret)
	client.want("AUTH p")
	var all sync.WaitGroup
	var mu sync.Mutex
	var crowd []net.Conn
	for i := range 4 {
		all.Go(func() {
			for j := range 500 {
				conn, err := net.Dial("tcp", link.Addr())
				if err != nil {
					continue // it had to go already
				}
				if j%2 == i%2 {
					_, _ = fmt.Fprint(conn, "*2\r\n$4\r\nAU") // and no more
				}
				mu.Lock()
				crowd = append(crowd, conn)
				mu.Unlock()
			}
		})
	}
	for i := range 50 {
		client.ask(fmt.Sprintf("GET %d", i))
	}
	all.Wait()
	late := dial(t, link.Addr())
	late.send("AUTH " + secret)
	late.want("AUTH p")
	client.ask("PING")
	eventually(t, "most of the crowd gone", func() bool {
		crowd = slices.DeleteFunc(crowd, func(conn net.Conn) bool {
			conn.SetReadDeadline(time.Now().Add(time.Millisecond)) // over already, perhaps
			_, err := conn.Read(make([]byte, 1))
			timeout, ok := err.(net.Error)
			return !ok || !timeout.Timeout()
		})
		return len(crowd) <= 128
	})
	for _, conn := range crowd {
		conn.Close()
	}
	must(t, link.Close())
	if got := r.tap.ended(); got != 2 {
		t.Errorf("the tap saw %d connections; want the client's two", got)
	}
}

// TestResetsReachThoseWhoWait checks that connections without a login are reset with a link's other
// connections, and at its close.
func TestResetsReachThoseWhoWait(t *testing.T) {
	for name, reset := range map[string]func(*proxy.Link) error{
		"Reset":    func(l *proxy.Link) error { l.Reset(); return nil },
		"Redirect": func(l *proxy.Link) error { return l.Redirect("127.0.0.1:1") },
		"Close":    (*proxy.Link).Close,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			link := r.guarded(t, proxy.Auth{Password: "p"})
			c := dial(t, link.Addr())
			refused := dial(t, link.Addr()) // accepted after the other
			refused.send("PING")
			_, err := io.ReadAll(refused.in)
			must(t, err)
			must(t, reset(link))
			c.wantReset()
		})
	}
}
