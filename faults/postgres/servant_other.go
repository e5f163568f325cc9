//go:build !linux

package postgres

import (
	"context"
	"os/exec"
)

// A servant is who servers run as, of whom there is none here: see [Find].
type servant struct{}

func findServant() (servant, error)                                   { return servant{}, nil }
func (s servant) isolated(context.Context, string, ...string) servant { return s }
func (servant) opens(string) error                                    { return nil }
func (servant) give(string) error                                     { return nil }
func (servant) reaches(string) error                                  { return nil }
func (servant) run(*exec.Cmd)                                         {}
func (servant) output(cmd *exec.Cmd) ([]byte, error)                  { return cmd.CombinedOutput() }
func (servant) release(string, int) error                             { return nil }
