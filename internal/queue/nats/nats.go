// Package nats implements a [queue.Engine] with NATS JetStream:
// https://docs.nats.io/nats-concepts/jetstream.
//
// Items are messages of a work queue stream, which holds at most one message per subject and
// removes a message when it is acknowledged. Answers are messages of a second stream; an answer is
// stored on condition that its subject has no message. A worker acknowledges an item after its
// answer is stored, so if any process dies in between, either the item or its answer is still
// there.
package nats

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lockfault/lockfault/internal/queue"
)

// Engine implements [queue.Engine]. The zero value is ready for use.
type Engine struct {
	// Quiet is the time without an answer after which a campaign checks whether the servers lost
	// something; 0 means 30 s.
	Quiet time.Duration
}

// reach connects to servers, and retries for a few seconds, because the servers may just have been
// started.
func reach(ctx context.Context, urls string, options []nats.Option) (*nats.Conn, error) {
	const within = 5 * time.Second
	for began := time.Now(); ; {
		nc, err := nats.Connect(urls, options...)
		if !errors.Is(err, nats.ErrNoServers) || time.Since(began) > within || ctx.Err() != nil {
			return nc, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// unreached is the time for which servers may be unreachable before a message is shown. Usually
// this server or another one of the cluster is reachable again by then.
const unreached = 5 * time.Second

// A wait reports that servers are unreachable, and that they are reachable again.
type wait struct {
	where string
	say   func(string)

	mu   sync.Mutex
	said bool
}

func (w *wait) begin(nc *nats.Conn) {
	time.AfterFunc(unreached, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !nc.IsConnected() && !nc.IsClosed() && !w.said {
			w.said = true
			w.say(fmt.Sprintf("the queue %s can't be reached any more: waiting for it", w.where))
		}
	})
}

func (w *wait) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said {
		w.said = false
		w.say(fmt.Sprintf("the queue %s is there again", w.where))
	}
}

// schemes returns the URL schemes of a server's address.
func schemes() []string { return []string{"nats", "tls", "ws", "wss"} }

// Connect implements [queue.Engine].
func (e Engine) Connect(ctx context.Context, at queue.Address, say func(string)) (queue.Conn, error) {
	where, err := shown(at.URLs)
	if err != nil {
		return nil, err
	}
	options, err := secure(at)
	if err != nil {
		return nil, err
	}
	w := &wait{where: where, say: say}
	options = append(options,
		nats.DisconnectErrHandler(func(nc *nats.Conn, _ error) { w.begin(nc) }), nats.ReconnectHandler(func(*nats.Conn) { w.end() }),
		nats.Name("lockfault"), nats.Timeout(5*time.Second), nats.PingInterval(10*time.Second), nats.MaxPingsOutstanding(2),
		// A server that is unreachable for a while is expected to return.
		nats.MaxReconnects(-1), nats.ReconnectWait(250*time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // lost messages are requested again
	)
	nc, err := reach(ctx, at.URLs, options)
	if errors.Is(err, nats.ErrAuthorization) && at.Credentials != "" {
		return nil, queue.BadAddress("the queue %s does not accept the credentials in %s: give the file that the queue's server has", where, at.Credentials)
	}
	if errors.Is(err, nats.ErrAuthorization) {
		return nil, queue.BadAddress("the queue %s does not let us in: give the file of its credentials with --queue-creds; \"lockfault queue\" names it when it starts", where)
	}
	if err != nil {
		return nil, fmt.Errorf("the queue %s can't be reached: %w", where, err)
	}
	id, err := newIdentity()
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("draw a key to sign answers with: %w", err)
	}
	c := &conn{nc: nc, identity: id, where: where, say: say, quiet: cmp.Or(e.Quiet, 30*time.Second)}
	if err := c.open(ctx); err != nil {
		nc.Close()
		return nil, fmt.Errorf("the queue %s: %w", where, err)
	}
	return c, nil
}

// shown returns the servers' addresses without credentials, or an error if an address is invalid.
func shown(urls string) (string, error) {
	var list []string
	for _, text := range strings.Split(urls, ",") {
		u, err := url.Parse(strings.TrimSpace(text))
		switch {
		case err != nil: // the text of err contains the address with its credentials
			return "", queue.BadAddress("give one such as nats://127.0.0.1:4222")
		case u.User != nil:
			return "", queue.BadAddress("the address holds a user or a password, which other users of this machine see: write USER:PASSWORD to a file, and name it with --queue-creds")
		case !slices.Contains(schemes(), u.Scheme) || u.Hostname() == "" || u.Port() != "" && !isPort(u.Port()):
			return "", queue.BadAddress("give one such as nats://127.0.0.1:4222, or tls://HOST:PORT")
		}
		list = append(list, u.Scheme+"://"+u.Host)
	}
	return strings.Join(list, ","), nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// secure returns the connection options for authentication and TLS.
func secure(at queue.Address) (options []nats.Option, err error) {
	if at.Credentials != "" {
		option, err := credentials(at.Credentials)
		if err != nil {
			return nil, queue.BadAddress("credentials: %w", err)
		}
		options = append(options, option)
	}
	if at.CA == "" && at.Certificate == "" && at.Key == "" {
		return options, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if at.CA != "" {
		text, err := os.ReadFile(at.CA)
		if err != nil {
			return nil, queue.BadAddress("CA: %w", err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, queue.BadAddress("CA: %s has no certificate", at.CA)
		}
	}
	if (at.Certificate == "") != (at.Key == "") {
		return nil, queue.BadAddress("a certificate and its key are two files: give both")
	}
	if at.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(at.Certificate, at.Key)
		if err != nil {
			return nil, queue.BadAddress("certificate and key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return append(options, nats.Secure(config)), nil
}

// A conn implements [queue.Conn].
type conn struct {
	nc       *nats.Conn
	identity identity // of the connection's worker
	where    string
	say      func(string)
	quiet    time.Duration
	js       jetstream.JetStream

	work, results jetstream.Stream
	notes         jetstream.KeyValue
	files         jetstream.ObjectStore
}

// Close implements [queue.Conn].
func (c *conn) Close() {
	_ = c.nc.FlushTimeout(2 * time.Second) // sends the items that were given back
	c.nc.Close()
}

// The names of the streams, buckets and subjects on a server.
const (
	workStream    = "LOCKFAULT_WORK"
	resultStream  = "LOCKFAULT_RESULTS"
	noteBucket    = "LOCKFAULT_NOTES"
	fileBucket    = "LOCKFAULT_FILES"
	workSubject   = "lockfault.work"
	resultSubject = "lockfault.result"
)

const (
	// retention is the time for which a server keeps data that nothing has taken or removed.
	retention = 7 * 24 * time.Hour
	// replicas is the number of servers of a cluster that store each message.
	replicas = 3
	// notClustered is the error code of a single server that was asked for more than one replica.
	notClustered = 10074
)

// open finds or creates the streams and buckets on the servers.
func (c *conn) open(ctx context.Context) (err error) {
	if c.js, err = jetstream.New(c.nc); err != nil {
		return err
	}
	defer time.AfterFunc(unreached, func() {
		c.say(fmt.Sprintf("the queue %s does not answer yet: its servers may be electing a leader", c.where))
	}).Stop()
	for _, n := range []int{replicas, 1} {
		err = persist(ctx, patience, func(ctx context.Context) error { return c.make(ctx, n) })
		if !coded(err, notClustered) {
			break
		}
	}
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
		return fmt.Errorf("%w: start the server with JetStream: nats-server -js, or \"lockfault queue\"", err)
	}
	return err
}

// make creates what does not exist yet, with n replicas. Existing streams and buckets stay
// unchanged: the operator of the servers may have created them.
func (c *conn) make(ctx context.Context, n int) (err error) {
	stream := func(config jetstream.StreamConfig) (jetstream.Stream, error) {
		s, err := c.js.Stream(ctx, config.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return c.js.CreateStream(ctx, config)
		}
		return s, err
	}
	if c.work, err = stream(jetstream.StreamConfig{
		Name: workStream, Subjects: []string{workSubject + ".>"}, Retention: jetstream.WorkQueuePolicy, MaxAge: retention, Replicas: n,
		Description: "what lockfault has to play",
	}); err != nil {
		return err
	}
	if c.results, err = stream(jetstream.StreamConfig{
		Name: resultStream, Subjects: []string{resultSubject + ".>"}, MaxAge: retention, Replicas: n,
		Description: "what came of what lockfault played",
	}); err != nil {
		return err
	}
	if c.notes, err = c.js.KeyValue(ctx, noteBucket); errors.Is(err, jetstream.ErrBucketNotFound) {
		c.notes, err = c.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: noteBucket, TTL: retention, Replicas: n, Description: "what lockfault's campaigns say"})
	}
	if err != nil {
		return err
	}
	if c.files, err = c.js.ObjectStore(ctx, fileBucket); errors.Is(err, jetstream.ErrBucketNotFound) {
		c.files, err = c.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: fileBucket, TTL: retention, Replicas: n, Description: "large ones of what came of what lockfault played"})
	}
	return err
}

// The parameters of consumers.
const (
	// ackWait is the time without a sign of life of a worker after which its items are given to
	// others.
	ackWait = 30 * time.Second
	// forgotten is the time without requests of a program's workers after which the server removes
	// the consumer.
	forgotten = 24 * time.Hour
	// most is the largest number of items in progress, and of waiting requests of workers.
	most = 100_000
)

// consumer returns the consumer of a program's items of a kind.
func (c *conn) consumer(ctx context.Context, p queue.Program, kind queue.Kind) (consumer jetstream.Consumer, err error) {
	err = persist(ctx, patience, func(ctx context.Context) error {
		consumer, err = c.work.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: p.Class + "-" + string(kind), Description: p.Version, FilterSubject: strings.Join([]string{workSubject, p.Class, string(kind), ">"}, "."),
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1, MaxAckPending: most, MaxWaiting: most, InactiveThreshold: forgotten,
		})
		return err
	})
	return consumer, err
}

