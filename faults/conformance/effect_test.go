package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/faults"
)

// The server itself says which commands only read keys and which change them.
func TestLeavesKeys(t *testing.T) {
	s := startServers(t)
	if version, ok := s.release["redis"]; ok && version[0] < 7 {
		t.Log("before 7.0 a server lists no commands by what they do")
		return
	}
	list := func(category string) []string {
		answer, err := s.admin.do("COMMAND", "LIST", "FILTERBY", "ACLCAT", category)
		if err != nil {
			t.Fatal(err)
		}
		names := strings.FieldsFunc(strings.ToUpper(answer), func(r rune) bool { return strings.ContainsRune("[] \"'{},", r) })
		for i, name := range names {
			names[i], _, _ = strings.Cut(name, "|") // OBJECT|FREQ
		}
		return names
	}
	write, read := list("write"), list("read")
	if len(write) < 80 || len(read) < 60 {
		t.Fatalf("the server lists %d commands that write and %d that read", len(write), len(read))
	}
	for _, command := range write {
		if faults.LeavesKeys(command) {
			t.Errorf("%s writes, and is taken for one that leaves keys as they are", command)
		}
	}
	for _, command := range read {
		if !faults.LeavesKeys(command) && !slices.Contains(write, command) {
			t.Errorf("%s reads, and is taken for one that may write", command)
		}
	}
}
