package explore

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/lockfault/lockfault/internal/flock"
)

// A Journal is a [Player] that records the outcome of each script in a file, and asks another
// player only for outcomes that are not in the file. A search whose process was killed at any point
// therefore continues after a restart and reaches the same result: a search is a function of the
// outcomes of its scripts.
//
// Outcomes are written when Play returns, even if the process is killed afterwards. The outcome of
// a script that failed is not recorded: the next search finds out whether the lock or the machine
// was the cause. The outcome of PlayAlone is not recorded either, because its callers check whether
// a script is reproducible.
//
// The file only grows at its end, by at least one block for each call of Play that plays something.
// Memory holds a few bytes per script; outcomes are read from the file on demand. Not safe for
// concurrent use.
type Journal struct {
	player Player
	file   *os.File
	path   string
	end    int64 // end of the last block
	packer packer
	// blocks holds the offset of each block in the file, and index the block of each script. The
	// index uses only half of a script's key; the block holds the whole key.
	blocks []int64
	index  map[half]uint32

	known, served int
	dropped       int64
}

// A Subject identifies what the scripts of a journal are played with. The other limits of a search
// are part of the scripts, so a search with a larger budget reuses the outcomes of a smaller one.
type Subject struct {
	Strategy string
	Seed     uint64
	TTL      time.Duration
	// Version and Build identify the program that contains the lock.
	Version, Build string
}

// portion is the number of scripts played before they are written: at most this many are lost when
// the process is killed.
const portion = 256

// A key identifies a script, and a half of a key is enough to find it.
type (
	key  [16]byte
	half [8]byte
)

func keyOf(t Trial) key {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d\n%s", t.Mark, t.Half, t.Script))
	return key(sum[:])
}

func (k key) half() half { return half(k[:]) }

// OpenJournal opens or creates a journal file for a search of the subject, whose scripts player
// plays.
//
// OpenJournal returns an error, and leaves the file unchanged, if the file is not a journal,
// belongs to another subject, or is open in another process. If path is a symbolic link, the
// journal is the link's target; a link without a target is an error. An incomplete block at the
// end, left by a killed process, is removed.
func OpenJournal(path string, of Subject, player Player) (*Journal, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular(): // opening a pipe may block
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	case errors.Is(err, fs.ErrNotExist):
		if link, err := os.Lstat(path); err == nil && link.Mode()&fs.ModeSymlink != 0 {
			return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("a symbolic link that leads to no file: remove it, or name another file")}
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	j := &Journal{player: player, file: file, path: path, index: map[half]uint32{}}
	err = flock.Take(file)
	switch {
	case errors.Is(err, flock.ErrTaken):
		err = fmt.Errorf("another search is writing to %s: wait for it, or name another file", path)
	case err == nil:
		err = j.read(of)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	j.known = len(j.index)
	return j, nil
}

// Known returns the number of scripts in the journal when it was opened.
func (j *Journal) Known() int { return j.known }

// Served returns the number of outcomes that were read from the journal instead of played.
func (j *Journal) Served() int { return j.served }

// Dropped returns the number of bytes of incomplete blocks removed when the file was opened.
func (j *Journal) Dropped() int64 { return j.dropped }

// Close closes the file and releases its lock. Close is idempotent.
func (j *Journal) Close() { _ = j.file.Close() } // everything is already written

// PlayAlone implements [Player]. It does not use the journal.
func (j *Journal) PlayAlone(ctx context.Context, trial Trial) (Outcome, error) {
	return j.player.PlayAlone(ctx, trial)
}

// End implements [ResumingPlayer].
func (j *Journal) End(ctx context.Context) (left string, err error) {
	if keeper, ok := j.player.(ResumingPlayer); ok {
		return keeper.End(ctx)
	}
	return "", nil
}

// Play implements [Player].
func (j *Journal) Play(ctx context.Context, trials []Trial) ([]Outcome, error) {
	looks := make([]Outcome, len(trials))
	if err := ctx.Err(); err != nil {
		return looks, err // the player may not be called at all
	}
	keys := make([]key, len(trials))
	for i, trial := range trials {
		keys[i] = keyOf(trial)
	}
	missing, err := j.recall(keys, looks)
	if err != nil {
		return looks, fmt.Errorf("read the checkpoint %s: %w", j.path, err)
	}
	for part := range slices.Chunk(missing, portion) {
		ask := trials[:0:0]
		for _, i := range part {
			ask = append(ask, trials[i])
		}
		played, err := j.player.Play(ctx, ask)
		if err != nil {
			return looks, err
		}
		var list []entry
		for n, i := range part {
			looks[i] = played[n]
			if played[n].Err == "" {
				list = append(list, entry{keys[i], played[n]})
			}
		}
		if err := j.write(list); err != nil {
			return looks, fmt.Errorf("write the checkpoint: %w: see to it, and start the search again to go on", err)
		}
	}
	return looks, nil
}

// recall fills in the outcomes that the journal has, and returns the indexes of the others.
func (j *Journal) recall(keys []key, looks []Outcome) (missing []int, err error) {
	wanted := map[uint32][]int{}
	for i, k := range keys {
		if at, ok := j.index[k.half()]; ok {
			wanted[at] = append(wanted[at], i)
		} else {
			missing = append(missing, i)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(wanted)) {
		b, err := readBlock(j.file, j.blocks[at])
		if err != nil {
			return nil, err
		}
		lines, err := b.lines()
		if err != nil {
			return nil, err
		}
		for _, i := range wanted[at] {
			n := slices.Index(b.keys, keys[i])
			if n < 0 { // another key with the same half
				missing = append(missing, i)
				continue
			}
			if err := json.Unmarshal(lines[n], &looks[i]); err != nil {
				return nil, err
			}
			j.served++
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// write appends a block.
func (j *Journal) write(list []entry) error {
	if len(list) == 0 {
		return nil
	}
	text, err := j.packer.pack(list)
	if err != nil {
		return err
	}
	if _, err := j.file.WriteAt(text, j.end); err != nil {
		_ = j.file.Truncate(j.end) // otherwise the next OpenJournal drops the incomplete block
		return err
	}
	for _, e := range list {
		j.index[e.key.half()] = uint32(len(j.blocks))
	}
	j.blocks = append(j.blocks, j.end)
	j.end += int64(len(text))
	return nil
}
