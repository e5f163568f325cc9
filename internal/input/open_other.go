//go:build !unix

package input

// withoutWaiting is not needed on systems where pipes are not files.
const withoutWaiting = 0
