package stdio_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/stdio"
)

// Only a file that the runtime watches takes a deadline. The descriptor must
// outlive the file that it was made from.
func TestInputIsWatched(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	in := stdio.Input(os.NewFile(r.Fd(), "input")) // Fd makes it a file that blocks, as one's standard input
	defer in.Close()
	r.Close()
	runtime.GC()
	if err := in.SetReadDeadline(time.Now()); err != nil && runtime.GOOS != "windows" {
		t.Errorf("the runtime doesn't watch it: %v", err)
	}
	if err := in.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if n, err := in.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
}
