// Package history reads histories of locks that other programs recorded: the JSON lines of
// lockfault, Jepsen's EDN, and CSV made from production logs, each plain or compressed with gzip.
// Bytes come in; [linear.Event] values go out, one at a time, so a file may be larger than the
// memory. An [Error] reports a problem in a file as file:line: reason.
//
// A [Reader] checks only that a history is well-formed: time never decreases, every return has its
// invocation, and a client has at most one operation under way on a lock. Package linear decides
// whether the lock worked.
//
// docs/history.md describes the formats.
package history