// store stores a message on condition that its subject has none, and reports whether it had one.
func (c *conn) store(ctx context.Context, stream string, m *nats.Msg) (had bool, err error) {
	err = persist(ctx, forEver, func(ctx context.Context) error {
		_, err := c.js.PublishMsg(ctx, m, jetstream.WithExpectStream(stream), jetstream.WithExpectLastSequencePerSubject(0))
		return err
	})
	if coded(err, jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant) {
		return true, nil
	}
	return false, err
}

// coded reports whether err is a server's error with one of the given codes.
func coded(err error, codes ...jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return slices.Contains(codes, api.ErrorCode)
	}
	var js jetstream.JetStreamError
	return errors.As(err, &js) && js.APIError() != nil && slices.Contains(codes, js.APIError().ErrorCode)
}

const (
	// patience is the time for which servers may be unreachable or without a leader when a client
	// connects. A cluster of which servers were killed has been without the leader of a stream for
	// more than 30 s.
	patience = 2 * time.Minute
	// forEver is the largest duration: no time limit.
	forEver = time.Duration(1<<63 - 1)
	// attempt is the longest duration of one request.
	attempt = 10 * time.Second
	// slowest is the lowest rate, in bytes a second, at which an object gets through.
	slowest = 64 << 10
)

// transfer returns the longest duration of a request that carries an object of the given size.
func transfer(size int) time.Duration {
	return attempt + time.Duration(size/slowest)*time.Second
}

// persist repeats do until it succeeds, fails for a permanent reason, or the time given by patience
// has passed.
func persist(ctx context.Context, patience time.Duration, do func(context.Context) error) error {
	return persistWithin(ctx, patience, attempt, do)
}

// persistWithin is persist for requests that may take longer than others.
func persistWithin(ctx context.Context, patience, longest time.Duration, do func(context.Context) error) error {
	began := time.Now()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		within, cancel := context.WithTimeout(ctx, longest)
		err := do(within)
		cancel()
		if err == nil || ctx.Err() != nil || !passes(err) || time.Since(began) > patience {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// errNotYet reports that stored data is not found yet.
var errNotYet = errors.New("not heard of yet")

// passes reports whether an error is temporary: servers are unreachable, or elect a leader.
func passes(err error) bool {
	var api *jetstream.APIError
	var network net.Error
	switch {
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return false
	case errors.As(err, &api):
		return api.ErrorCode != notClustered && (api.Code >= 500 || api.Code == 408)
	case errors.Is(err, errNotYet), errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout), errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse),
		errors.Is(err, nats.ErrDisconnected), errors.Is(err, nats.ErrConnectionReconnecting), errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrStaleConnection):
		return true
	default:
		return errors.As(err, &network)
	}
}
