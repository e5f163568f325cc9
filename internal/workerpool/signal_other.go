//go:build !unix

package workerpool

import "os"

// parentsOwn are the signals that a terminal sends to the parent and its workers alike, and that
// only the parent acts on.
var parentsOwn = []os.Signal{os.Interrupt}

func wake(*os.Process) {}

// interrogate does nothing on this system, which has no such signal.
func interrogate(*os.Process) {}

// OutlivePipe does nothing on this system, where such a write returns an error anyway.
func OutlivePipe() {}

func watchQuit(func()) {}
