//go:build !unix

package stdio

import "os"

// Input returns f.
func Input(f *os.File) *os.File { return f }
