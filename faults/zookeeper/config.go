package zookeeper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lockfault/lockfault/internal/ports"
)

// longest is the longest session that is given. Unless it is said, that is 20 ticks.
const longest = 24 * time.Hour

// writeConfig writes what the member reads when it starts, which will listen on that port of loopback for
// clients.
func (s *server) writeConfig(port int) error {
	data := filepath.Join(s.Dir(), "data")
	lines := []string{
		"tickTime=" + milliseconds(tick),
		"initLimit=" + strconv.Itoa(int(joining/tick)),
		"syncLimit=" + strconv.Itoa(int(silence/tick)),
		"maxSessionTimeout=" + milliseconds(longest),
		"dataDir=" + data,
		"clientPort=" + strconv.Itoa(port),
		"clientPortAddress=" + ports.Loopback,
		"maxClientCnxns=0",
		"admin.enableServer=false",
		// What it is, and which sessions there are, is told without a password, but none of theirs.
		"4lw.commands.whitelist=srvr,dump",
		// What was promised is with the system when it is promised, which outlives a process that is killed.
		"forceSync=no",
		// Who has said no password is refused whatever he asks for.
		"enforce.auth.enabled=true",
		"enforce.auth.schemes=digest",
		// One alone is an ensemble, too.
		"standaloneEnabled=false",
	}
	for i := range s.host.peers {
		at := s.host.way(s.Number-1, i)
		lines = append(lines, fmt.Sprintf("server.%d=%s:%d:%d", s.host.id(i+1), ports.Loopback, at.data, at.election))
	}
	return errors.Join(
		os.MkdirAll(data, 0o700),
		os.WriteFile(filepath.Join(data, "myid"), []byte(strconv.Itoa(s.host.id(s.Number))), 0o600),
		os.WriteFile(filepath.Join(s.Dir(), configFile), []byte(strings.Join(lines, "\n")+"\n"), 0o600),
	)
}

// configFile is the name of what writeConfig writes.
const configFile = "zoo.cfg"

// id returns the number of a node's member by which ZooKeeper orders them: n1 has the largest, which wins
// elections.
func (h *Host) id(number int) int { return len(h.peers) + 1 - number }

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Logging is set up by whatever library an installation comes with: each is told to write warnings to
// standard output, and nothing else.
const (
	logbackFile = "logback.xml"
	log4jFile   = "log4j.properties"
)

func writeLogging(dir string) error {
	const logback = `<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %-5level %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
`
	const log4j = `log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %-5p %c{1} - %m%n
`
	return errors.Join(
		os.WriteFile(filepath.Join(dir, logbackFile), []byte(logback), 0o600),
		os.WriteFile(filepath.Join(dir, log4jFile), []byte(log4j), 0o600),
	)
}
