//go:build !unix

package reaper

import "os/exec"

func detach(*exec.Cmd) {}
func wake(*exec.Cmd)   {}
