//go:build !unix

package watchman

import "os/exec"

func detach(*exec.Cmd) {}
func wake(*exec.Cmd)   {}
