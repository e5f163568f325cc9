//go:build !unix

package tempdir

import (
	"errors"
	"os"

	"github.com/lockfault/lockfault/internal/below"
)

var errSwept = errors.New("it was swept")

func own(path string) (*below.Dir, *os.File, error) {
	dir, err := below.Open(path)
	return dir, nil, err
}

// Sweep does nothing here: there is no telling whether an owner lives.
func Sweep(parent, prefix string) {}
