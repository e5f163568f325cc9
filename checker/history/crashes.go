package history

import (
	"fmt"
	"strconv"
)

// crashes remembers the processes that are over. Jepsen numbers them one after the
// other, and a long history may have millions, so of numbers it keeps a bit each.
// What it keeps is bounded: if processes are numbered wildly it forgets, and then
// one that goes on is not noticed.
type crashes struct {
	pages map[int64]*[pageBits / 64]uint64
	named map[string]int // the line, of names and of the latest numbers
}

const (
	pageBits  = 1 << 12
	mostPages = 1 << 14 // 8 MiB, and 67 million processes that follow each other
	mostNamed = 1 << 13 // 8 MiB of the longest names
)

func (c *crashes) add(process string, line int) {
	if c.named == nil || len(c.named) >= mostNamed {
		c.named = map[string]int{}
	}
	if len(process) <= maxName {
		c.named[process] = line
	}
	n, err := strconv.ParseInt(process, 10, 64)
	if err != nil || n < 0 { // Jepsen has none below 0
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

// of reports whether a process is over, and since when, if that is known still:
// " of line 7".
func (c *crashes) of(process string) (string, bool) {
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
