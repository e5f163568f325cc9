package stdio_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/stdio"
)

// kept is a copy of standard output, as loggers make it when they are initialised.
var kept = os.Stdout

// The test binary doubles as a program that speaks on its standard output.
func TestMain(m *testing.M) {
	if os.Getenv("STDIO_TEST_PROGRAM") == "" {
		os.Exit(m.Run())
	}
	out, err := stdio.Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("by fmt")
	fmt.Fprintln(kept, "by a copy")
	println("by println")
	fmt.Fprintln(out, "spoken")
}

func TestOutputIsOnlyWhatIsSpoken(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STDIO_TEST_PROGRAM=yes")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" { // the copy still writes there
		return
	}
	if got, want := stdout.String(), "spoken\n"; got != want {
		t.Errorf("standard output has %q, want %q", got, want)
	}
	if got, want := stderr.String(), "by fmt\nby a copy\nby println\n"; got != want {
		t.Errorf("standard error has %q, want %q", got, want)
	}
}
