package cli_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockfault/lockfault/internal/cli"
)

// terminalPair returns both ends of a terminal of 100 columns and 30 lines: what a person has, and
// what programs have.
func terminalPair(t *testing.T) (person, program *os.File) {
	t.Helper()
	// Not blocking, so that a read ends when the file is closed.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	person = os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { person.Close() })
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: 100, Row: 30})
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// A show is a command on a terminal.
type show struct {
	t      *testing.T
	cmd    *exec.Cmd
	person *os.File
	wrote  chan string
	text   string // that came so far
}

func startShow(t *testing.T, env []string, args ...string) *show {
	t.Helper()
	person, program := terminalPair(t)
	s := &show{t: t, person: person, wrote: make(chan string), cmd: exec.Command("lockfault", args...)}
	s.cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "NO_COLOR="), env...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = program, program, program
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill() })
	program.Close() // so that what is read ends with the command
	go func() {
		defer close(s.wrote)
		for buffer := make([]byte, 1<<16); ; {
			n, err := person.Read(buffer)
			s.wrote <- string(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	return s
}

// await waits until a text has come. Of a screen that changes only what is new comes.
func (s *show) await(text string) {
	s.t.Helper()
	for late := time.After(30 * time.Second); !strings.Contains(s.text, text); {
		select {
		case more, ok := <-s.wrote:
			if s.text += more; !ok {
				s.t.Fatalf("it ended without %q:\n%q", text, s.text)
			}
		case <-late:
			s.t.Fatalf("%q did not come:\n%q", text, s.text)
		}
	}
}

// press types keys, and forgets what came before.
func (s *show) press(keys string) {
	s.text = ""
	if _, err := io.WriteString(s.person, keys); err != nil {
		s.t.Error(err)
	}
}

// ends waits for the end, and checks that the terminal is as it was.
func (s *show) ends(status int) {
	s.t.Helper()
	for late := time.After(30 * time.Second); ; {
		select {
		case more, ok := <-s.wrote:
			if s.text += more; ok {
				continue
			}
		case <-late:
			s.t.Fatalf("it does not end:\n%q", s.text)
		}
		break
	}
	err := s.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	if got := s.cmd.ProcessState.ExitCode(); got != status {
		s.t.Errorf("exit status %d, want %d:\n%q", got, status, s.text)
	}
	for _, code := range []string{"\x1b[?1049l", "\x1b[?25h"} { // the screen of before, and a cursor
		if !strings.Contains(s.text, code) {
			s.t.Errorf("%q did not come at the end:\n%q", code, s.text)
		}
	}
}

func TestPlayOnATerminal(t *testing.T) {
	s := startShow(t, nil, "play", "getset-timestamp", "getset-race")
	s.await("1 of 81")
	s.await("esc all")
	s.press("nnn")
	s.await("M ← n1")
	s.press("G")
	s.await("as expected: unreleasable")
	if !strings.Contains(s.text, "\x1b[1m") {
		t.Errorf("nothing stands out:\n%q", s.text)
	}
	s.press("g")
	s.await("nothing has returned")
	s.press("r") // and time goes on without a key
	s.await("M → n1")
	s.press("q")
	s.ends(cli.ExitOK)
}

// The status is that of trace, whatever key ends the play, and NO_COLOR is heard.
func TestPlaySaysHowTheCellIs(t *testing.T) {
	script := filepath.Join(t.TempDir(), "mine.txt")
	if err := os.WriteFile(script, []byte("clients A\nA acquire\nA release\n\nexpect overlap\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := startShow(t, []string{"NO_COLOR=1"}, "play", "fenced", script)
	s.await("esc all")
	s.press("G")
	s.await("not as expected: ")
	s.press("\x03")
	s.ends(cli.ExitDiffers)
	for _, code := range []string{"\x1b[1m", "\x1b[1;31m", "\x1b[31m"} {
		if strings.Contains(s.text, code) {
			t.Errorf("%q came in spite of NO_COLOR", code)
		}
	}
}

func TestPlayIsInterrupted(t *testing.T) {
	s := startShow(t, nil, "play", "fenced", "contention")
	s.await("esc all")
	s.press("r")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.ends(cli.ExitInterrupted)
	if !strings.Contains(s.text, "lockfault: interrupted") {
		t.Errorf("nothing says why it ended:\n%q", s.text)
	}
}

// Other commands ask a terminal nothing before they begin: a library for terminals may do so as
// soon as it is linked, and where nobody answers it waits for seconds.
func TestNoCommandAsksTheTerminal(t *testing.T) {
	s := startShow(t, nil, "version")
	s.await("lockfault")
	for range s.wrote {
	}
	if err := s.cmd.Wait(); err != nil || strings.Contains(s.text, "\x1b") {
		t.Errorf("%v: it wrote %q", err, s.text)
	}
}
