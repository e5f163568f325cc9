// Package processtest gives tests a Redis as a user would run it, and connections to it. It is for
// tests only.
package processtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/internal/rediscli"
)

// Host returns a host of servers that closes with the test, in a directory of the test unless the
// options name one. Without a server program it skips the test, or fails it if CI is set or the
// options name a binary.
func Host(t *testing.T, options process.Options) *process.Host {
	t.Helper()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	h, err := process.New(options)
	if missing := (*process.BinaryError)(nil); errors.As(err, &missing) && options.Binary == "" && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// Connect returns a client with full rights, which closes at the end of the test.
func Connect(t *testing.T, addr, password string, db int) *redis.Client {
	t.Helper()
	o := rediscli.Options(addr)
	o.Password, o.DB = password, db
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// Encrypt puts a TLS proxy before a server, with a certificate for the given name, until the test
// ends. It returns the proxy's address, and the certificate in PEM.
func Encrypt(t *testing.T, to, name string) (addr string, certificate []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go Relay(listener, to, 0)
	return listener.Addr().String(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Relay carries connections to a server until the listener closes. The server receives each chunk
// later by the given time, before the next one is read. If the listener speaks TLS, the server
// receives plain bytes.
func Relay(listener net.Listener, to string, later time.Duration) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			server, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			go func() {
				defer server.Close()
				io.Copy(lateWriter{server, later}, client)
			}()
			io.Copy(client, server)
		}()
	}
}

// A lateWriter delays each write by a given time.
type lateWriter struct {
	io.Writer
	later time.Duration
}

func (w lateWriter) Write(p []byte) (int, error) {
	time.Sleep(w.later)
	return w.Writer.Write(p)
}
