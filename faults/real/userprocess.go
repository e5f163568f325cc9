package real

import (
	"fmt"
	"sync"
	"time"

	"github.com/lockfault/lockfault/internal/proc"
)

// watched is a foreign client's process under observation. It is safe for concurrent use.
type watched struct {
	world *World
	name  string
	proc  *proc.Proc

	mu    sync.Mutex
	watch proc.SchedDelay
	stray error // a child of the process has left its process group
}

// glancesInLease is how often per lease a foreign process is measured. Delays that are negligible
// in each measurement then add up to less than a lease tolerates.
const glancesInLease = 20

// oversee measures the delays of a foreign process until the process or the world ends.
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

// measure records the delay of the process since the previous measurement. A stopped process has no
// delay.
func (f *watched) measure() {
	f.mu.Lock()
	defer f.mu.Unlock()
	late, strays := f.watch.Measure(f.proc.PID())
	f.world.note("client "+f.name, "the process of "+f.name+" to go on", late)
	for _, pid := range strays {
		f.proc.EndStray(pid)
		f.astray("client "+f.name+": process %d, which its program started", pid)
	}
	orphans, _ := endOrphans() // the world's Close reports orphans that can't be ended
	for _, pid := range orphans {
		f.astray("process %d, which a client's program started", pid) // the client of an orphan is unknown
	}
}

func (f *watched) astray(who string, pid int) {
	if f.stray == nil {
		f.stray = fmt.Errorf("real: "+who+", has left its group of processes: no pause and no crash would befall it, so keep it in there (no setsid, no daemon)", pid)
	}
}

// endOrphans ends processes that have left the group and the session of a foreign client and have
// lost their parent. It returns their IDs; after an error, the last ID is the process that couldn't
// be ended.
func endOrphans() (ended []int, err error) {
	for list := proc.Orphans(); len(list) > 0; list = proc.Orphans() {
		for _, pid := range list { // ending a process makes its children orphans
			if err := proc.EndOrphan(pid); err != nil {
				return append(ended, pid), err
			}
			ended = append(ended, pid)
		}
	}
	return ended, nil
}

// MeasureLateness measures the delay of a foreign process until now. For other processes it does
// nothing.
func (p *Process) MeasureLateness() {
	if p.watch != nil {
		p.watch.measure()
	}
}

// Stray returns an error if a child of a foreign process has left the process group, where faults
// don't reach it.
func (p *Process) Stray() error {
	if p.watch == nil {
		return nil
	}
	p.watch.mu.Lock()
	defer p.watch.mu.Unlock()
	return p.watch.stray
}
