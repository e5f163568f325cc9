package handover

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/tempdir"
	"github.com/lockfault/lockfault/internal/version"
)

// A Lock is a lock of a Go package, and the program that has it beside the built-in strategies.
type Lock struct {
	Name string // of the strategy
	File string // the program, in the working directory
}

// IsPackage reports whether an argument names a Go package, or a function of one, and no strategy.
func IsPackage(arg string) bool { return strings.ContainsAny(arg, "./\\") }

// BuildLock builds the program lockfault-NAME in the working directory, with the lock that a package
// has: target is a package as the go command knows it, or a function or variable of one, as in
// "./mylock.New". Taken reports whether a name is that of another strategy; the lock's name is then
// "my-NAME".
//
// What makes the lock is an exported function from strategies.Env to a lock and an error, or an exported
// variable of the type strategies.Strategy with a literal. The program is built from the versions that
// the package's module requires, and nothing is written into the module.
//
// BuildLock blocks until the program is built, and explains the wait on stderr. Its error is one line, or
// context.Canceled if ctx is done first.
func BuildLock(ctx context.Context, target string, taken func(name string) bool, stderr io.Writer) (Lock, error) {
	lock, err := buildLock(ctx, target, taken, stderr)
	if ctx.Err() != nil {
		return Lock{}, context.Canceled
	}
	return lock, err
}

func buildLock(ctx context.Context, target string, taken func(name string) bool, stderr io.Writer) (Lock, error) {
	temp, err := tempdir.Make(os.Getenv("GOTMPDIR"), "lockfault-build-")
	if err != nil {
		return Lock{}, err
	}
	defer temp.Remove() // the next build removes what this one can't
	p, member, err := find(ctx, temp.Path(), target)
	if err != nil {
		return Lock{}, err
	}
	m, err := p.maker(member)
	if err != nil {
		return Lock{}, err
	}
	if m.name == "" {
		if m.name = strategyName(p.Name); taken(m.name) {
			m.name = "my-" + m.name
		}
	}
	renamed := ""
	if strategyName(p.Name) != m.name && !m.value {
		renamed = fmt.Sprintf(", as %s, since another lock is called %s", m.name, strategyName(p.Name))
	}
	file := "lockfault-" + m.name
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	if err := replaceable(file); err != nil {
		return Lock{}, err
	}
	fmt.Fprintf(stderr, "building ./%s, which is lockfault with %s%s (the first time takes a minute or two)\n", file, m.from, renamed)
	return Lock{Name: m.name, File: "." + string(filepath.Separator) + file}, p.build(ctx, temp.Path(), file, m)
}

// replaceable returns an error if a file of that name exists that BuildLock has not built.
func replaceable(file string) error {
	stat, err := os.Lstat(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && stat.Mode().IsRegular() {
		if info, err := buildinfo.ReadFile(file); err == nil && path.Base(info.Path) == mainPackage {
			return nil
		}
	}
	return fmt.Errorf("./%s exists, and lockfault test has not built it: move the file, or work in another directory", file)
}

// A goPackage is what go list says of a package.
type goPackage struct {
	ImportPath, Dir, Name string
	GoFiles               []string
	Module                *struct{ GoMod string }
	Error                 *struct{ Err string }
}

// member matches a function or variable behind a package.
var member = regexp.MustCompile(`^(.+)\.(\p{Lu}\w*)$`)

// find returns the package that the target names, and the name behind it.
func find(ctx context.Context, temp, target string) (*goPackage, string, error) {
	if strings.HasSuffix(target, ".go") {
		return nil, "", fmt.Errorf("%s is a file: name its directory, as in %s", target, "./"+filepath.ToSlash(filepath.Dir(target)))
	}
	pattern, name := target, ""
	if parts := member.FindStringSubmatch(target); parts != nil {
		if _, err := os.Stat(target); err != nil { // no directory of that name
			pattern, name = parts[1], parts[2]
		}
	}
	text, err := output(ctx, "", temp, []string{"list", "-e", "-json=ImportPath,Dir,Name,GoFiles,Module,Error", pattern})
	if err != nil {
		return nil, "", fmt.Errorf("the Go package %s: %w", pattern, err)
	}
	var p goPackage
	decoder := json.NewDecoder(strings.NewReader(text))
	if err := decoder.Decode(&p); err != nil {
		return nil, "", fmt.Errorf("%s names no Go package", pattern)
	}
	switch {
	case decoder.More():
		return nil, "", fmt.Errorf("%s names several Go packages: name one", pattern)
	case p.Error != nil:
		return nil, "", fmt.Errorf("the Go package %s: %s", pattern, cmp.Or(complaint(p.Error.Err), p.Error.Err))
	case p.Name == "main":
		return nil, "", fmt.Errorf("%s is a program, which cannot be imported: if it calls lockfault.Main, type \"go run %s test\" and the name of its strategy", pattern, pattern)
	case p.Module == nil || p.Module.GoMod == "":
		return nil, "", fmt.Errorf("the Go package %s is in no module: run \"go mod init\" there", pattern)
	}
	return &p, name, nil
}

// A maker is what makes the lock.
type maker struct {
	from   string // for messages
	name   string // of the strategy; empty if the program gives it one
	member string // the function or variable
	value  bool   // it is a variable, of the type strategies.Strategy
}

// skeleton is what a package without a maker is advised to have.
const skeleton = `func New(env strategies.Env) (strategies.Lock, error)`

// maker returns the member that makes a lock: the one of that name, or the only one.
func (p *goPackage) maker(name string) (maker, error) {
	var found []maker
	for _, file := range p.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, 0)
		if err != nil {
			return maker{}, err
		}
		found = append(found, makersIn(f)...)
	}
	var names []string
	for _, m := range found {
		m.from = p.ImportPath + "." + m.member
		if names = append(names, m.member); m.member == name || name == "" && len(found) == 1 {
			return m, m.check()
		}
	}
	switch {
	case len(names) == 0:
		return maker{}, fmt.Errorf("%s has nothing that makes a lock: add \"%s\", with strategies from %s/strategies (docs/test.md has an example)", p.ImportPath, skeleton, version.Module)
	case name == "":
		return maker{}, fmt.Errorf("%s makes several locks: name one, as in %s.%s (%s)", p.ImportPath, p.ImportPath, names[0], strings.Join(names, ", "))
	}
	return maker{}, fmt.Errorf("%s.%s does not make a lock; what does: %s", p.ImportPath, name, strings.Join(names, ", "))
}

