package importrule

import (
	"fmt"
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

// A ladder answers on which floor a package is.
type ladder []Floor

// floorOf returns the number of a package's floor. The number of floors that have the package must be 1.
func (l ladder) floorOf(importPath string) (floor, floors int) {
	dir := strings.TrimPrefix(strings.TrimPrefix(importPath, Module), "/")
	if dir == "" {
		dir = "."
	}
	for i, f := range l {
		for _, p := range f.Packages {
			below, tree := strings.CutSuffix(p, "/...")
			if p == dir || tree && (below == dir || strings.HasPrefix(dir, below+"/")) {
				floor = i
				floors++
			}
		}
	}
	return floor, floors
}

// key returns the name by which Within knows a package.
func key(importPath string) string {
	if importPath == Module {
		return "."
	}
	return strings.TrimPrefix(importPath, Module+"/")
}

// own reports whether a package is one of this module.
func own(importPath string) bool {
	return importPath == Module || strings.HasPrefix(importPath, Module+"/")
}

// complaints returns what is wrong with the imports of one package.
func (l ladder) complaints(p pkg, standardOnly []string) []string {
	from, floors := l.floorOf(p.importPath)
	if floors != 1 {
		return []string{fmt.Sprintf("%s is on %d floors: name it on one in internal/importrule", p.importPath, floors)}
	}
	var list []string
	for _, imported := range p.imports {
		if own(imported) {
			to, _ := l.floorOf(imported)
			switch {
			case to > from:
				list = append(list, fmt.Sprintf("%s (%s) imports %s of the higher floor %s", p.importPath, l[from].Name, imported, l[to].Name))
			case to == from && !slices.Contains(l[from].Within[key(p.importPath)], key(imported)):
				list = append(list, fmt.Sprintf("%s imports %s of its own floor, %s, which does not list that", p.importPath, imported, l[from].Name))
			}
			continue
		}
		first, _, _ := strings.Cut(imported, "/")
		if strings.Contains(first, ".") && slices.Contains(standardOnly, key(p.importPath)) {
			list = append(list, p.importPath+" imports "+imported+", but keeps to the standard library")
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
	floors := ladder(Floors())
	used := map[[2]string]bool{}
	seen := map[string]bool{}
	for _, p := range packages(t) {
		for _, complaint := range floors.complaints(p, StandardOnly()) {
			t.Error(complaint)
		}
		seen[key(p.importPath)] = true
		for _, imported := range p.imports {
			used[[2]string{key(p.importPath), key(imported)}] = true
		}
	}
	// A name of a package that is gone would let a new one of that name in.
	for _, f := range floors {
		for _, p := range f.Packages {
			if !seen[p] && !strings.HasSuffix(p, "/...") {
				t.Errorf("floor %s has %s, which does not exist", f.Name, p)
			}
		}
		for from, list := range f.Within {
			for _, to := range list {
				if !used[[2]string{from, to}] {
					t.Errorf("floor %s allows %s to import %s, which it does not", f.Name, from, to)
				}
			}
		}
	}
}

// TestTable compares the table of the documentation with the ladder.
func TestTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n"+Table()+"\n") {
		t.Errorf("docs/design.md does not have this table:\n%s", Table())
	}
}

// reached returns the packages that the given ones import, directly or not.
func reached(from []string, list []pkg) map[string]bool {
	imports := map[string][]string{}
	for _, p := range list {
		imports[key(p.importPath)] = p.imports
	}
	seen := map[string]bool{}
	var visit func(string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		for _, imported := range imports[name] {
			if own(imported) {
				visit(key(imported))
			}
		}
	}
	for _, name := range from {
		visit(name)
	}
	return seen
}

func TestLightPackagesReachNoRealServers(t *testing.T) {
	list := packages(t)
	seen := reached(Light(), list)
	for _, name := range Heavy() {
		if seen[name] {
			t.Errorf("the light packages reach %s", name)
		}
		if _, floors := ladder(Floors()).floorOf(Module + "/" + name); floors != 1 {
			t.Errorf("there is no package %s", name)
		}
	}
	// A way there is found.
	list = append(list, pkg{Module + "/internal/vtime", []string{Module + "/faults/external"}})
	if seen := reached(Light(), list); !seen["faults/external"] || !seen["faults/real/proxy"] {
		t.Error("an import of faults/external was not followed")
	}
}

// What the light packages link is what Go says: their own imports do not show the imports of
// other modules.
func TestLightPackagesLinkLittle(t *testing.T) { linkOnly(t, Light(), LightModules(), "LightModules") }

// TestProgramLinksLittle checks what the first "go run ./cmd/lockfault" compiles.
func TestProgramLinksLittle(t *testing.T) {
	linkOnly(t, []string{"cmd/lockfault"}, ProgramModules(), "ProgramModules")
}

// linkOnly checks that the packages link no external packages except those below may, and all of may.
// list is the name of may.
func linkOnly(t *testing.T, from, may []string, list string) {
	t.Helper()
	args := []string{"list", "-deps", "-f", "{{with .Module}}{{$.ImportPath}}{{end}}"}
	for _, name := range from {
		args = append(args, Module+"/"+name)
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOOS=linux") // other systems need no more
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{}
	for _, p := range strings.Fields(string(out)) {
		i := slices.IndexFunc(may, func(m string) bool { return p == m || strings.HasPrefix(p, m+"/") })
		switch {
		case i >= 0:
			linked[may[i]] = true
		case p != Module && !strings.HasPrefix(p, Module+"/"):
			t.Errorf("%s link %s: if they need it, name it in %s", strings.Join(from, ", "), p, list)
		}
	}
	for _, m := range may {
		if !linked[m] {
			t.Errorf("%s names %s, which is not linked", list, m)
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
		{"internal/queue/nats", Module + "/scenarios", true},
		{"internal/cli/kit", Module + "/internal/cli/cells", true},
		{"internal/cli/runcmd", Module + "/internal/cli/cells", false},
		{"internal/cli/runcmd", Module + "/internal/cli/soakcmd", true},
		{"internal/tools/simdiff", Module + "/reports", false},
		{"internal/harness", Module + "/internal/worlds", true},
		{"internal/worlds", Module + "/faults/external", false},
		{"internal/cli", Module + "/internal/harness", false},
		{"attic", "sort", true},
	}
	for _, test := range tests {
		p := pkg{importPath: Module + "/" + test.from, imports: []string{test.imports}}
		if got := ladder(Floors()).complaints(p, StandardOnly()); len(got) > 0 != test.wrong {
			t.Errorf("%s imports %s: complaints %q, want some: %v", test.from, test.imports, got, test.wrong)
		}
	}
}

// TestFiles checks that declarations of a package are used in files of their floor and of higher ones
// only. Methods and fields are not checked: their types are.
func TestFiles(t *testing.T) {
	for dir, rule := range Files() {
		list, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		declares := map[string]string{} // name → file
		needs := map[string][]string{}  // file → names of other files
		for _, path := range list {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			file := strings.TrimSuffix(filepath.Base(path), ".go")
			for name := range parsed.Scope.Objects {
				declares[name] = file
			}
			for _, ident := range parsed.Unresolved {
				needs[file] = append(needs[file], ident.Name)
			}
			needs[file] = append(needs[file], "") // a file that needs nothing is one, too
		}
		for _, complaint := range fileComplaints(rule, declares, needs) {
			t.Errorf("%s: %s", dir, complaint)
		}
	}
}

// fileComplaints returns what is wrong with the references between the files of one package.
func fileComplaints(rule FileFloors, declares map[string]string, needs map[string][]string) (list []string) {
	floor := map[string]int{}
	for i, files := range rule.Floors {
		for _, file := range files {
			floor[file] = i
			if _, there := needs[file]; !there {
				list = append(list, file+".go does not exist")
			}
		}
	}
	for _, from := range slices.Sorted(maps.Keys(needs)) {
		if _, ok := floor[from]; !ok {
			list = append(list, from+".go is on no floor: name it in internal/importrule")
			continue
		}
		for _, name := range needs[from] {
			to, ok := declares[name]
			switch {
			case !ok || to == from:
			case floor[to] > floor[from]:
				list = append(list, fmt.Sprintf("%s.go uses %s of %s.go, which is on a higher floor", from, name, to))
			case floor[to] == floor[from] && floor[to] == rule.Independent:
				list = append(list, fmt.Sprintf("%s.go uses %s of %s.go: move it to a lower floor", from, name, to))
			}
		}
	}
	return list
}

func TestFileComplaints(t *testing.T) {
	rule := FileFloors{Floors: [][]string{{"low"}, {"a", "b"}, {"top"}}, Independent: 1}
	declares := map[string]string{"text": "low", "drawA": "a", "all": "top"}
	for _, test := range []struct {
		from, name string
		wrong      bool
	}{{"a", "text", false}, {"low", "drawA", true}, {"b", "drawA", true}, {"a", "drawA", false}, {"top", "drawA", false}, {"b", "all", true}, {"new", "text", true}} {
		needs := map[string][]string{"low": nil, "a": nil, "b": nil, "top": nil}
		needs[test.from] = append(needs[test.from], test.name)
		if got := fileComplaints(rule, declares, needs); len(got) > 0 != test.wrong {
			t.Errorf("%s uses %s: complaints %q, want some: %v", test.from, test.name, got, test.wrong)
		}
	}
}
