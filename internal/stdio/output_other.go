//go:build !unix

package stdio

import "os"

// Output returns standard output, and lets os.Stdout be standard error from now
// on. A copy of os.Stdout that a package made before still writes to it.
func Output() (*os.File, error) {
	out := os.Stdout
	os.Stdout = os.Stderr
	return out, nil
}
