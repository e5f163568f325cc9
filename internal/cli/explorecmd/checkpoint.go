package explorecmd

import (
	"fmt"
	"io"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/version"
)

// openCheckpoint returns the player of a search. With --checkpoint it wraps player in a journal,
// which replays recorded runs, and also returns the journal, which the caller closes: this releases its
// file for other processes. Without the flag it returns player and no journal.
func (o *exploreOptions) openCheckpoint(strategy string, player explore.Player, stderr io.Writer) (explore.Player, *explore.Journal, error) {
	if o.checkpoint == "" {
		return player, nil, nil
	}
	build, err := kit.BuildDigest()
	if err != nil {
		return nil, nil, err
	}
	journal, err := explore.OpenJournal(o.checkpoint, explore.Subject{
		Strategy: strategy, Seed: o.Seed, TTL: o.Bound.TTL, Version: version.Of(), Build: build,
	}, player)
	if err != nil {
		return nil, nil, kit.Usage("--checkpoint: %v", err)
	}
	if n := journal.Dropped(); n > 0 {
		fmt.Fprintf(stderr, "lockfault: the end of %s was not whole: %s dropped, and what was in there is played again\n", o.checkpoint, kit.Count(int(n), "byte is", "bytes are"))
	}
	return journal, journal, nil
}

// tellCheckpoint writes how many runs were taken from the checkpoint of a previous search.
func (o *exploreOptions) tellCheckpoint(w io.Writer, journal *explore.Journal) error {
	if journal == nil || journal.Known() == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s known from %s\n", kit.Count(journal.Served(), "run was", "runs were"), o.checkpoint)
	return err
}
