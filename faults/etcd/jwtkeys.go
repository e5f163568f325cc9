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

// writeKeys writes the keys with which a cluster's members verify the tokens of logged-in clients,
// and returns etcd's option for them. With etcd's simple tokens a member accepts only the tokens
// that have been replicated to it: a client that switches to another member may be refused for a
// moment, which clients' watches don't survive.
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
