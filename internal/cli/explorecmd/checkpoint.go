package explorecmd

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/version"
)

func (o *exploreOptions) addCheckpointFlag(flags *pflag.FlagSet) {
	flags.StringVar(&o.checkpoint, "checkpoint", "", "`file` that stores the progress, from which the same search continues (default none)")
}

// openCheckpoint returns the player of a search. With --checkpoint it wraps player in a journal,
// which replays recorded runs, and also returns the open file, which the caller closes. Without the
// flag it returns player and a nil checkpoint.
func (o *exploreOptions) openCheckpoint(strategy string, player explore.Player, stderr io.Writer) (explore.Player, *checkpoint, error) {
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
	return journal, &checkpoint{journal}, nil
}

// checkpoint is the open file of --checkpoint. A nil *checkpoint means that the flag is not set.
type checkpoint struct{ journal *explore.Journal }

// Close closes the file, which releases it for other processes. Close does nothing on nil.
func (c *checkpoint) Close() {
	if c != nil {
		c.journal.Close()
	}
}

// tellCheckpoint writes how many runs were taken from the checkpoint of a previous search.
func (o *exploreOptions) tellCheckpoint(w io.Writer, c *checkpoint) error {
	if c == nil || c.journal.Known() == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s known from %s\n", kit.Count(c.journal.Served(), "run was", "runs were"), o.checkpoint)
	return err
}
