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

// File is the clock of the processes that were started with it in [Env]. [Create] creates a File;
// its zero value is closed. A File is safe for concurrent use.
type File struct {
	path string

	mu     sync.Mutex
	memory []byte // nil after Close
	page   *page  // in memory
}

// Create creates the file, or truncates it, and sets it to true time. Only the file's owner can
// read it, so a process of another user cannot use the clock.
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

// Path returns the path that was passed to Create.
func (f *File) Path() string { return f.path }

var errClosed = errors.New("clock: the file is closed")

// Set sets the wall clock to true time plus offset now. From now on the clock runs at rate times
// the speed of true time; rate must be above 0 and at most [MaxRate]. The clocks that measure spans
// continue from their present value at the same rate. The setting is in force when Set returns.
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
	// Readers never wait for the writer, because it may be killed here. They use the other slot
	// until generation increases, and read again if it increased meanwhile.
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

// read returns a slot with the present time in its first three fields. The clocks can only be read
// one after the other, so read returns the best of up to 20 readings: the one that took the least
// time.
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
		best.slept = 0 // the machine never slept; the difference is the time between two readings
	}
	return best, nil
}

// Loaded reports whether a process has loaded the clock. A process that was started with the clock
// but has not loaded it is statically linked, or is built for another architecture.
func (f *File) Loaded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.memory != nil && atomic.LoadUint64(&f.page.loaded) != 0
}

// Close releases the File's memory in this process. Processes that have loaded the clock keep its
// last setting. The file stays. Close is idempotent.
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
