package etcd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// writeKeys writes the keys by which the members of a cluster know what clients show once they have said the
// password. With etcd's simple tokens a member knows only those of which it has been told by then: who is
// told to ask another one is a stranger there for a moment, which clients' watches don't survive.
func writeKeys(dir string) (option string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return "", err
	}
	write := func(name, kind string, der []byte) (string, error) {
		file := filepath.Join(dir, name)
		return file, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	}
	sign, failed := write("sign.pem", "EC PRIVATE KEY", private)
	verify, failedToo := write("verify.pem", "PUBLIC KEY", public)
	return fmt.Sprintf("jwt,pub-key=%s,priv-key=%s,sign-method=ES256,ttl=24h", verify, sign), errors.Join(failed, failedToo)
}
