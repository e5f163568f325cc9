package linear

// lookupCache are things of a client at a lock that were looked up before: a small table, in which each has one place,
// and whoever came last has it. It saves most look-ups by name.
type lookupCache[T any] [64]*T

// place returns where that of a client at a lock would be. Names mostly differ in how they end.
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
