package nats

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/lockfault/lockfault/internal/below"
)

// maxCredentials is the largest size of a credentials file in bytes.
const maxCredentials = 64 << 10

// credentials returns the option for authentication with a file. The file holds the seed of an
// NKey, which the Serve method of package natsserver generates and which is never sent to a server;
// NATS credentials with a JWT; or one line USER:PASSWORD.
func credentials(file string) (nats.Option, error) {
	text, err := readCredentials(file)
	if err != nil {
		return nil, err
	}
	line := strings.TrimSpace(string(text))
	user, password, several := strings.Cut(line, ":")
	switch {
	case bytes.Contains(text, []byte("BEGIN NATS USER JWT")):
		return nats.UserCredentials(file), nil
	case strings.HasPrefix(line, "SU"):
		return nats.NkeyOptionFromSeed(file)
	case several && user != "" && password != "" && !strings.ContainsAny(line, "\n\r"):
		return nats.UserInfo(user, password), nil
	}
	return nil, fmt.Errorf("%s holds no credentials: it must hold an NKey's seed, credentials of NATS, or one line USER:PASSWORD", file)
}

func readCredentials(file string) ([]byte, error) {
	about, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !about.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCredentials+1))
	if err == nil && len(text) > maxCredentials {
		err = fmt.Errorf("%s is larger than the limit of %d bytes", file, maxCredentials)
	}
	return text, err
}

// NewCredentials returns the user of the credentials in a file: the public part of an NKey.
// NewCredentials creates the file with mode 0600 if it does not exist. It returns an error if
// another user may know the file's content or can replace the file.
func NewCredentials(file string) (user string, err error) {
	if err := below.CheckParents(file); err != nil {
		return "", err
	}
	seed, err := readCredentials(file)
	if errors.Is(err, os.ErrNotExist) {
		seed, err = writeSeed(file)
	}
	if err != nil {
		return "", err
	}
	about, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if loose := about.Mode().Perm() & 0o077; loose != 0 && os.PathSeparator == '/' {
		return "", fmt.Errorf("%s may be read by others (mode %#o): remove it to have another one generated", file, about.Mode().Perm())
	}
	if !below.Owned(about) {
		return "", fmt.Errorf("%s belongs to another user, who knows what is in it: name another file", file)
	}
	pair, err := nkeys.FromSeed(bytes.TrimSpace(seed))
	if err != nil {
		return "", fmt.Errorf("%s holds no seed of an NKey: remove it to have another one generated", file)
	}
	return pair.PublicKey()
}

// writeSeed draws an NKey and writes its seed to a file, which must not exist.
func writeSeed(file string) (seed []byte, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	if seed, err = pair.Seed(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(seed, '\n'))
	return seed, errors.Join(err, f.Close())
}

// CheckDir returns an error unless a directory belongs to this user, no other user may write to it,
// and nothing directly in it is a symbolic link.
func CheckDir(dir string) error {
	about, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !below.Owned(about) || about.Mode().Perm()&0o022 != 0 && os.PathSeparator == '/' {
		return fmt.Errorf("%s belongs to another user, or other users may write to it (mode %#o): name another directory", dir, about.Mode().Perm())
	}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink != 0 {
			return fmt.Errorf("%s in %s is a symbolic link: remove it, or name another directory", entry.Name(), dir)
		}
	}
	return err
}
