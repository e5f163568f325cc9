// Package proxytest feeds messages piecewise to the sessions of a protocol. It is for tests only.
package proxytest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

// Converse parses all of up as requests and then all of down as answers, step more bytes at a time,
// and returns the messages, one per line. It fails the test if a session consumes bytes that aren't
// there. says returns the text of a message for the comparison, empty to omit the message; a nil
// says prints every message.
func Converse(t testing.TB, protocol proxy.Protocol, up, down []byte, step int, says func(message any) string) string {
	if says == nil {
		says = func(message any) string { return fmt.Sprintf("%+v", message) }
	}
	k := protocol.Begin()
	var said strings.Builder
	read := func(all []byte, next func([]byte) (any, int, error)) {
		from := 0
		for to := 0; to < len(all); {
			to = min(to+step, len(all))
			for from < to {
				what, n, err := next(all[from:to])
				switch {
				case n < 0 || n > to-from || err != nil && n != 0:
					t.Fatalf("of %d bytes it took %d: %v", to-from, n, err)
				case err != nil:
					fmt.Fprintln(&said, "refused")
					return
				}
				if n == 0 {
					break
				}
				if text := says(what); text != "" {
					fmt.Fprintf(&said, "%d %s\n", n, text)
				}
				from += n
			}
		}
	}
	read(up, func(b []byte) (any, int, error) { what, n, err := k.Request(b); return what, n, err })
	read(down, func(b []byte) (any, int, error) { what, n, err := k.Reply(b); return what, n, err })
	return said.String()
}

// PartsText returns the texts of parts, with their values.
func PartsText(parts []proxy.Part) string {
	var list []string
	for _, p := range parts {
		text := p.Text
		if len(p.Values) > 0 {
			text += fmt.Sprintf(" %q", p.Values)
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}
