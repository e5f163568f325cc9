package reports

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/input"
	"github.com/lockfault/lockfault/internal/leases"
)

// WriteHistory writes a history to the file name, a slash-separated path below dir. The file never
// holds a partial history. WriteHistory makes missing directories, except the parents of dir, and
// follows no symbolic link below dir.
func WriteHistory(dir, name string, h checker.History) error {
	if err := writeHistory(dir, filepath.FromSlash(name), h); err != nil {
		return fmt.Errorf("reports: write a history: %w", err)
	}
	return nil
}

func writeHistory(dir, name string, h checker.History) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	in, err := below.Open(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := in.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return atomicdir.InUnsynced(in, name, func(w io.Writer) error { return checker.Encode(w, h) })
}

// errNotIts reports that a history belongs to another cell.
var errNotIts = errors.New("its history is another one's")

// historyIn reads the history of a cell below a report's directory, and checks that it belongs to
// the cell. The error wraps errNotIts if it belongs to another cell, and [fs.ErrNotExist] if the
// file does not exist.
func (c Cell) historyIn(dir string) (checker.History, error) {
	h, err := ReadHistory(dir, c.History)
	if m := h.Meta; err == nil && (m.World != c.World || m.Strategy != c.Strategy || m.Scenario != c.Scenario) {
		err = fmt.Errorf("reports: %s under %s in %s: %w: that of %s under %s in %s", shown(c.Strategy), shown(c.Scenario), shown(c.World),
			errNotIts, shown(m.Strategy), shown(m.Scenario), shown(m.World))
	}
	return h, err
}

// ReadHistory reads the history in the file name, a slash-separated path below dir. A name or a
// symbolic link that leads out of the directory is an error.
func ReadHistory(dir, name string) (checker.History, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	f, err := openBelow(dir, name, input.History)
	if err != nil {
		return checker.History{}, fmt.Errorf("reports: read a history: %w", err)
	}
	defer f.Close()
	h, err := checker.Decode(bufio.NewReader(f))
	if err != nil {
		return checker.History{}, fmt.Errorf("reports: read the history %s: %w", path, err)
	}
	return h, nil
}

// openBelow opens a file below a directory for reading. The name is slash-separated.
func openBelow(dir, name string, most int64) (*os.File, error) {
	in, err := below.Open(dir)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return in.Read(filepath.FromSlash(name), most)
}

// openBeside opens a file for reading. A symbolic link that leads out of the file's directory is an
// error.
func openBeside(path string, most int64) (*os.File, error) {
	return openBelow(filepath.Dir(path), filepath.Base(path), most)
}

// unlike describes the first difference between the cell and its history. unlike returns "" if they
// agree.
func (c Cell) unlike(h checker.History) string {
	v := checker.Check(h)
	is := c
	is.Verdict = Held
	if len(v.Witnesses) > 0 {
		is.Verdict = Violated
	}
	is.Derive(v, h, leases.Lock{Tags: []string{string(c.Class)}})
	is.Settle()
	switch {
	case is.Verdict != c.Verdict:
		return fmt.Sprintf("it says %s, and its history is %s", c.Verdict, is.Verdict)
	case !slices.Equal(is.Anomalies, c.Anomalies):
		return fmt.Sprintf("it says %s, and its history shows %s", orNone(c.Anomalies), orNone(is.Anomalies))
	case !slices.EqualFunc(is.Witnesses, c.Witnesses, func(a, b checker.Witness) bool { return reflect.DeepEqual(a, b) }):
		return "its proofs are not those of its history"
	case !reflect.DeepEqual(is.Findings, c.Findings):
		return "what its anomalies mean for its class is not what its history shows"
	case !reflect.DeepEqual(is.Unjudged, c.Unjudged):
		return "what was not judged is not what its history leaves open"
	case is.Linearizable != c.Linearizable || !reflect.DeepEqual(is.Conflict, c.Conflict):
		return "it says otherwise than its history whether there is a legal order, or why not"
	case is.Together != c.Together:
		return fmt.Sprintf("it says that two believed at once for %v, and in its history they do for %v", c.Together, is.Together)
	case is.Nodes != c.Nodes || is.Validity != c.Validity || is.Tokens != c.Tokens:
		return "its nodes, its validity or its tokens are not those of its history"
	case c.Commands != nil && !maps.Equal(is.Commands, c.Commands):
		return "it says otherwise than its history how many commands an operation takes"
	case is.Lease != c.Lease:
		return fmt.Sprintf("it says that the lease was %v, and its history says %v", c.Lease, is.Lease)
	case !reflect.DeepEqual(is.Acquires, c.Acquires):
		return "it says otherwise than its history which acquires succeeded"
	case is.AsExpected != c.AsExpected || !slices.Equal(is.Better, c.Better) || !reflect.DeepEqual(is.NotBetter, c.NotBetter):
		return fmt.Sprintf("as_expected is %v, and by what is expected it would be %v", c.AsExpected, is.AsExpected)
	}
	return ""
}

func orNone(list []checker.Anomaly) string {
	if len(list) == 0 {
		return "nothing"
	}
	return names(list)
}
