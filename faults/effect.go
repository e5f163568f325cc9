package faults

import (
	"slices"

	"github.com/lockfault/lockfault/internal/rediscmd"
)

// Effect is what a request does to the lock, independent of the command that it uses.
type Effect string

// The effects. Writing and Reading follow from the words of a request. Taking and Freeing are known
// only after a server has executed the request, so they select only replies.
const (
	// Writing is a request that names a key of the lock and may change that key.
	Writing Effect = "writing"
	// Reading is a request that names a key of the lock and does not change that key. WATCH does not count: its
	// reply says nothing of the key.
	Reading Effect = "reading"
	// Taking is a request by which its client became the lock's owner. If the owner cannot be read
	// from the key, Taking is a request that created the key.
	Taking Effect = "taking"
	// Freeing is a request by which its client ceased to be the lock's owner. If the owner could
	// not be read from the key, Freeing is a request that removed the key.
	Freeing Effect = "freeing"
)

// Effects returns the effects that can select messages of the given way: none for Messages.
func Effects(way Way) []Effect {
	switch way {
	case Before:
		return []Effect{Writing, Reading}
	case After:
		return []Effect{Taking, Freeing, Writing, Reading}
	}
	return nil
}

// has reports whether the message belongs to a request with the effect e. For Taking and Freeing it
// compares m.Did; for Writing and Reading it reads the request's words.
func (m Message) has(e Effect) bool {
	switch e {
	case Taking, Freeing:
		return m.Did == e
	}
	if m.Service {
		return false
	}
	names := len(m.Words) > 1 && slices.ContainsFunc(m.Words[1:], func(word string) bool { return slices.Contains(m.Keys, word) })
	command := rediscmd.Lookup(m.Command)
	return names && !command.AboutChannels() && !command.OfTransactions() && command.LeavesKeys() == (e == Reading)
}

// did returns what a client's command did to the lock: Taking, Freeing, or the empty Effect. client
// is empty if the server itself made the change.
func did(was, now entry, client string) Effect {
	had, has := slices.ContainsFunc(was.keys, Key.Exists), slices.ContainsFunc(now.keys, Key.Exists)
	switch {
	case client == "":
	case now.known && now.owner == client && was.owner != client, !now.known && has && !had:
		return Taking
	case was.owner == client && now.known && now.owner != client, !was.known && had && !has:
		return Freeing
	}
	return ""
}

// LeavesKeys reports whether the command, in upper case, is known to change no key.
func LeavesKeys(command string) bool { return rediscmd.Lookup(command).LeavesKeys() }
