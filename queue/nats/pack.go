package nats

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"

	"github.com/lockfault/lockfault/queue"
)

// objectHeader says in which object an answer is that is too large for a message.
const objectHeader = "Lockfault-Object"

// pack encodes an answer. Histories are most of it, and shrink to a tenth.
func pack(a queue.Answer) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	err := errors.Join(json.NewEncoder(w).Encode(a), w.Close())
	return b.Bytes(), err
}

// unpack undoes pack.
func unpack(text []byte) (a queue.Answer, err error) {
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return a, err
	}
	all, err := io.ReadAll(r) // with its checksum
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(all, &a)
}
