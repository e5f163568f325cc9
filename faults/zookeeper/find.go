package zookeeper

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/lockfault/lockfault/faults/real/daemon"
)

// A Program is an installation of ZooKeeper and its Java.
type Program struct {
	// Java is the path of the java program.
	Java string
	// Classes is the class path, in the format of Java's -cp.
	Classes string
}

// debian is the path of the classes in Debian's package. The archive's manifest names the archives
// that it needs.
const debian = "/usr/share/java/zookeeper.jar"

// Find returns ZooKeeper, version 3.7 or newer: from ZOOKEEPER_HOME, from the installation of the
// zkServer.sh on PATH, or from Debian's package. Java is that of JAVA_HOME, or java on PATH. Find
// doesn't check the version. The error is a *[daemon.MissingError].
func Find() (Program, error) {
	p, err := find()
	if err != nil {
		return Program{}, &daemon.MissingError{What: "ZooKeeper", Why: err,
			Cure: "install it and Java (apt-get install zookeeper default-jre-headless, brew install zookeeper), or say where it is with ZOOKEEPER_HOME"}
	}
	return p, nil
}

func find() (Program, error) {
	java, err := findJava()
	if err != nil {
		return Program{}, err
	}
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		if classes := classesOf(home); classes != "" {
			return Program{java, classes}, nil
		}
		return Program{}, fmt.Errorf("ZOOKEEPER_HOME is %s, where there is no lib/zookeeper-*.jar", home)
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
		// Without a logging implementation nothing is logged.
		return Program{java, debian + ":" + filepath.Join(filepath.Dir(debian), "slf4j-simple.jar")}, nil
	}
	return Program{}, errors.New("ZOOKEEPER_HOME is not set, and no zkServer.sh on PATH")
}

func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return exec.LookPath(filepath.Join(home, "bin", "java"))
	}
	return exec.LookPath("java")
}

// classesOf returns the class path of an installation in a directory, empty if there is none.
func classesOf(home string) string {
	for _, lib := range []string{filepath.Join(home, "lib"), filepath.Join(home, "libexec", "lib")} {
		if found, err := filepath.Glob(filepath.Join(lib, "zookeeper-[0-9]*.jar")); err == nil && len(found) > 0 {
			return filepath.Join(lib, "*")
		}
	}
	return ""
}

// command returns the command of a member, given the directories of the host and of the member. The
// process itself is the server, so that stopping the process stops the server.
func (p Program) command(host, dir string) *exec.Cmd {
	cmd := exec.Command(p.Java,
		// Small, and quick to start: a member serves a few clients for some seconds.
		"-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
		// Write no files outside the directory.
		"-XX:-UsePerfData", "-XX:+DisableAttachMechanism", "-XX:ErrorFile="+filepath.Join(dir, "crash.log"), "-Djava.io.tmpdir="+dir,
		"-Djava.net.preferIPv4Stack=true",
		// During an election a member repeats its vote every 500 ms, instead of at growing
		// intervals: messages to a member that was not running yet are lost.
		"-Dzookeeper.fastleader.maxNotificationInterval=500",
		"-Dzookeeper.jmx.log4j.disable=true", "-Dzookeeper.audit.enable=false",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.showShortLogName=true",
		"-Dlogback.configurationFile="+filepath.Join(host, logbackFile), "-Dlog4j.configuration=file:"+filepath.Join(host, log4jFile),
		"-cp", p.Classes, "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, configFile),
	)
	cmd.Env = daemon.Environment([]string{"JAVA_TOOL_OPTIONS=", "JDK_JAVA_OPTIONS=", "_JAVA_OPTIONS=", "CLASSPATH="})
	return cmd
}
