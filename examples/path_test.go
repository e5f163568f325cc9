package examples

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/worlds"
)

// What the page has in its blocks, by the info strings of their fences. Any other
// fails the test.
const (
	typed   = "sh"       // commands, which end with 0; what they print isn't shown
	shown   = "console"  // commands behind "$ ", and what they print below them
	written = "go"       // a file, whose name is the last one that the paragraph above has
	script  = "python"   // the same
	aside   = "go aside" // nothing that the path needs
)

// A block is a fenced one of a page.
type block struct {
	line int    // of its opening fence, from 1
	info string // of that fence
	file string // that the paragraph above names at its end
	text []string
}

var fileName = regexp.MustCompile("`([a-z_/]+\\.(?:go|py))`[^`]*:$")

// blocks returns a page's blocks, in order.
func blocks(page []string) (list []block) {
	var open *block
	above := "" // the last line that is not empty
	for i, line := range page {
		switch info, fence := strings.CutPrefix(line, "```"); {
		case fence && open == nil:
			open = &block{line: i + 1, info: info}
			if name := fileName.FindStringSubmatch(above); name != nil {
				open.file = name[1]
			}
		case fence:
			list, open, above = append(list, *open), nil, ""
		case open != nil:
			open.text = append(open.text, line)
		case line != "":
			above = line
		}
	}
	return list
}

// A path is somebody who follows a page.
type path struct {
	*testing.T
	repository string
	dir        string // where they are
	bin        string // where what they install is
}

// go-redis logs each connection that breaks, with a line of its source.
var logged = regexp.MustCompile(`(?m)^redis: .*\n`)

// What package testing says of the time that something took.
var took = regexp.MustCompile(`(\(|(?m:^ok .*\t)|(?m:^FAIL.*\t))\d+\.\d+s`)

// The last line of the command test says how long it took.
var whole = regexp.MustCompile(`(?m)^(tried: .*; )\d+s$`)

// Times of clients that run in real time.
var seconds = regexp.MustCompile(`\b\d+\.\d+s\b`)

// What a command says on the way depends on how long it takes.
var progress = regexp.MustCompile(`(?m)^\d+ of \d+ (searches|cells).*\n`)

var late = regexp.MustCompile(`(?m)^the machine was late: .*\n`)

// shell runs what somebody typed, and returns what a terminal would show; what stands
// on standard error comes last in a pipeline, where the two are in no order.
func (p *path) shell(command string) (string, error) {
	cmd := exec.CommandContext(p.Context(), "sh", "-c", command)
	cmd.Dir = p.dir
	// Everything that is needed is in the module cache by now.
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOWORK=off", "LOCKFAULT_FOR=1h", // however slow the machine is
		"PATH="+p.bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	var out, errors strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errors
	if !strings.Contains(command, "|") {
		cmd.Stderr = &out
	}
	err := cmd.Run()
	return out.String() + errors.String(), err
}

// types does what one line of the page says, and returns what it prints.
func (p *path) types(command string) (string, error) {
	if dir, ok := strings.CutPrefix(command, "cd "); ok {
		p.dir = filepath.Join(p.dir, dir)
		return "", nil
	}
	if command == "go install github.com/lockfault/lockfault/cmd/lockfault@latest" {
		command = fmt.Sprintf("go -C '%s' build -o '%s/' ./cmd/lockfault", p.repository, p.bin)
	}
	if strings.HasPrefix(command, "go get github.com/lockfault/lockfault@") {
		// The latest version is this one.
		if out, err := p.shell("go mod edit -replace 'github.com/lockfault/lockfault=" + p.repository + "'"); err != nil {
			return out, err
		}
	}
	for again := 0; ; again++ {
		out, err := p.shell(command)
		// Where the machine was too slow for cells on real servers, and these were played
		// again, a line says so that the page doesn't show. Some may have no verdict then.
		if err == nil || again == 3 || !strings.Contains(out, "the machine was ") {
			for _, said := range []*regexp.Regexp{logged, late, progress} {
				out = said.ReplaceAllString(out, "")
			}
			if strings.Contains(command, worlds.Process) {
				out = seconds.ReplaceAllString(out, "…s")
			}
			return whole.ReplaceAllString(took.ReplaceAllString(out, "${1}…s"), "${1}…s"), err
		}
	}
}

