// Package histories reads histories of locks that other programs recorded: the
// JSON lines of this one, Jepsen's EDN, and CSV made from production logs, each
// plain or compressed with gzip. Bytes come in, [linear.Event] values go out,
// one at a time, so a file may be larger than the memory. What is wrong with a
// file is told as file:line: reason, an [Error].
//
// A [Reader] checks what makes a history well-formed, and nothing else: time
// never goes back, a return has its call, a client does one thing at a time on a
// lock. Whether the lock worked is for package linear to say.
//
// docs/history.md describes the formats.
package history
