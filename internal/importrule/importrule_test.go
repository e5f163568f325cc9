package importrule

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A pkg is a package and what it imports.
type pkg struct {
	importPath string
	imports    []string
}

// room returns the room that a package of this module lies in: the longest
// directory above it, or itself, that the rule names.
func room(importPath string, rules map[string][]string) (string, bool) {
	dir := strings.TrimPrefix(strings.TrimPrefix(importPath, Module), "/")
	if dir == "" {
		dir = "."
	}
	for ; ; dir = path.Dir(dir) {
		if _, ok := rules[dir]; ok && (dir != "." || importPath == Module) {
			return dir, true
		}
		if dir == "." {
			return "", false
		}
	}
}

func ours(importPath string) bool {
	return importPath == Module || strings.HasPrefix(importPath, Module+"/")
}

// complaints returns what is wrong with the imports of one package.
func complaints(p pkg, rules map[string][]string, standardOnly []string) []string {
	from, ok := room(p.importPath, rules)
	if !ok {
		return []string{p.importPath + " is in no room: name one in internal/importrule, with what it may import"}
	}
	var list []string
	for _, imported := range p.imports {
		if ours(imported) {
			if to, ok := room(imported, rules); ok && to != from && !slices.Contains(rules[from], to) {
				list = append(list, p.importPath+" imports "+imported+", which "+from+" may not")
			}
			continue
		}
		first, _, _ := strings.Cut(imported, "/")
		if strings.Contains(first, ".") && slices.Contains(standardOnly, from) {
			list = append(list, p.importPath+" imports "+imported+", but "+from+" keeps to the standard library")
		}
	}
	return list
}

// packages lists this module's packages with what their files that are not
// tests import. It reads the files itself, for two reasons: a build constraint
// hides no import, and go test knows that its result depends on them.
func packages(t *testing.T) []pkg {
	t.Helper()
	root := filepath.Join("..", "..")
	byDir := map[string]*pkg{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); file != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || anotherModule(file)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		p := byDir[dir]
		if p == nil {
			p = &pkg{importPath: path.Join(Module, filepath.ToSlash(dir))}
			byDir[dir] = p
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if !slices.Contains(p.imports, imported) {
				p.imports = append(p.imports, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var list []pkg
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		list = append(list, *byDir[dir])
	}
	return list
}

// anotherModule reports whether a directory begins a module of its own, which may
// import what it likes.
func anotherModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func TestImports(t *testing.T) {
	list := packages(t)
	seen := map[string]bool{}
	for _, p := range list {
		for _, complaint := range complaints(p, Allowed(), StandardOnly()) {
			t.Error(complaint)
		}
		if r, ok := room(p.importPath, Allowed()); ok {
			seen[r] = true
		}
	}
	// A rule for a room that is gone would let a new one of that name in.
	for r := range Allowed() {
		if !seen[r] {
			t.Errorf("the rule names %s, but there is no package in it", r)
		}
	}
}

// Allowed has no cycles: data flows one way.
func TestTheRuleHasNoCycles(t *testing.T) {
	rules := Allowed()
	const under, done = 1, 2
	state := map[string]int{}
	var visit func(string, []string)
	visit = func(r string, trail []string) {
		switch state[r] {
		case done:
			return
		case under:
			t.Fatalf("a cycle: %s", strings.Join(append(trail, r), " → "))
		}
		state[r] = under
		for _, to := range rules[r] {
			if _, ok := rules[to]; !ok {
				t.Errorf("%s may import %s, which is no room", r, to)
			}
			visit(to, append(trail, r))
		}
		state[r] = done
	}
	for r := range rules {
		visit(r, nil)
	}
}

// heavy returns those of the rooms, and of what they may import however
// indirectly, that are worlds of real servers or know some.
func heavy(rooms []string, rules map[string][]string) (list []string) {
	seen := map[string]bool{}
	var visit func([]string)
	visit = func(rooms []string) {
		for _, r := range rooms {
			if seen[r] {
				continue
			}
			seen[r] = true
			if r != "faults/sim" && r != "faults/topology" && !strings.HasPrefix(r, "faults/sim/") && strings.HasPrefix(r, "faults/") || slices.Contains([]string{"internal/worlds", "internal/cli", "cmd"}, r) {
				list = append(list, r)
			}
			visit(rules[r])
		}
	}
	visit(rooms)
	slices.Sort(list)
	return list
}

func TestLightRoomsReachNoRealServers(t *testing.T) {
	if list := heavy(Light(), Allowed()); len(list) > 0 {
		t.Errorf("the light rooms may reach %s", strings.Join(list, ", "))
	}
	rules := maps.Clone(Allowed())
	rules["internal/vtime"] = []string{"internal/proc"}
	rules["internal/proc"] = []string{"faults/external"}
	if got, want := heavy(Light(), rules), []string{"faults/external", "faults/real", "faults/real/proxy"}; !slices.Equal(got, want) {
		t.Errorf("with a way there, they reach %q, want %q", got, want)
	}
}

// What the light rooms link is what Go says: their own imports don't tell what
// those import.
func TestLightRoomsLinkLittle(t *testing.T) {
	args := []string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}
	for _, r := range Light() {
		args = append(args, Module+"/"+r)
	}
	list := exec.Command("go", args...)
	list.Env = append(os.Environ(), "GOOS=linux") // other systems need no more
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(out)))))
	may := append(LightModules(), Module)
	for _, m := range linked {
		if !slices.Contains(may, m) {
			t.Errorf("the light rooms link %s: if whoever plays in virtual time needs it, name it in LightModules", m)
		}
	}
	for _, m := range may {
		if !slices.Contains(linked, m) {
			t.Errorf("LightModules names %s, which is not linked", m)
		}
	}
}

func TestComplaints(t *testing.T) {
	tests := []struct {
		from, imports string
		wrong         bool
	}{
		{"checker", "sort", false},
		{"checker", "github.com/redis/go-redis/v9", true},
		{"checker", Module + "/faults", true},
		{"internal/oracle", Module + "/checker", false},
		{"reports", Module + "/checker", false},
		{"reports", Module + "/internal/harness", true},
		{"reports", Module + "/faults/sim", true},
		{"strategies", Module + "/checker", true},
		{"strategies", "github.com/redis/go-redis/v9", false},
		{"strategies/thirdparty", Module + "/strategies", false},
		{"scenarios", Module + "/faults", false},
		{"faults", Module + "/scenarios", true},
		{"faults", Module + "/faults/sim", true},
		{"internal/harness", Module + "/internal/cli", true},
		{"internal/harness/client", Module + "/faults/real", true},
		{"internal/harness", Module + "/internal/worlds", true},
		{"internal/worlds", Module + "/faults/docker", false},
		{"internal/cli", Module + "/internal/harness", false},
		{"attic", "sort", true},
	}
	for _, test := range tests {
		p := pkg{importPath: Module + "/" + test.from, imports: []string{test.imports}}
		if got := complaints(p, Allowed(), StandardOnly()); len(got) > 0 != test.wrong {
			t.Errorf("%s imports %s: complaints %q, want some: %v", test.from, test.imports, got, test.wrong)
		}
	}
}
