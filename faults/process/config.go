package process

import (
	"fmt"
	"os"
	"strings"
)

// A config is the text of a configuration file.
type config struct{ text strings.Builder }

// set adds a line. Arguments may contain everything but control characters.
func (c *config) set(name string, args ...any) {
	c.text.WriteString(name)
	for _, arg := range args {
		c.text.WriteByte(' ')
		c.text.WriteString(quote(fmt.Sprint(arg)))
	}
	c.text.WriteByte('\n')
}

// write writes the file, readable only by its owner because it contains a password.
func (c *config) write(file string) error {
	return os.WriteFile(file, []byte(c.text.String()), 0o600)
}

// quote returns a word in a form that Redis parses back to the word.
func quote(word string) string {
	if word != "" && !strings.ContainsAny(word, " \\\"'#") {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

// common adds the settings that servers and sentinels share.
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

// Settings are the differences between the configurations of two servers.
type Settings struct {
	// Bind is the address to listen on, and Port the port.
	Bind string
	Port int
	// Password is the Password of a [real.ServerSpec].
	Password string
	// Dir is the directory for data, and Log the file to log to; an empty Log means standard
	// output.
	Dir, Log string
	// Data counts the starts of the server without data: the server doesn't find data that it wrote
	// under another number.
	Data int
}

// ServerConfig returns the text of a server's configuration file. Hosts of all kinds use it, so
// that their servers behave alike.
func ServerConfig(s Settings) string { return serverConfig(s).text.String() }

// serverConfig returns a server's configuration. It contains only settings that Redis 6 supports.
func serverConfig(s Settings) *config {
	var c config
	c.common(s.Bind, s.Port, s.Password, s.Dir, s.Log)
	c.set("masterauth", s.Password)
	// Systems often limit a process to 1000 files, and a server that can't have all the files it
	// wants logs long warnings.
	c.set("maxclients", 900)
	c.set("tcp-backlog", 128)

	// Acknowledged writes have reached the operating system: they survive the end of the process,
	// but not a crash of the machine.
	c.set("save", "")
	c.set("appendonly", "yes")
	c.set("appendfsync", "no")
	c.set("appendfilename", fmt.Sprintf("appendonly-%d.aof", s.Data))
	c.set("auto-aof-rewrite-percentage", 0)

	// With this frequency, expired keys are deleted and ended children are noticed within 2 ms
	// instead of 100 ms. A replica loads its primary's data that much sooner.
	c.set("hz", 500)
	c.set("dynamic-hz", "no")
	// The thread's sleep ends at a wall clock time: after the clock is set back the thread would
	// never sleep.
	c.set("jemalloc-bg-thread", "no")

	// A replica is in sync about 10 ms after it has connected. A diskless sync is as fast, but then
	// the primary holds back the stream until the replica acknowledges the transfer. If the
	// acknowledgement comes before the primary has noticed the end of its child, only the next
	// acknowledgement, 1 s later, starts the stream.
	c.set("repl-diskless-sync", "no")
	c.set("repl-diskless-load", "on-empty-db")
	c.set("repl-ping-replica-period", 1)
	return &c
}
