package input

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// direct are the functions that read without a bound or may wait for a pipe.
var direct = map[string][]string{"os": {"ReadFile", "Open"}, "io": {"ReadAll"}, "io/ioutil": {"ReadFile", "ReadAll"}}

// allowed are the files that may call them, with the reason.
var allowed = map[string]string{
	"internal/input/input.go":                    "bounds what it reads",
	"internal/cli/kit/readinput.go":              "waits for a pipe as long as its context lasts",
	"internal/cli/cells/queueworker.go":          "reads what this program wrote",
	"internal/cli/cells/workerprocess.go":        "opens the null device",
	"internal/proc/descendants_linux.go":         "reads /proc",
	"internal/ports/ports.go":                    "reads /proc",
	"internal/schematest/schematest.go":          "is for tests",
	"strategies/internal/strategytest/golden.go": "is for tests",
}

// skipped are directories of programs for the development of this module, and of packages that read
// what they have started or made themselves.
var skipped = []string{"cmd", "examples", "faults", "internal/tools", "internal/queue"}

// TestDirect checks that files from outside are opened by this package.
func TestDirect(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if entry.IsDir() {
			if base := entry.Name(); base == "testdata" || name != "." && strings.HasPrefix(base, ".") || slices.Contains(skipped, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		for _, call := range calls(t, path) {
			if allowed[name] == "" {
				t.Errorf("%s calls %s: use internal/input, which bounds what is read", name, call)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// calls returns the functions of direct that a file mentions.
func calls(t *testing.T, path string) (list []string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{} // by the name of the package in the file
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		name := imported[strings.LastIndex(imported, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = direct[imported]
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := selector.X.(*ast.Ident); ok && of.Obj == nil && slices.Contains(names[of.Name], selector.Sel.Name) {
				list = append(list, of.Name+"."+selector.Sel.Name)
			}
		}
		return true
	})
	return list
}
