package checkcmd

import "math/bits"

// distinct counts distinct names by their hashes, without storing the names. distinct keeps all
// hashes until there are exactly of them; after that, whenever the table is full, it halves the
// sample by requiring one more trailing zero bit. The count is exact up to that number, and within
// a few per thousand above it. The zero value is empty and ready for use.
type distinct struct {
	table   []uint64 // open addressing; 0 is an empty slot
	sampled int
	thin    int // only hashes with at least this many trailing zeros are kept
}

// exactly is the largest count that is exact. A table of this capacity takes 32 MiB.
const exactly = 1 << 21

// hash returns the FNV-1a hash of name, mixed so that every bit depends on the whole name. hash
// never returns 0.
func hash(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	return max(h, 1)
}

func (d *distinct) add(h uint64) {
	if len(d.table) == 0 {
		d.rebuild(64)
	}
	if bits.TrailingZeros64(h) < d.thin || d.table[d.place(h)] == h {
		return
	}
	if 2*d.sampled == len(d.table) && d.sampled < exactly {
		d.rebuild(2 * len(d.table))
	}
	for d.sampled == exactly {
		d.thin++
		d.rebuild(len(d.table))
	}
	if bits.TrailingZeros64(h) >= d.thin {
		d.put(h)
	}
}

// place returns the slot of h, or the empty slot where h would be stored.
func (d *distinct) place(h uint64) int {
	mask := len(d.table) - 1
	at := int(h>>20) & mask
	for d.table[at] != 0 && d.table[at] != h {
		at = (at + 1) & mask
	}
	return at
}

func (d *distinct) put(h uint64) {
	d.table[d.place(h)] = h
	d.sampled++
}

func (d *distinct) rebuild(size int) {
	old := d.table
	d.table, d.sampled = make([]uint64, size), 0
	for _, h := range old {
		if h != 0 && bits.TrailingZeros64(h) >= d.thin {
			d.put(h)
		}
	}
}

// estimated reports whether count is an estimate.
func (d *distinct) estimated() bool { return d.thin > 0 }

// count returns the number of distinct names, or its estimate.
func (d *distinct) count() int { return d.sampled << d.thin }
