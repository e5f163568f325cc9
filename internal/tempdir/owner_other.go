//go:build !unix

package tempdir

import (
	"errors"
	"os"

	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/reaper"
)

var errSwept = errors.New("it was swept")

func own(path string) (*below.Dir, *os.File, error) {
	dir, err := below.Open(path)
	return dir, nil, err
}

// Abandoned returns false: the system does not show whether an owner lives.
func Abandoned(string) bool { return false }

// Sweep has no effect: the system does not show whether an owner lives.
func Sweep(parent, prefix string) {}

func watch(string) *reaper.Reaper  { return nil }
func dismiss(*reaper.Reaper) error { return nil }
