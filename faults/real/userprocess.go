package real

import (
	"fmt"
	"sync"
	"time"

	"github.com/lockfault/lockfault/internal/proc"
)

// watched is a foreign client's process that is watched. Safe for concurrent use.
type watched struct {
	world *World
	name  string
	proc  *proc.Proc

	mu    sync.Mutex
	watch proc.SchedDelay
	stray error // that one of its children has left its group
}

// glancesInLease is how often in a lease a foreign process is looked at. What is no more
// than a trifle each time adds up to less than what the lease bears.
const glancesInLease = 20

// oversee finds out how late a foreign process is, as long as it lives.
func (w *World) oversee(name string, proc *proc.Proc) *watched {
	f := &watched{world: w, name: name, proc: proc}
	f.measure()
	go func() {
		ticker := time.NewTicker(max(w.cfg.TTL/glancesInLease, time.Millisecond))
		defer ticker.Stop()
		for {
			select {
			case <-proc.Ended():
				return
			case <-w.over:
				return
			case <-ticker.C:
				f.measure()
			}
		}
	}()
	return f
}

// readKeys notes by how much the process was late since the last look. While a process is
// stopped it waits for nobody.
func (f *watched) measure() {
	f.mu.Lock()
	defer f.mu.Unlock()
	late, strays := f.watch.Measure(f.proc)
	f.world.note("client "+f.name, "the process of "+f.name+" to go on", late)
	for _, pid := range strays {
		f.proc.EndStray(pid)
		f.astray("client "+f.name+": process %d, which its program started", pid)
	}
	orphans, _ := endOrphans() // whoever can't be ended the world's end says
	for _, pid := range orphans {
		f.astray("process %d, which a client's program started", pid) // nobody knows whose
	}
}

func (f *watched) astray(who string, pid int) {
	if f.stray == nil {
		f.stray = fmt.Errorf("real: "+who+", has left its group of processes: no pause and no crash would befall it, so keep it in there (no setsid, no daemon)", pid)
	}
}

// endOrphans ends whoever has left the group and the session of a foreign client and has
// lost its parent, and returns who that was. The error says who can't be ended.
func endOrphans() (ended []int, err error) {
	for list := proc.Orphans(); len(list) > 0; list = proc.Orphans() {
		for _, pid := range list { // whose children are orphans then
			if err := proc.EndOrphan(pid); err != nil {
				return append(ended, pid), err
			}
			ended = append(ended, pid)
		}
	}
	return ended, nil
}

// Inspect finds out how late a foreign process was until now. It does nothing with
// others.
func (p *Process) MeasureLateness() {
	if p.watch != nil {
		p.watch.measure()
	}
}

// Stray returns an error if a child of a foreign process was seen where faults don't
// reach it.
func (p *Process) Stray() error {
	if p.watch == nil {
		return nil
	}
	p.watch.mu.Lock()
	defer p.watch.mu.Unlock()
	return p.watch.stray
}
