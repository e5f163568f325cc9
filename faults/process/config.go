package process

import (
	"fmt"
	"os"
	"strings"
)

// A config is the text of a configuration file.
type config struct{ text strings.Builder }

// set adds a line. Arguments may hold anything but control characters.
func (c *config) set(name string, args ...any) {
	c.text.WriteString(name)
	for _, arg := range args {
		c.text.WriteByte(' ')
		c.text.WriteString(quote(fmt.Sprint(arg)))
	}
	c.text.WriteByte('\n')
}

// write writes the file, which holds a password, for nobody else to read.
func (c *config) write(file string) error {
	return os.WriteFile(file, []byte(c.text.String()), 0o600)
}

// quote returns a word as Redis reads it back.
func quote(word string) string {
	if word != "" && !strings.ContainsAny(word, " \\\"'#") {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

// common adds what servers and sentinels share.
func (c *config) common(bind string, port int, password, dir, log string) {
	c.set("bind", bind)
	c.set("port", port)
	c.set("protected-mode", "yes")
	c.set("requirepass", password)
	c.set("dir", dir)
	c.set("logfile", log)
	c.set("loglevel", "notice")
	c.set("daemonize", "no")
}

// Settings are what differs between the configurations of two servers.
type Settings struct {
	// Bind is the address to listen at, and Port the port.
	Bind string
	Port int
	// Password is as in [real.ServerSpec].
	Password string
	// Dir is the directory for data, and Log the file to log to; empty means
	// standard output.
	Dir, Log string
	// Data counts how often the server has been started without data: what it
	// wrote under another number it doesn't find.
	Data int
}

// ServerConfig returns the text of a server's configuration file, for hosts of
// any kind: a server that runs elsewhere must behave alike.
func ServerConfig(s Settings) string { return serverConfig(s).text.String() }

// serverConfig is a server's configuration. Only what Redis 6 knows may stand
// in it.
func serverConfig(s Settings) *config {
	var c config
	c.common(s.Bind, s.Port, s.Password, s.Dir, s.Log)
	c.set("masterauth", s.Password)
	// A limit of a thousand files is common, and a server that can't have
	// all that it wants says so at length.
	c.set("maxclients", 900)
	c.set("tcp-backlog", 128)

	// What was acknowledged has reached the system, and outlives the
	// process, though not the machine.
	c.set("save", "")
	c.set("appendonly", "yes")
	c.set("appendfsync", "no")
	c.set("appendfilename", fmt.Sprintf("appendonly-%d.aof", s.Data))
	c.set("auto-aof-rewrite-percentage", 0)

	// Expired keys go, and a child that has ended is noticed, within 2 ms
	// rather than 100: a replica takes over its data that much sooner.
	c.set("hz", 500)
	c.set("dynamic-hz", "no")
	// Its sleep ends at a wall clock's time: behind a clock that was set back
	// it would never sleep.
	c.set("jemalloc-bg-thread", "no")

	// A replica is in sync some 10 ms after it has connected. It would be
	// without a file, too, but then the primary holds the stream back until
	// the replica acknowledges the transfer; if that comes before it knows
	// that its child has ended, the next one, a second later, starts it.
	c.set("repl-diskless-sync", "no")
	c.set("repl-diskless-load", "on-empty-db")
	c.set("repl-ping-replica-period", 1)
	return &c
}
