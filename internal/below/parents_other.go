//go:build !unix

package below

// CheckParents returns nil: the system's files have no owners that this package knows.
func CheckParents(string) error { return nil }
