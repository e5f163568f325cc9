package strategies

// setnxExpireRepair is the second lock of document 000 (II.3, by expire):
// SETNX and then EXPIRE, and every loser that finds the key without a TTL sets
// one, so that a client which died between its two commands blocks nobody for
// ever. The document polls without a break; this one does so every 100 ms. A
// TTL that is not whole seconds goes by PEXPIRE and PTTL.
//
// Known faults: a winner whose SETNX reply comes late believes in a lock whose
// lease, set by a loser, is over (the document says so itself). A loser that
// repairs starts the lease anew, later than the winner did. The release is GET,
// compare, DEL with room in between.
func setnxExpireRepair() Strategy {
	const name = "setnx-expire-repair"
	return Strategy{
		Name:    name,
		Summary: "SETNX, then EXPIRE; losers give a key without TTL one; released by GET, compare, DEL",
		Source:  "document 000, II.3",
		Tags:    []string{TagSingle, TagPlainDel},
		New: func(env Env) (Lock, error) {
			l, err := newKeyLock(name, env)
			if err != nil {
				return nil, err
			}
			return &setnxExpireLock{keyLock: l, repair: true}, nil
		},
	}
}
