package external

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
)

// mixedUp explains why a server could not be asked: it may be that the address
// names TLS where the server speaks plain text, or the other way round. It blocks
// for as long as a server may take to answer.
func (a address) mixedUp(ctx context.Context, why error) error {
	var reply redis.Error
	var certificate *tls.CertificateVerificationError
	var timeout net.Error
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch {
	case errors.As(why, &reply), errors.As(why, &certificate): // it was understood
	case a.tls != nil && a.answersPlainly(ctx):
		return fmt.Errorf("external: what listens at %s speaks plain text, and its %w says TLS: write redis:// in place of rediss://", a, ErrAddress)
	case a.tls != nil, errors.As(why, &timeout) && timeout.Timeout(): // TLS is not silent when it hears plain text
	case a.encrypts(ctx):
		return fmt.Errorf("external: what listens at %s speaks TLS, and its %w does not say so: write rediss:// in place of redis://", a, ErrAddress)
	}
	return a.explain(why)
}

// encrypts reports whether the server speaks TLS, be it to refuse us.
func (a address) encrypts(ctx context.Context) bool {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // nothing is told to it
	conn, err := dialer.DialContext(ctx, "tcp", a.at)
	if err == nil {
		conn.Close()
	}
	var alert tls.AlertError
	return err == nil || errors.As(err, &alert)
}

// answersPlainly reports whether the server answers a Redis command in plain
// text.
func (a address) answersPlainly(ctx context.Context) bool {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", a.at)
	if err != nil {
		return false
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline) // of a connection that is open
	}
	answer := make([]byte, 1)
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	_, err = conn.Read(answer)
	return err == nil && (answer[0] == '+' || answer[0] == '-')
}
