package cli

import (
	"embed"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/shell"
)

//go:embed start
var start embed.FS

// starting is a file that init writes, and the embedded file that it is made from.
type starting struct{ name, of string }

func startings() []starting {
	return []starting{{"lock.go", "lock.go.txt"}, {"lock_test.go", "lock_test.go.txt"}, {filepath.Join("testdata", "first.txt"), "first.txt"}}
}

func newInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a first lock, script and test",
		Long: `Write a Go package with a lock, a test and a script to start with. DIR is created if it
does not exist (default: the current directory). init never changes an existing file: if
one of its files exists, init writes nothing.

Then replace the lock by your own. docs/locktest.md continues from there.`,
		Example: `  lockfault init mutex
  cd mutex && go mod init example.com/mutex && go get -t . && go test .`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return kit.Usage("%q takes one directory", "init")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return initialise(cmd, dir)
		},
	}
}

// initialise writes the files into dir and prints the next commands.
func initialise(cmd *cobra.Command, dir string) error {
	if dir == "" {
		return kit.Usage("the directory's name is empty: leave it out to write where you are")
	}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	name := packageName(filepath.Base(whole))
	in, err := below.Make(dir, 0o777)
	if err != nil {
		return kit.Usage("can't write there: %v", kit.PathErrorText(err))
	}
	defer in.Close()
	for _, f := range startings() {
		switch _, err := in.Lstat(f.name); {
		case err == nil:
			return kit.Usage("there is %s already, and nothing was written: name another directory", in.Join(f.name))
		case !errors.Is(err, fs.ErrNotExist):
			return kit.Usage("can't write there: %v", kit.PathErrorText(err))
		}
	}
	for _, f := range startings() {
		text, err := start.ReadFile("start/" + f.of)
		if err != nil {
			return err
		}
		if err := createFile(in, f.name, strings.ReplaceAll(string(text), "PACKAGE", name)); err != nil {
			return kit.Usage("can't write there: %v", kit.PathErrorText(err))
		}
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s has a lock, lock_test.go a test of it, and testdata/first.txt a script\n\nnext:\n", filepath.Join(dir, "lock.go"))
	if dir != "." {
		fmt.Fprintf(out, "  cd %s\n", shell.Quote(dir))
	}
	if !inModule(whole) {
		fmt.Fprintf(out, "  go mod init example.com/%s\n", name)
	}
	fmt.Fprintln(out, "  go get -t .\n  go test -v .")
	return nil
}

// createFile creates a file that must not exist, and its parent directories.
func createFile(in *below.Dir, name, text string) error {
	if err := in.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	file, err := in.Create(name, 0o666)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// packageName derives a package name from the name of a directory.
func packageName(dir string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, dir)
	name = strings.TrimLeft(name, "0123456789")
	if name == "" || token.IsKeyword(name) || name == "main" {
		return "mylock"
	}
	return name
}

// inModule reports whether dir or one of its parents has a go.mod.
func inModule(dir string) bool {
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return true
		}
		above := filepath.Dir(dir)
		if above == dir {
			return false
		}
		dir = above
	}
}
