//go:build !unix

package process

import (
	"os"

	"github.com/lockfault/lockfault/internal/child"
)

func makeDir(string) (string, *os.File, error) { return "", nil, child.Supported() }

// Sweep does nothing here: there are no hosts.
func Sweep(string) {}
