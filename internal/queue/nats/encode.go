package nats

import (
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go"

	"github.com/lockfault/lockfault/internal/queue"
)

// The headers of an answer.
const (
	// objectHeader holds the name of the object with the text of an answer that is too large for a
	// message.
	objectHeader = "Lockfault-Object"
	// workerHeader holds the public key of the worker, and signatureHeader its signature.
	workerHeader    = "Lockfault-Worker"
	signatureHeader = "Lockfault-Signature"
)

// pack encodes an answer as compressed JSON. Most of an answer is histories, which compress to a
// tenth.
func pack(a queue.Answer) ([]byte, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	if len(text) > queue.MaxAnswer {
		return nil, fmt.Errorf("queue: answer to %s: %d bytes, more than the limit of %d", a.Name, len(text), queue.MaxAnswer)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err = w.Write(text)
	err = errors.Join(err, w.Close()) // Close writes the last block
	return b.Bytes(), err
}

// unpack decodes a text of any origin that pack may have written.
func unpack(text []byte) (a queue.Answer, err error) {
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return a, err
	}
	all, err := io.ReadAll(io.LimitReader(r, queue.MaxAnswer+1)) // reading to the end also verifies the checksum
	switch {
	case err != nil:
		return a, err
	case len(all) > queue.MaxAnswer:
		return a, fmt.Errorf("more than the limit of %d bytes when decompressed", queue.MaxAnswer)
	}
	return a, json.Unmarshal(all, &a)
}

// An identity is the key with which a worker signs its answers. The worker draws the key when it
// connects, so that no other worker can answer in its name: a worker that is excluded for a wrong
// answer has given that answer.
type identity struct{ key ed25519.PrivateKey }

func newIdentity() (identity, error) {
	_, key, err := ed25519.GenerateKey(nil)
	return identity{key}, err
}

func (i identity) name() string { return hex.EncodeToString(i.key.Public().(ed25519.PublicKey)) }

// sign adds the headers of the worker to an answer with the given subject and text.
func (i identity) sign(h nats.Header, subject string, text []byte) {
	h.Set(workerHeader, i.name())
	h.Set(signatureHeader, base64.StdEncoding.EncodeToString(ed25519.Sign(i.key, signed(subject, text))))
}

// signed returns the bytes that are signed: they bind the text to the subject.
func signed(subject string, text []byte) []byte {
	sum := sha256.Sum256(text)
	return append([]byte("lockfault answer\n"+subject+"\n"), sum[:]...)
}

// verify returns the name of the worker that signed the text as the answer with the given subject.
func verify(h nats.Header, subject string, text []byte) (worker string, err error) {
	worker = h.Get(workerHeader)
	key, err := hex.DecodeString(worker)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return "", errors.New("no worker has signed it")
	}
	signature, err := base64.StdEncoding.DecodeString(h.Get(signatureHeader))
	if err != nil || !ed25519.Verify(key, signed(subject, text), signature) {
		return "", fmt.Errorf("the signature is not that of worker %s", queue.Short(worker))
	}
	return hex.EncodeToString(key), nil
}
