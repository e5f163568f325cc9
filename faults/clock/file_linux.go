package clock

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A File is the clock of the processes that were started with it in [Env].
// [Create] makes one. Safe for concurrent use.
type File struct {
	path string

	mu     sync.Mutex
	memory []byte // nil after Close
	page   *page  // in memory
}

// Create makes the file, or empties it, and sets it to true time. Only its
// owner can read it; a process of another user can't have the clock.
func Create(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("clock: %w", err)
	}
	defer f.Close()
	size := os.Getpagesize()
	if err := f.Truncate(int64(size)); err != nil {
		return nil, fmt.Errorf("clock: %w", err)
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("clock: share %s: %w", path, err)
	}
	c := &File{path: path, memory: memory, page: (*page)(unsafe.Pointer(&memory[0]))}
	if err := c.Set(0, 1); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.page.magic = magic
	return c, nil
}

// Path is the name that it was made by.
func (f *File) Path() string { return f.path }

var errClosed = errors.New("clock: the file is closed")

// Set sets the wall clock to true time plus offset at this moment, running
// rate times as fast as true time from now on: above 0, up to [MaxRate]. The
// clocks that measure spans run at that rate too, from where they are. It
// is in force when Set returns.
func (f *File) Set(offset time.Duration, rate float64) error {
	if err := checkRate(rate); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.memory == nil {
		return errClosed
	}
	now, err := read()
	if err != nil {
		return fmt.Errorf("clock: read the time: %w", err)
	}
	generation := f.page.generation
	next := f.page.slots[generation&1].next(now, offset, rate)
	// Nobody waits for the writer, which may be killed here: readers take the
	// other slot until the count goes up, and look again if it did meanwhile.
	to := &f.page.slots[(generation+1)&1]
	atomic.StoreInt64(&to.since, next.since)
	atomic.StoreInt64(&to.wall, next.wall)
	atomic.StoreInt64(&to.slept, next.slept)
	atomic.StoreInt64(&to.offset, next.offset)
	atomic.StoreInt64(&to.warp, next.warp)
	atomic.StoreInt64(&to.drift, next.drift)
	atomic.StoreUint64(&f.page.generation, generation+1)
	return nil
}

// read returns a slot that has the time. The clocks can only be read one after
// the other: of some readings it takes the one with the least between them.
func read() (slot, error) {
	const enough, most = 5 * time.Microsecond, 20
	var best slot
	least := int64(math.MaxInt64)
	for range most {
		var first, wall, boot, last unix.Timespec
		if err := errors.Join(
			unix.ClockGettime(unix.CLOCK_MONOTONIC, &first),
			unix.ClockGettime(unix.CLOCK_REALTIME, &wall),
			unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot),
			unix.ClockGettime(unix.CLOCK_MONOTONIC, &last),
		); err != nil {
			return slot{}, err
		}
		if took := last.Nano() - first.Nano(); took < least {
			least = took
			best = slot{since: first.Nano(), wall: wall.Nano(), slept: boot.Nano() - first.Nano()}
		}
		if least < int64(enough) {
			break
		}
	}
	if best.slept < int64(time.Millisecond) {
		best.slept = 0 // the machine never slept; this is the time between two readings
	}
	return best, nil
}

// Loaded reports whether a process has the clock. One that was started with
// it and hasn't is linked statically, or is another machine's program.
func (f *File) Loaded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.memory != nil && atomic.LoadUint64(&f.page.loaded) != 0
}

// Close frees what the File takes here. Processes that have the clock keep it
// as it is. Idempotent; the file stays.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.memory == nil {
		return nil
	}
	memory := f.memory
	f.memory, f.page = nil, nil
	if err := unix.Munmap(memory); err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	return nil
}
