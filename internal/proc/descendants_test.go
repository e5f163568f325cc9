//go:build linux

package proc_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockfault/lockfault/internal/proc"
)

// shell starts a shell that runs the text, and returns the numbers that it prints,
// of which there are so many.
func shell(t *testing.T, l *proc.Launcher, numbers int, text string) (p *proc.Proc, printed []int) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", text)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	p = start(t, l, cmd)
	w.Close()
	lines := bufio.NewScanner(r)
	for len(printed) < numbers && lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		printed = append(printed, n)
	}
	return p, printed
}

// stateOf returns the letter of a process's state, empty if there is none.
func stateOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	state, _, _ := strings.Cut(rest, " ")
	return state
}

// When Pause returns all of a family have stopped, and when Kill returns all have
// ended.
func TestFamily(t *testing.T) {
	l := newLauncher(t)
	for range 20 {
		p, all := shell(t, l, 3, `(while :; do :; done) & echo $!; (sleep 1000 & echo $!; wait) & echo $!; wait`)
		if err := p.Pause(); err != nil {
			t.Fatal(err)
		}
		for _, pid := range append(all, p.PID()) {
			if s := stateOf(pid); s != "T" {
				t.Errorf("process %d is in state %q after a pause, want T", pid, s)
			}
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		for _, pid := range all {
			if s := stateOf(pid); s != "" && s != "Z" && s != "X" {
				t.Errorf("process %d is in state %q after it was killed", pid, s)
			}
		}
	}
}

// Of two who share a processor each waits half of the time; who sleeps doesn't.
func TestWatchSeesWhoWaits(t *testing.T) {
	if err := proc.CanWatch(); err != nil {
		t.Fatal(err)
	}
	l := newLauncher(t)
	const spins = `(while :; do :; done) & echo $!; wait`
	var busy []*proc.Proc
	for range 2 {
		p, spinners := shell(t, l, 1, spins)
		var one unix.CPUSet
		var mine unix.CPUSet
		if err := unix.SchedGetaffinity(0, &mine); err != nil {
			t.Fatal(err)
		}
		for cpu := range 1024 {
			if mine.IsSet(cpu) {
				one.Set(cpu)
				break
			}
		}
		if err := unix.SchedSetaffinity(spinners[0], &one); err != nil {
			t.Fatal(err)
		}
		busy = append(busy, p)
	}
	idle, _ := shell(t, l, 1, `echo 1; exec sleep 1000`)
	watches := make([]proc.SchedDelay, 3)
	for i, p := range append(busy, idle) {
		if late, strays := watches[i].Measure(p.PID()); late != 0 || len(strays) > 0 {
			t.Errorf("the first look sees %v, %v", late, strays)
		}
	}
	time.Sleep(500 * time.Millisecond)
	var lates []time.Duration
	for i, p := range append(busy, idle) {
		late, _ := watches[i].Measure(p.PID())
		lates = append(lates, late)
	}
	// On a busy machine all wait longer, and who sleeps until he has begun to.
	if least := min(lates[0], lates[1]); least < 50*time.Millisecond || lates[2] > least/2 {
		t.Errorf("two who share a processor were late by %v and %v, who sleeps by %v", lates[0], lates[1], lates[2])
	}
}

// A child that leaves the group is seen, and can be ended.
func TestStray(t *testing.T) {
	l := newLauncher(t)
	p, all := shell(t, l, 1, `setsid sleep 1000 & echo $!; wait`)
	var w proc.SchedDelay
	var strays []int
	eventually(t, "it is seen", func() bool {
		_, strays = w.Measure(p.PID())
		return len(strays) == 1
	})
	if strays[0] != all[0] {
		t.Errorf("process %d is astray, want %d", strays[0], all[0])
	}
	p.EndStray(p.PID()) // which is none
	if !p.Alive() {
		t.Error("one in the group was ended")
	}
	p.EndStray(strays[0])
	eventually(t, "it ends", func() bool { return gone(strays[0]) })
}

// Who loses its parent is this process's child from then on: in the group it belongs to
// the family still, and a daemon is an orphan.
func TestOrphans(t *testing.T) {
	if err := proc.Adopt(); err != nil {
		t.Fatal(err)
	}
	l := newLauncher(t)
	p, all := shell(t, l, 3, `(sleep 1000 & echo $!); (setsid sh -c 'sleep 1000 & echo $!; (sleep 1000 & echo $!)'); exec sleep 1000`)
	own, daemon := all[0], all[1]
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if s := stateOf(own); s != "T" {
		t.Errorf("process %d, in the group, is in state %q after a pause, want T", own, s)
	}
	ended := map[int]bool{}
	eventually(t, "both daemons are orphans and end", func() bool {
		for _, pid := range proc.Orphans() {
			if err := proc.EndOrphan(pid); err != nil {
				t.Fatal(err)
			}
			ended[pid] = true
		}
		return ended[daemon] && ended[all[2]]
	})
	if len(ended) != 2 {
		t.Errorf("orphans %v, want %v", ended, all[1:])
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range all {
		eventually(t, "nothing is left, no zombie either", func() bool { return stateOf(pid) == "" })
	}
}
