package reports

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lockfault/lockfault/internal/atomicdir"
)

// A Source holds the input of a [Format].
type Source struct {
	// Results is the path of the results file. Formats that need histories read them below its
	// directory.
	Results string
	// Since holds the changes since an earlier run. Since is nil if the run was not compared.
	Since *Diff
	// Err returns an error if the writing must stop, as [context.Context.Err] does. Err is called
	// before each cell. If Err is nil, the writing does not stop early.
	Err func() error
}

// scan calls [Scan] on the results, and stops with the error of Err.
func (of Source) scan(visit func(Cell) error) (Head, error) {
	return Scan(of.Results, func(c Cell) error {
		if of.Err != nil {
			if err := of.Err(); err != nil {
				return err
			}
		}
		return visit(c)
	})
}

// A Format is a format in which a whole report can be written.
type Format struct {
	Name  string
	Write func(w io.Writer, of Source) error
	// Lines reports whether the output consists of independent lines, to which other lines may be
	// added, instead of a document.
	Lines bool
}

// WriteFile writes the report to a file, either completely or not at all. A device or a pipe is
// written to directly, also if the name is a symbolic link to one.
func (f Format) WriteFile(name string, of Source) error {
	write := func(w io.Writer) error { return f.Write(w, of) }
	var err error
	if info, there := os.Stat(name); there == nil && !info.Mode().IsRegular() {
		err = writeInto(name, write)
	} else {
		err = atomicdir.Stream(name, write)
	}
	if err != nil {
		return fmt.Errorf("reports: write %s: %w", f.Name, err)
	}
	return nil
}

// writeInto writes to an existing file.
func writeInto(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 64<<10)
	err = write(b)
	if err == nil {
		err = b.Flush()
	}
	return errors.Join(err, f.Close())
}

// AnnotationsForm is the name of the format that [Annotations] writes.
const AnnotationsForm = "github"
