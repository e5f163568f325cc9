package linear

// lookupCache caches items by client and lock in a small table with one entry for each hash value.
// It saves most look-ups by name.
type lookupCache[T any] [64]*T

// place returns the entry for a client at a lock. The hash uses the ends of names, where they
// usually differ.
func (r *lookupCache[T]) place(client, key string) **T {
	n, m := len(client), len(key)
	at := uint(n)<<3 ^ uint(m)<<4
	if n > 1 {
		at ^= uint(client[n-1]) ^ uint(client[n-2])<<2
	} else if n > 0 {
		at ^= uint(client[0])
	}
	if m > 1 {
		at ^= uint(key[m-1])<<1 ^ uint(key[m-2])<<3
	}
	return &r[at%uint(len(r))]
}
