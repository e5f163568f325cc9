// Package checker judges what a lock did: a [History] comes in, a [Verdict]
// goes out. It knows no script, no world and no strategy, only what the
// history recorded, so that a history can be judged again at any time and by
// anybody.
//
// [Check] finds anomalies, each with a [Witness]; docs/anomalies.md defines
// them. [Encode] and [Decode] are the file format of histories, which
// docs/history.md describes. [Linearize] asks package linear for a legal order.
//
// The package imports the standard library and linear only.
package checker
