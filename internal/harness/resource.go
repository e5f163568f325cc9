package harness

// register is the protected resource: clients write to it while they hold the lock. It refuses
// fencing tokens smaller than the largest token so far, as a storage service must for fencing to
// work (Kleppmann 2016). It accepts all writes without a token. The history records its decisions.
// The zero value has received no token.
type register struct{ seen int64 }

// write reports whether a write is accepted; token 0 means no token.
func (r *register) write(token int64) (accepted bool) {
	if token != 0 && token < r.seen {
		return false
	}
	r.seen = max(r.seen, token)
	return true
}
