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

// longest is the longest session timeout that a server grants. ZooKeeper's default is 20 ticks.
const longest = 24 * time.Hour

// writeConfig writes the member's configuration files. The member will listen on the given loopback
// port for clients.
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
		// The mode and the list of sessions are readable without a password; session passwords are
		// not included.
		"4lw.commands.whitelist=srvr,dump",
		// Confirmed writes have reached the operating system, and survive the kill of a process.
		"forceSync=no",
		// A client that has shown no password is refused for every request.
		"enforce.auth.enabled=true",
		"enforce.auth.schemes=digest",
		// A single member is an ensemble, too.
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

// configFile is the name of the configuration file that writeConfig writes.
const configFile = "zoo.cfg"

// id returns the number by which ZooKeeper orders the member of a node: n1 has the largest, which
// wins elections.
func (h *Host) id(number int) int { return len(h.peers) + 1 - number }

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// The configuration of logging depends on the library of the installation: each file makes its
// library write warnings to standard output, and nothing else.
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
