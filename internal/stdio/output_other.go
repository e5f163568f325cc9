//go:build !unix

package stdio

import "os"

// Output returns standard output, and sets os.Stdout to standard error. A copy of os.Stdout that a
// package made before still writes to standard output.
func Output() (*os.File, error) {
	out := os.Stdout
	os.Stdout = os.Stderr
	return out, nil
}
