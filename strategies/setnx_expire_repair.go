package strategies

// setnxExpireRepair returns the second lock of document 000 (II.3, by expire): SETNX and then
// EXPIRE. Every client that finds the lock taken and the key without TTL sets the TTL, so a client
// that died between its two commands does not block the others forever. The document polls without
// a delay; this lock polls every 100 ms. If the TTL is not a whole number of seconds, the lock uses
// PEXPIRE and PTTL.
//
// Known faults: a winner whose SETNX reply is late believes that it holds the lock after the end of
// a lease that a loser has set (the document mentions this). A loser that repairs restarts the
// lease later than the winner did. The release is GET, compare, DEL, which is not atomic.
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
