//go:build !linux

package postgres

import (
	"context"
	"os/exec"
)

// A runAs is the user that servers run as. Servers don't run on this system: see [Find].
type runAs struct{}

func findServant() (runAs, error)                                 { return runAs{}, nil }
func (s runAs) isolated(context.Context, string, ...string) runAs { return s }
func (runAs) opens(string) error                                  { return nil }
func (runAs) give(string) error                                   { return nil }
func (runAs) reaches(string) error                                { return nil }
func (runAs) run(*exec.Cmd)                                       {}
func (runAs) output(cmd *exec.Cmd) ([]byte, error)                { return cmd.CombinedOutput() }
func (runAs) release(string, int) error                           { return nil }
