package explore

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/lockfault/lockfault/internal/input"
)

// A journal file begins with a line that describes the search, for human readers. One block for
// each portion of scripts follows:
//
//	length of the looks, number of keys, checksum   4 bytes each, the least significant first
//	keys                                            16 bytes each
//	looks                                           lines of JSON, deflated
//
// A look is an [Outcome]. Outcomes recorded in succession are similar, so compressing them together
// takes a tenth of the space of compressing each alone. A script is identified by its key; storing
// its text would take more space than everything else.

// journalKind and journalFormat identify the file in its first line.
const (
	journalKind   = "checkpoint of lockfault explore"
	journalFormat = 1
)

// A heading is the first line of a journal file.
type heading struct {
	Kind     string `json:"file"`
	Format   int    `json:"format"`
	Strategy string `json:"strategy"`
	Seed     uint64 `json:"seed"`
	TTL      string `json:"ttl"`
	Version  string `json:"version"`
	Build    string `json:"build"`
}

// longestHeading is the largest length of the first line in bytes.
const longestHeading = 1 << 16

// An entry is a script's key and outcome.
type entry struct {
	key     key
	outcome Outcome
}

// A block is a part of the file.
type block struct {
	keys []key
	body []byte // compressed
}

// The sizes of the parts of a block, in bytes.
const (
	frameLen = 12
	keyLen   = len(key{})
)

// longestBody limits the length of a block, so that a damaged length does not exhaust the memory.
const longestBody = 1 << 28

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the checksum of a block, computed over everything but the checksum itself.
func checksum(text []byte) uint32 {
	return crc32.Update(crc32.Checksum(text[:frameLen-4], castagnoli), castagnoli, text[frameLen:])
}

// A packer encodes blocks. The zero value is ready for use.
type packer struct {
	deflate *flate.Writer
	text    bytes.Buffer
}

// pack returns the block of the entries. The result is valid until the next call.
func (p *packer) pack(list []entry) ([]byte, error) {
	p.text.Reset()
	p.text.Write(make([]byte, frameLen))
	for _, e := range list {
		p.text.Write(e.key[:])
	}
	if p.deflate == nil {
		p.deflate, _ = flate.NewWriter(nil, flate.DefaultCompression) // the level is valid, so no error is possible
	}
	p.deflate.Reset(&p.text)
	out := json.NewEncoder(p.deflate)
	for _, e := range list {
		if err := out.Encode(e.outcome); err != nil {
			return nil, err
		}
	}
	if err := p.deflate.Close(); err != nil {
		return nil, err
	}
	text := p.text.Bytes()
	binary.LittleEndian.PutUint32(text, uint32(len(text)-frameLen-len(list)*keyLen))
	binary.LittleEndian.PutUint32(text[4:], uint32(len(list)))
	binary.LittleEndian.PutUint32(text[8:], checksum(text))
	return text, nil
}

// errDamaged reports a block that differs from what was written.
var errDamaged = errors.New("it is damaged: remove it to begin anew")

// readBlock reads the block at an offset. The error is io.EOF if the file ends before the block,
// and io.ErrUnexpectedEOF if it ends within the block.
func readBlock(file io.ReaderAt, at int64) (block, error) {
	return nextBlock(io.NewSectionReader(file, at, 1<<62))
}

func nextBlock(r io.Reader) (block, error) {
	text := make([]byte, frameLen)
	if _, err := io.ReadFull(r, text); err != nil {
		return block{}, err
	}
	length, n := int64(binary.LittleEndian.Uint32(text)), int64(binary.LittleEndian.Uint32(text[4:]))
	if n == 0 || n > portion || length > longestBody {
		return block{}, errDamaged
	}
	// Memory grows with the data present, not with a possibly damaged length.
	rest := bytes.NewBuffer(text)
	switch read, err := io.CopyN(rest, r, n*int64(keyLen)+length); {
	case errors.Is(err, io.EOF) || err == nil && read < n*int64(keyLen)+length:
		return block{}, io.ErrUnexpectedEOF
	case err != nil:
		return block{}, err
	}
	text = rest.Bytes()
	if binary.LittleEndian.Uint32(text[8:]) != checksum(text) {
		return block{}, errDamaged
	}
	b := block{body: text[frameLen+int(n)*keyLen:]}
	for i := range int(n) {
		b.keys = append(b.keys, key(text[frameLen+i*keyLen:]))
	}
	return b, nil
}

// size returns the size of the block in the file, in bytes.
func (b block) size() int64 { return int64(frameLen + len(b.keys)*keyLen + len(b.body)) }

// lines returns the outcomes as lines of JSON, one for each key.
func (b block) lines() ([][]byte, error) {
	text, err := input.ReadAll(flate.NewReader(bytes.NewReader(b.body)), "block", longestBody)
	if tooLarge := (*input.TooLargeError)(nil); errors.As(err, &tooLarge) {
		return nil, errDamaged
	}
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(bytes.TrimSuffix(text, []byte{'\n'}), []byte{'\n'})
	if len(lines) != len(b.keys) {
		return nil, errDamaged
	}
	return lines, nil
}

// read reads an existing file up to its first incomplete or damaged block, and writes the heading
// of an empty file. Everything from that block on is cut off.
func (j *Journal) read(of Subject) error {
	is := heading{journalKind, journalFormat, of.Strategy, of.Seed, of.TTL.String(), of.Version, of.Build}
	text, err := json.Marshal(is)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	r := bufio.NewReaderSize(j.file, longestHeading)
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF) && bytes.HasPrefix(text, line): // killed while the heading was being written
		j.end = int64(len(text))
		_, err := j.file.WriteAt(text, 0)
		return err
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull):
		return err
	}
	if err := is.check(line); err != nil {
		return fmt.Errorf("%s %w: name another file, or remove this one to begin anew", j.path, err)
	}
	j.end = int64(len(line))
	for {
		b, err := nextBlock(r)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errDamaged):
			return j.cut()
		case err != nil:
			return err
		}
		for _, k := range b.keys {
			j.index[k.half()] = uint32(len(j.blocks))
		}
		j.blocks = append(j.blocks, j.end)
		j.end += b.size()
	}
}

// cut removes everything after the last complete block.
func (j *Journal) cut() error {
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	j.dropped = info.Size() - j.end
	return j.file.Truncate(j.end)
}

// check returns an error that describes how the heading differs from a file's first line.
func (is heading) check(line []byte) error {
	var was heading
	if err := json.Unmarshal(line, &was); err != nil || was.Kind != journalKind || !strings.HasSuffix(string(line), "\n") {
		return errors.New("is not a checkpoint of a search")
	}
	differs := func(what string, was, is any) error {
		return fmt.Errorf("is the checkpoint of another search: its %s was %v and is %v now", what, was, is)
	}
	switch {
	case was.Format != is.Format:
		return errors.New("is a checkpoint that another version of lockfault wrote")
	case was.Strategy != is.Strategy:
		return differs("strategy", was.Strategy, is.Strategy)
	case was.Seed != is.Seed:
		return differs("seed", was.Seed, is.Seed)
	case was.TTL != is.TTL:
		return differs("ttl", was.TTL, is.TTL)
	case was.Version != is.Version:
		return differs("version", was.Version, is.Version)
	case was.Build != is.Build:
		return errors.New("is the checkpoint of another build of this program, whose locks may do something else")
	}
	return nil
}
