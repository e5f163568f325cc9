package explore

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzBlocks checks that a block of arbitrary bytes is either read or refused.
func FuzzBlocks(f *testing.F) {
	var p packer
	for _, list := range [][]entry{{{}}, {{outcome: Outcome{Err: "x"}}, {}}} {
		text, err := p.pack(list)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Clone(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := nextBlock(bytes.NewReader(text))
		if err != nil {
			return
		}
		if b.size() > int64(len(text)) {
			t.Errorf("a block of %d bytes in %d", b.size(), len(text))
		}
		_, _ = b.lines()
	})
}

// FuzzJournal checks that a journal of arbitrary bytes is either read or refused, and that a
// journal that was read can be read again.
func FuzzJournal(f *testing.F) {
	path := filepath.Join(f.TempDir(), "checkpoint")
	j, err := OpenJournal(path, Subject{}, nil)
	if err != nil {
		f.Fatal(err)
	}
	j.Close()
	heading, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	var p packer
	block, err := p.pack([]entry{{}})
	if err != nil {
		f.Fatal(err)
	}
	for _, rest := range [][]byte{nil, block, block[:8], make([]byte, 100), bytes.Repeat([]byte{1, 0, 0, 15, 1, 0, 0, 0}, 20)} {
		f.Add(append(bytes.Clone(heading), rest...))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "checkpoint")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := OpenJournal(path, Subject{}, nil)
		if err != nil {
			after, broken := os.ReadFile(path)
			if broken != nil || !bytes.Equal(after, text) {
				t.Errorf("a file that was refused is changed: %v", broken)
			}
			return
		}
		j.Close()
		again, err := OpenJournal(path, Subject{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if again.Known() != j.Known() || again.Dropped() != 0 {
			t.Errorf("%d scripts, then %d, %d bytes dropped", j.Known(), again.Known(), again.Dropped())
		}
	})
}
