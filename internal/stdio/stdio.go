// Package stdio protects a process's standard streams in programs that speak a protocol on them and
// also run other code, which may print and read. The package imports only the standard library.
package stdio
