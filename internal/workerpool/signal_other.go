//go:build !unix

package workerpool

import "os"

// parentsOwn are the signals that a terminal sends to the parent and its
// workers alike, and that are the parent's to act on.
var parentsOwn = []os.Signal{os.Interrupt}

func wake(*os.Process) {}

// interrogate does nothing here: there is no signal for it.
func interrogate(*os.Process) {}

// OutlivePipe does nothing: such a write returns an error here anyway.
func OutlivePipe() {}

func watchQuit(func()) {}
