package importrule

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// banned are words that say nothing about what they name: private metaphors, pronouns, and verbs for
// everything. docs/glossary.md has the field's terms.
var banned = []string{
	"ours", "others", "kin", "kept", "again", "alike", "says", "told", "tell", "tells", "hands", "handed", "house",
	"lot", "purse", "fate", "fates", "halves", "look", "looks", "guest", "guests", "turns", "ways", "rehearsal",
	"venue", "remarks", "upfront", "patient", "sharing", "mapped", "soaked", "crew", "heart", "trifle", "family",
	"printed", "alone", "rig", "tale", "moments", "survey", "whose", "anew", "owed", "needy", "deed", "heeds",
	"came", "aside", "because",
}

// TestNames checks that no file, and nothing that is declared in a package, its types and its structs,
// has a banned word as its name. Names in tests and of local variables are not checked.
func TestNames(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && file != root && (strings.HasPrefix(name, ".") || name == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		for _, name := range declared(t, file) {
			if slices.Contains(banned, strings.ToLower(name)) {
				t.Errorf("%s: %s says nothing about what it names: take a term of docs/glossary.md", strings.TrimPrefix(file, root+"/"), name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// declared returns the names that a file declares, and its own.
func declared(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	base, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".go"), "_")
	names := []string{base, parsed.Name.Name}
	fields := func(list *ast.FieldList) {
		for _, f := range list.List {
			for _, name := range f.Names {
				names = append(names, name.Name)
			}
		}
	}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names = append(names, name.Name)
					}
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
					switch of := s.Type.(type) {
					case *ast.StructType:
						fields(of.Fields)
					case *ast.InterfaceType:
						fields(of.Methods)
					}
				}
			}
		}
	}
	return names
}
