package vtime

import (
	"fmt"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// leftBehind is the message of package synctest about remaining goroutines.
const leftBehind = "deadlock: main bubble goroutine has exited but blocked goroutines remain"

// leak describes the remaining goroutines in one line: their number, and for one of them where it
// waits and which function started it, which left has by itself. The choice of that goroutine does
// not depend on the runtime's order.
func leak(stacks []string) (text, left string) {
	if len(stacks) == 0 {
		return leftBehind, ""
	}
	text = "left 1 goroutine behind when all was closed,"
	if len(stacks) > 1 {
		text = fmt.Sprintf("left %d goroutines behind when all was closed, one of them", len(stacks))
	}
	waits := make([]string, len(stacks))
	for i, stack := range stacks {
		waits[i] = wait(frames(stack))
	}
	left = slices.Min(waits)
	return text + left, strings.TrimLeft(left, ", ")
}

// wait describes where a goroutine waits outside the standard library, and which function started it
// if that is outside, too.
func wait(frames []frame) (text string) {
	for _, f := range frames {
		if !f.standard() && !f.creates {
			text += fmt.Sprintf(" in %s at %s", f.function, f.place)
			break
		}
	}
	if last := len(frames) - 1; last >= 0 && frames[last].creates && !frames[last].standard() && !frames[last].own() {
		text += fmt.Sprintf(", started by %s at %s", frames[last].function, frames[last].place)
	}
	return text
}

// frame is a function in a stack.
type frame struct {
	function string // without its arguments and its package's path
	path     string // the function with its package's path
	file     string
	place    string // the file's name with its directory's name, and the line
	creates  bool   // the function has started the goroutine and is not a call
}

// frames parses a stack in the runtime's format: a header, then two lines for each frame.
func frames(stack string) (list []frame) {
	lines := strings.Split(stack, "\n")
	for i := 1; i+1 < len(lines); i += 2 {
		var f frame
		f.function, f.creates = strings.CutPrefix(lines[i], "created by ")
		f.function, _, _ = strings.Cut(f.function, " in goroutine ")
		if open := strings.LastIndexByte(f.function, '('); open > 0 && !f.creates {
			f.function = f.function[:open]
		}
		f.path = f.function
		f.function = f.function[strings.LastIndexByte(f.function, '/')+1:]
		where, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		colon := strings.LastIndexByte(where, ':')
		if colon < 0 {
			break // truncated
		}
		f.file = where[:colon]
		dir, name := path.Split(f.file)
		f.place = path.Join(path.Base(dir), name) + where[colon:]
		list = append(list, f)
	}
	return list
}

// packagePath returns the path of the function's package.
func (f frame) packagePath() string {
	slash := strings.LastIndexByte(f.path, '/') + 1
	name, _, _ := strings.Cut(f.path[slash:], ".")
	return f.path[:slash] + name
}

// own reports whether a frame belongs to this module's code that runs locks.
func (f frame) own() bool {
	for _, room := range []string{"internal/vtime.", "internal/harness.", "internal/harness/client.", "faults/sim."} {
		if strings.HasPrefix(f.path, "github.com/lockfault/lockfault/"+room) {
			return true
		}
	}
	return false
}

// standard reports whether a frame belongs to Go's standard library, where goroutines wait on
// behalf of other code.
func (f frame) standard() bool {
	known := reflect.ValueOf(strings.Cut).Pointer()
	file, _ := runtime.FuncForPC(known).FileLine(known)
	root, found := strings.CutSuffix(file, "strings/strings.go")
	if found && root != "" {
		return strings.HasPrefix(f.file, root)
	}
	// With -trimpath, the paths of files begin with their packages.
	first, _, _ := strings.Cut(f.file, "/")
	switch first {
	case "runtime", "sync", "time", "internal", "net", "context", "io", "bufio", "os", "syscall", "testing":
		return true
	}
	return false
}
