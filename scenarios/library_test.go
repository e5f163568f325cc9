package scenarios_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/scenarios"
)

func TestLibrary(t *testing.T) {
	scripts, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scenarios.OfServices() {
		script, err := scenarios.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, script)
	}
	for _, script := range scripts {
		t.Run(script.Name, func(t *testing.T) {
			src := scenarios.Source(script.Name)
			if got := string(script.Format()); got != string(src) {
				t.Errorf("not in canonical form; lockfault fmt makes it\n%s", got)
			}
			if len(script.Doc) == 0 || !strings.HasSuffix(script.Doc[0], ".") {
				t.Error("the first line of the head comment is not a sentence of its own")
			}
			if len(script.Sources()) == 0 {
				t.Error("no source is named")
			}
		})
	}
}

func TestNamesAreTheFiles(t *testing.T) {
	for dir, names := range map[string][]string{"library": scenarios.Names(), "services": scenarios.OfServices()} {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, file := range files {
			found = append(found, strings.TrimSuffix(file.Name(), ".txt"))
		}
		if listed := slices.Sorted(slices.Values(names)); !slices.Equal(listed, found) {
			t.Errorf("of %s %q are listed, the folder holds %q", dir, listed, found)
		}
	}
}

func TestLookup(t *testing.T) {
	script, err := scenarios.Lookup("getset-race")
	if err != nil {
		t.Fatal(err)
	}
	if script.Name != "getset-race" {
		t.Errorf("got %q", script.Name)
	}
	for name, want := range map[string]string{
		"getset-rase":       `no scenario is called "getset-rase": did you mean "getset-race"?`,
		"elephant":          `no scenario is called "elephant"`,
		"../library":        `no scenario is called "../library"`,
		"../library.go\x00": `no scenario is called "../library.go\x00"`,
	} {
		if _, err := scenarios.Lookup(name); err == nil || err.Error() != want {
			t.Errorf("Lookup(%q): got %v, want %s", name, err, want)
		}
	}
}
