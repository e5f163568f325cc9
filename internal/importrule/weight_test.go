package importrule

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestClientIsCheapToCompile checks that a package that names a client of go-redis compiles to little
// code. A type argument such as weak.Pointer[Client] in go-redis makes the compiler generate the
// client's 700 methods twice in every such package, here and in the modules of users: 8 MB of code
// and 1.6 s of processor time each (docs/adr/010-light-core.md).
func TestClientIsCheapToCompile(t *testing.T) {
	const most = 3 << 20
	if _, err := os.Stat("../../go.mod"); err != nil { // go test runs the test again if the file changes
		t.Fatal(err)
	}
	out, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", Module+"/internal/rediscli").Output()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > most {
		t.Errorf("internal/rediscli compiles to %d bytes, want at most %d: has go-redis's Client become a type argument?", info.Size(), most)
	}
}
