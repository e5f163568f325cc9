package history

import (
	"fmt"
	"strings"
	"testing"
)

// Names come back as they were, and those that were read lately at no cost;
// however many there are, only so many are remembered.
func TestNames(t *testing.T) {
	var n names
	for i := range 100_000 {
		name := fmt.Sprint("name", i%50_000)
		if got := n.of([]byte(name)); got != name {
			t.Fatalf("%q came back as %q", name, got)
		}
	}
	if kept := 2 * len(n.pairs); kept != 2*nameSets {
		t.Errorf("%d names are kept", kept)
	}
	few := [][]byte{[]byte("A"), []byte("B"), []byte("")}
	if allocations := testing.AllocsPerRun(100, func() {
		for _, name := range few {
			n.of(name)
		}
	}); allocations != 0 {
		t.Errorf("%v allocations to read known names", allocations)
	}
	long := strings.Repeat("x", maxName+1)
	if got := n.of([]byte(long)); got != long || n.last == long {
		t.Error("a name that is too long is remembered")
	}
}
