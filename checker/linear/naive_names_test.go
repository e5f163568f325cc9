package linear

// specOf has the code's name of each specification that the oracle knows.
func specOf(s naiveSpec) Spec {
	switch s.kind {
	case naiveReentrant:
		return Reentrant(s.limit)
	case naiveLease:
		return Lease(s.expiry)
	case naiveFenced:
		return Fenced()
	case naiveMulti:
		return Multi()
	case naiveSemaphore:
		return Semaphore(s.limit)
	case naiveMutexTokens:
		return MutexTokens()
	case naiveReadWrite:
		return ReadWrite()
	case naiveServed:
		return Lease(ByServer)
	}
	return Mutex()
}
