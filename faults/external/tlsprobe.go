package external

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
)

// mixedUp explains why a server could not be asked. It checks whether the address names TLS and the
// server speaks plain text, or the other way round. It blocks for at most patience.
func (a address) mixedUp(ctx context.Context, why error) error {
	var reply redis.Error
	var certificate *tls.CertificateVerificationError
	var timeout net.Error
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch {
	case errors.As(why, &reply), errors.As(why, &certificate): // the server has understood the protocol
	case a.tls != nil && a.answersPlainly(ctx):
		return fmt.Errorf("external: what listens at %s speaks plain text, and its %w says TLS: write redis:// in place of rediss://", a, ErrAddress)
	case a.tls != nil, errors.As(why, &timeout) && timeout.Timeout(): // a TLS server answers plain text
	case a.encrypts(ctx):
		return fmt.Errorf("external: what listens at %s speaks TLS, and its %w does not say so: write rediss:// in place of redis://", a, ErrAddress)
	}
	return a.explain(why)
}

// encrypts reports whether the server speaks TLS, even if it refuses the connection.
func (a address) encrypts(ctx context.Context) bool {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // nothing is sent to it
	conn, err := dialer.DialContext(ctx, "tcp", a.at)
	if err == nil {
		conn.Close()
	}
	var alert tls.AlertError
	return err == nil || errors.As(err, &alert)
}

// answersPlainly reports whether the server answers a Redis command in plain text.
func (a address) answersPlainly(ctx context.Context) bool {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", a.at)
	if err != nil {
		return false
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline) // the connection is open, so this can't fail
	}
	answer := make([]byte, 1)
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	_, err = conn.Read(answer)
	return err == nil && (answer[0] == '+' || answer[0] == '-')
}
