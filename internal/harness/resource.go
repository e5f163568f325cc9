package harness

// register is the protected resource: clients write to it while they hold the
// lock. It refuses fencing tokens smaller than the largest that it has seen, as
// a storage service must for fencing to work (Kleppmann 2016); writes without a
// token it takes as they come. The history records what it decided.
// The zero value has seen nothing.
type register struct{ seen int64 }

// write decides on a write; token 0 is none.
func (r *register) write(token int64) (accepted bool) {
	if token != 0 && token < r.seen {
		return false
	}
	r.seen = max(r.seen, token)
	return true
}
