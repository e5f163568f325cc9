package history

import (
	"fmt"
	"strconv"
)

// endedProcesses records the processes that have ended. Jepsen numbers processes consecutively, and a long
// history may have millions of them, so a numbered process takes one bit. The memory is bounded:
// with widely scattered numbers, endedProcesses drops old entries, and an ended process that continues is
// then not detected.
type endedProcesses struct {
	pages map[int64]*[pageBits / 64]uint64
	named map[string]int // the line of the crash, for names and for the latest numbers
}

const (
	pageBits  = 1 << 12
	mostPages = 1 << 14 // 8 MiB: 67 million consecutive processes
	mostNamed = 1 << 13 // 8 MiB of names of maximum length
)

func (c *endedProcesses) add(process string, line int) {
	if c.named == nil || len(c.named) >= mostNamed {
		c.named = map[string]int{}
	}
	if len(process) <= maxName {
		c.named[process] = line
	}
	n, err := strconv.ParseInt(process, 10, 64)
	if err != nil || n < 0 { // Jepsen has no negative numbers
		return
	}
	page := c.pages[n/pageBits]
	if page == nil {
		if c.pages == nil || len(c.pages) >= mostPages {
			c.pages = map[int64]*[pageBits / 64]uint64{}
		}
		page = new([pageBits / 64]uint64)
		c.pages[n/pageBits] = page
	}
	page[n%pageBits/64] |= 1 << (n % 64)
}

// of reports whether a process has ended, and where, if the line is still known: " of line 7".
func (c *endedProcesses) of(process string) (string, bool) {
	if c.named == nil {
		return "", false
	}
	if line, ok := c.named[process]; ok {
		return fmt.Sprintf(" of line %d", line), true
	}
	if c.pages == nil {
		return "", false
	}
	n, err := strconv.ParseInt(process, 10, 64)
	if err != nil || n < 0 {
		return "", false
	}
	page := c.pages[n/pageBits]
	return "", page != nil && page[n%pageBits/64]>>(n%64)&1 != 0
}
