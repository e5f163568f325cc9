// Package checker judges a history of lock operations: a [History] comes in, a [Verdict] goes out.
// The package uses only what the history records and no script, world or strategy, so you can
// judge a recorded history again at any time.
//
// [Check] finds anomalies, each with a [Witness]; docs/anomalies.md defines them. [Encode] and
// [Decode] write and read the file format of histories; docs/history.md describes the format.
// [Linearize] asks package linear for a legal order.
//
// The package imports only the standard library, package linear and package jsonscan.
package checker
