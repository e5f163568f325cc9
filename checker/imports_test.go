package checker

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestImports checks that the package imports only the standard library, linear, a reader of lines and
// the table of Redis commands, which import nothing else.
func TestImports(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files (%v)", err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			// A path of the standard library has no dot in its first element.
			first, _, _ := strings.Cut(path, "/")
			ours := path == "github.com/lockfault/lockfault/checker/linear" || path == "github.com/lockfault/lockfault/internal/jsonscan" ||
				path == "github.com/lockfault/lockfault/internal/rediscmd"
			if strings.Contains(first, ".") && !ours {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}
