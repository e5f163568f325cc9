package harness

import "testing"

// TestMissingIn checks which errors are gaps of a server, and which are the lock's own.
func TestMissingIn(t *testing.T) {
	for _, c := range []struct{ command, reply, want string }{
		{"SET lock A1 IFEQ A1 PX 30000", "(error) ERR syntax error", "SET IFEQ"},
		{"SET lock A1 PX 30000 NY", "(error) ERR syntax error", ""},
		{"SET lock A1 PX 30000 NX", "OK", ""},
		{"PEXPIRE lock 10 LT", "(error) ERR syntax error", "PEXPIRE LT"},
		{"FCALL release 1 lock A1", "(error) ERR unknown command `FCALL`, with args beginning with: ", "FCALL"},
		{"LOCK lock", "(error) ERR unknown command `LOCK`, with args beginning with: ", ""},
	} {
		if got := missingIn(c.command, c.reply); got != c.want {
			t.Errorf("%s: %s: %q is missing, want %q", c.command, c.reply, got, c.want)
		}
	}
}
