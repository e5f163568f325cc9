//go:build !unix

package pool

import "os"

// interrogate does nothing here: there is no signal for it.
func interrogate(*os.Process) {}

func watchQuit(func()) {}
