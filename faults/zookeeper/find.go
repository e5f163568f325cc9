package zookeeper

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A Program is an installation of ZooKeeper, and the Java that it runs on.
type Program struct {
	// Java is the program of that name.
	Java string
	// Classes is where its classes are, as Java's -cp has it.
	Classes string
}

// A MissingError says that there is no ZooKeeper, and what to do.
type MissingError struct{ Why error }

func (e *MissingError) Error() string {
	return fmt.Sprintf("there is no ZooKeeper (%v): install it and Java (apt-get install zookeeper default-jre-headless, brew install zookeeper), or say where it is with ZOOKEEPER_HOME", e.Why)
}

func (e *MissingError) Unwrap() error { return e.Why }

// debian is where Debian's package has the classes. The archive names those that it needs.
const debian = "/usr/share/java/zookeeper.jar"

// Find returns ZooKeeper, of version 3.7 or newer: at ZOOKEEPER_HOME, where zkServer.sh on PATH belongs to, or as
// Debian has it. Java is that of JAVA_HOME, or java on PATH. The error is a *[MissingError].
func Find() (Program, error) {
	java, err := findJava()
	if err != nil {
		return Program{}, &MissingError{err}
	}
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		if classes := classesOf(home); classes != "" {
			return Program{java, classes}, nil
		}
		return Program{}, &MissingError{fmt.Errorf("ZOOKEEPER_HOME is %s, where there is no lib/zookeeper-*.jar", home)}
	}
	for _, name := range []string{"zkServer.sh", "zkServer"} {
		script, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if real, err := filepath.EvalSymlinks(script); err == nil {
			script = real
		}
		if classes := classesOf(filepath.Dir(filepath.Dir(script))); classes != "" {
			return Program{java, classes}, nil
		}
	}
	if _, err := os.Stat(debian); err == nil {
		// Without one of these nothing is logged.
		return Program{java, debian + ":" + filepath.Join(filepath.Dir(debian), "slf4j-simple.jar")}, nil
	}
	return Program{}, &MissingError{errors.New("ZOOKEEPER_HOME is not set, and no zkServer.sh on PATH")}
}

func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return exec.LookPath(filepath.Join(home, "bin", "java"))
	}
	return exec.LookPath("java")
}

// classesOf returns where the classes of an installation in that directory are, empty if there is none.
func classesOf(home string) string {
	for _, lib := range []string{filepath.Join(home, "lib"), filepath.Join(home, "libexec", "lib")} {
		if found, err := filepath.Glob(filepath.Join(lib, "zookeeper-[0-9]*.jar")); err == nil && len(found) > 0 {
			return filepath.Join(lib, "*")
		}
	}
	return ""
}

// command returns the command of a member that has that directory, of a host that has the other one: the
// process itself serves, so that whoever stops it stops the server.
func (p Program) command(host, dir string) *exec.Cmd {
	cmd := exec.Command(p.Java,
		// Small, and quick to start: it serves a handful of clients for some seconds.
		"-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		// Nothing is left anywhere else.
		"-XX:-UsePerfData", "-XX:+DisableAttachMechanism", "-XX:ErrorFile="+filepath.Join(dir, "crash.log"), "-Djava.io.tmpdir="+dir,
		"-Djava.net.preferIPv4Stack=true",
		// Who waits for votes asks again twice a second, not ever more seldom: what was sent to one who was not there yet is lost.
		"-Dzookeeper.fastleader.maxNotificationInterval=500",
		"-Dzookeeper.jmx.log4j.disable=true", "-Dzookeeper.audit.enable=false",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.showShortLogName=true",
		"-Dlogback.configurationFile="+filepath.Join(host, logbackFile), "-Dlog4j.configuration=file:"+filepath.Join(host, log4jFile),
		"-cp", p.Classes, "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, configFile),
	)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH"}, name) // which would change how it is set up
	})
	return cmd
}