func (m maker) check() error {
	if m.value && m.name == "" {
		return fmt.Errorf("the name of %s is not a literal: write it as Name: \"my-lock\"", m.from)
	}
	return nil
}

// makersIn returns what makes locks in a file.
func makersIn(f *ast.File) (list []maker) {
	is := func(e ast.Expr, name string) bool {
		s, ok := e.(*ast.SelectorExpr)
		if !ok || s.Sel.Name != name {
			return false
		}
		x, ok := s.X.(*ast.Ident)
		return ok && importsOurs(f, x.Name)
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			t := d.Type
			if d.Recv == nil && d.Name.IsExported() && t.TypeParams == nil && t.Params.NumFields() == 1 && is(t.Params.List[0].Type, "Env") && t.Results.NumFields() == 2 {
				list = append(list, maker{member: d.Name.Name})
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				v, ok := s.(*ast.ValueSpec)
				if !ok || d.Tok != token.VAR || len(v.Names) != 1 || len(v.Values) != 1 || !v.Names[0].IsExported() {
					continue
				}
				if lit, ok := v.Values[0].(*ast.CompositeLit); ok && is(lit.Type, "Strategy") {
					list = append(list, maker{member: v.Names[0].Name, value: true, name: literalName(lit)})
				}
			}
		}
	}
	return list
}

// importsOurs reports whether a file imports strategies or locktest under a name.
func importsOurs(f *ast.File, name string) bool {
	for _, i := range f.Imports {
		imported, _ := strconv.Unquote(i.Path.Value)
		base, ours := strings.CutPrefix(imported, version.Module+"/")
		if !ours || base != "strategies" && base != "locktest" {
			continue
		}
		if i.Name != nil {
			base = i.Name.Name
		}
		if base == name {
			return true
		}
	}
	return false
}

// literalName returns the field Name of a literal, or "" if that is not a literal.
func literalName(lit *ast.CompositeLit) string {
	for _, e := range lit.Elts {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, isName := field.Key.(*ast.Ident)
		if value, ok := field.Value.(*ast.BasicLit); ok && isName && key.Name == "Name" {
			text, _ := strconv.Unquote(value.Value)
			return text
		}
	}
	return ""
}

// notInNames matches what the name of a strategy cannot have.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

func strategyName(name string) string {
	return cmp.Or(strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-"), "lock")
}

// mainPackage is the name of the directory, below that of the package, in which the program seems to be.
const mainPackage = "lockfaultmain"

// source is the main function of the program.
const source = `package main

import (
	"fmt"
	"os"

	"%[1]s"
	"%[1]s/strategies"
	"%[1]s/strategies/all"

	mine "%[2]s"
)

func main() {
	var lock strategies.Strategy = %[3]s
	registry, err := all.Registry().With(lock)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(lockfault.Main(registry))
}
`

// fromFunction is the strategy of a function that makes a lock.
const fromFunction = `strategies.Strategy{
		Name: %q, Summary: %q, Tags: []string{strategies.TagSingle},
		New: func(env strategies.Env) (strategies.Lock, error) {
			lock, err := mine.%s(env)
			if err != nil {
				return nil, err
			}
			return lock, nil
		},
	}`

// build builds the program. The go command takes its main package, and the requirements of that, from
// temp: it sees them as if they were in the module.
func (p *goPackage) build(ctx context.Context, temp, file string, m maker) error {
	value := "mine." + m.member
	if !m.value {
		value = fmt.Sprintf(fromFunction, m.name, "the lock of "+m.from, m.member)
	}
	main, module, overlay := filepath.Join(temp, "main.go"), filepath.Join(temp, "this.mod"), filepath.Join(temp, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(p.Dir, mainPackage, "main.go"): main}})
	if err != nil {
		return err
	}
	required, err := input.Read(p.Module.GoMod, input.Document)
	if err != nil {
		return err
	}
	sums, err := input.Read(strings.TrimSuffix(p.Module.GoMod, ".mod")+".sum", input.Document)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for name, text := range map[string][]byte{
		main: fmt.Appendf(nil, source, version.Module, p.ImportPath, value), overlay: text, module: required, filepath.Join(temp, "this.sum"): sums,
	} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return err
		}
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	_, err = output(ctx, here, temp, []string{"-C", p.Dir, "build", "-mod=mod", "-modfile=" + module, "-overlay=" + overlay, "-o", filepath.Join(here, file), "./" + mainPackage})
	if err == nil {
		return nil
	}
	// Paths of the go command are relative to the package.
	return errors.New(strings.Replace(err.Error(), " ./", " "+filepath.ToSlash(p.Dir)+"/", 1))
}

// Run replaces this process by the program of the lock. It has the arguments of this process, with the
// lock's name in place of arg. Where the system cannot replace a process, Run runs the program and
// returns its exit status.
func (l Lock) Run(arg string) (status int, err error) {
	args := append([]string{l.File}, os.Args[1:]...)
	for i := range args {
		if i > 0 && args[i] == arg {
			args[i] = l.Name
		}
	}
	return replace(l.File, args)
}
