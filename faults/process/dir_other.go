//go:build !unix

package process

import "os"

func makeDir(string) (string, *os.File, error) { return "", nil, errUnsupported }
