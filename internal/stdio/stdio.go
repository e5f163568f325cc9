// Package stdio keeps a process's standard streams for those for whom they are
// meant: programs that speak a protocol there and play other people's code, which
// prints and reads what it likes. It imports the standard library only.
package stdio
