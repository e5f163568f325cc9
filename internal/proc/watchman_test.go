//go:build unix

package proc

import (
	"os/exec"
	"syscall"
	"testing"
)

func TestWatchman(t *testing.T) {
	w, err := newShell()
	if err != nil {
		t.Fatal(err)
	}
	var all []*exec.Cmd
	for range 4 {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Process.Kill()
		all = append(all, cmd)
		if err := w.watch(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	if err := suspend(all[3].Process.Pid); err != nil {
		t.Fatal(err)
	}
	for _, spared := range []int{0, 2} {
		if err := w.forget(all[spared].Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	// What is told twice is no other than what is told once.
	for range 40 {
		for _, err := range []error{w.watch(all[1].Process.Pid), w.forget(all[0].Process.Pid), w.forget(1 << 22)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.close(); err != nil { // as the end of this process does
		t.Fatal(err)
	}
	for _, killed := range []int{1, 3} {
		all[killed].Wait()
		if status := all[killed].ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
			t.Errorf("process %d ended by %v", killed, status)
		}
	}
	for _, spared := range []int{0, 2} {
		if err := all[spared].Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("process %d: %v", spared, err)
		}
		all[spared].Process.Kill()
		all[spared].Wait()
	}
}
