// Package conformance asks whether the world of virtual time answers as Redis
// does. Its tests play one table of cases, testdata/*.txt, in package faults/sim
// and on a redis-server, and compare every reply.
//
// The replies in the files are those of redis-server; go test -update writes
// them anew. [README] describes the files. Where sim can't answer the same, the
// file says what it answers instead, and why nobody minds. The package exports
// nothing and is imported by nobody.
//
// [README]: https://github.com/lockfault/lockfault/blob/main/faults/conformance/testdata/README.md
package conformance
