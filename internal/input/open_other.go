//go:build !unix

package input

// withoutWaiting is not needed where pipes are no files.
const withoutWaiting = 0
