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

// A Journal is a [Player] that keeps in a file what each script came to, and asks
// another player only for those that it has not. So a search whose process was killed,
// at whatever moment, goes on when it is started again, and comes to what it would have
// come to: a search is a function of what its scripts came to.
//
// What is written is there when Play returns, even if the process is killed. A script
// that came to nothing is not kept: whether it was the lock's fault or the machine's, the
// next search sees for itself. Again is not kept either, for it asks whether a script comes out
// the same once more.
//
// The file grows at its end only, by a block for each call of Play. In memory are a few bytes for each
// script; what it came to is read when it is asked for. It is for one goroutine at a time.
type Journal struct {
	player Player
	file   *os.File
	path   string
	end    int64 // of the last block
	packer packer
	// The blocks' beginnings in the file, and which of them has a script. A script goes
	// by half its key here; the block has all of it.
	blocks []int64
	index  map[half]uint32

	known, served int
	dropped       int64
}

// A Subject is what the scripts of a journal are played with. What else bounds a search
// is in the scripts: so a search with a larger budget takes over what a smaller
// one has played.
type Subject struct {
	Strategy string
	Seed     uint64
	TTL      time.Duration
	// Version and Build name the program, in which the lock is.
	Version, Build string
}

// portion is how many scripts are played before they are written: what a kill costs at most.
const portion = 256

// A key is what a script is known by, and half of it is enough to find it.
type (
	key  [16]byte
	half [8]byte
)

func keyOf(t Trial) key {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d\n%s", t.Mark, t.Half, t.Script))
	return key(sum[:])
}

func (k key) half() half { return half(k[:]) }

// OpenJournal opens the file, or makes it if there is none, for a search of the subject,
// whose scripts the player plays. A file that is no journal, or that of another subject, is an error, and
// is left as it is; so is one that another process has open. If the path is a symbolic link, the
// journal is the file that it leads to; a link that leads to no file is an error. What was being written when a
// process was killed is dropped.
func OpenJournal(path string, of Subject, player Player) (*Journal, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular(): // to open a pipe may block
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

// Known returns how many scripts were in the journal when it was opened.
func (j *Journal) Known() int { return j.known }

// Served returns how many scripts needn't be played, because they were in the journal.
func (j *Journal) Served() int { return j.served }

// Dropped returns how many bytes at the end of the file were not whole when it was opened.
func (j *Journal) Dropped() int64 { return j.dropped }

// Close lets others have the file. Idempotent.
func (j *Journal) Close() { _ = j.file.Close() } // what was written is there

// PlayAlone implements [Player].
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
		return looks, err // the player may not be asked
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

// recall fills in what is known, and returns the places of what isn't.
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
			if n < 0 { // another's key begins like this one
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
		_ = j.file.Truncate(j.end) // or who opens it next drops what there is of it
		return err
	}
	for _, e := range list {
		j.index[e.key.half()] = uint32(len(j.blocks))
	}
	j.blocks = append(j.blocks, j.end)
	j.end += int64(len(text))
	return nil
}