// sees types what a block has behind its prompts, and returns the block as it should be.
func (p *path) sees(b block) (text []string) {
	for i, line := range b.text {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			if i == 0 {
				p.Fatalf("line %d: the block doesn't begin with a command behind \"$ \"", b.line)
			}
			continue
		}
		out, err := p.types(command)
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			p.Fatalf("line %d: %s: %v", b.line, command, err)
		}
		text = append(text, line)
		if out = strings.TrimRight(out, "\n"); out != "" {
			for line := range strings.SplitSeq(out, "\n") {
				text = append(text, strings.TrimRight(line, " "))
			}
		}
	}
	return text
}

// python puts the first Python 3 with redis-py on the path as python3.
func (p *path) python() {
	for _, name := range []string{"python3", "/usr/bin/python3"} { // where there are several, a package manager's is the last
		file, err := exec.LookPath(name)
		if err == nil && exec.Command(file, "-c", "import redis").Run() == nil {
			if err := os.Symlink(file, filepath.Join(p.bin, "python3")); err != nil {
				p.Fatal(err)
			}
			return
		}
	}
	p.Skip("the page needs redis-py, which .ci/subjects installs")
}

// Who follows these pages to the letter sees what they show. With -update a page is made
// to show what they see.
func TestPathOfTheDocs(t *testing.T) {
	for _, name := range []string{"adding-a-strategy.md", "locktest.md", "tutorials/test-your-lock.md", "tutorials/test-your-lock-in-python.md"} {
		t.Run(name, func(t *testing.T) { follow(t, "../docs/"+name) })
	}
}

func follow(t *testing.T, name string) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	// A build of this repository has filled the module cache, but for the go.mod files of
	// older versions of what it needs: those go get reads in a new module.
	graph := exec.Command("go", "mod", "graph")
	graph.Dir = repository
	if out, err := graph.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", graph, err, out)
	}
	onServers := hasServers(t)
	page := strings.Split(string(source), "\n")
	p := &path{T: t, repository: repository, dir: t.TempDir(), bin: t.TempDir()}
	if strings.Contains(string(source), "```"+script) {
		p.python()
	}
	var now []string // the page as it should be
	at := 0          // the lines of page that are in it
	used := map[string]int{}
	for _, b := range blocks(page) {
		used[b.info]++
		text := b.text
		switch b.info {
		case typed:
			for _, command := range b.text {
				if out, err := p.types(command); err != nil {
					t.Fatalf("line %d: %s: %v\n%s\nIf modules are missing, go mod download gets them.", b.line, command, err, out)
				}
			}
		case written, script:
			if b.file == "" {
				t.Fatalf("line %d: the paragraph above doesn't end with the name of the block's file, as in \"in `main.go`:\"", b.line)
			}
			if err := os.WriteFile(filepath.Join(p.dir, b.file), []byte(strings.Join(b.text, "\n")+"\n"), 0o666); err != nil {
				t.Fatal(err)
			}
			if b.info == script {
				break
			}
			if out, err := p.shell("gofmt -l " + b.file); err != nil || out != "" {
				t.Errorf("line %d: %s is not formatted: %v", b.line, b.file, cmp.Or(err, errors.New(out)))
			}
		case shown:
			if !onServers && strings.Contains(strings.Join(b.text, " "), worlds.Process) {
				continue
			}
			text = p.sees(b)
			if was, is := strings.Join(b.text, "\n"), strings.Join(text, "\n"); was != is && !*update {
				t.Errorf("line %d: go test ./examples -run %s -update mends the page, which shows\n%s\nin place of\n%s", b.line, t.Name(), was, is)
			}
		case aside:
		default:
			t.Fatalf("line %d: a block of \"%s\" is unknown: a page has %q", b.line, b.info, []string{typed, shown, written, script, aside})
		}
		now = append(append(now, page[at:b.line]...), text...)
		at = b.line + len(b.text)
	}
	if used[typed] == 0 || used[shown] == 0 || used[written]+used[script] == 0 {
		t.Errorf("the page has %d, %d and %d blocks of %q, %q and %q; want some of each", used[typed], used[shown], used[written]+used[script], typed, shown, written)
	}
	now = append(now, page[at:]...)
	if text := strings.Join(now, "\n"); *update && text != string(source) {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// hasServers reports whether cells can be played on processes of redis-server here;
// where everything is tested they must.
func hasServers(t *testing.T) bool {
	err := worlds.Place{World: worlds.Process}.Check(context.WithoutCancel(t.Context()), nil)
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	if err != nil {
		fmt.Fprintln(t.Output(), "not played on real servers:", err)
	}
	return err == nil
}
