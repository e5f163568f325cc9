package natsserver_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/queue/nats"
	"github.com/lockfault/lockfault/internal/queue/natsserver"
)

func put(t *testing.T, g queue.Job, kind queue.Kind, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := g.Put(t.Context(), queue.Item{Kind: kind, Name: name, Body: []byte(name)}); err != nil {
			t.Fatal(err)
		}
	}
}

func next(t *testing.T, g queue.Job) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := g.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return a.Name + "=" + string(a.Body)
}

// TestAPublisherGoesOn checks that a requester can take over from one that died: answered items are
// not played again, and waiting items are not put twice.
func TestAPublisherGoesOn(t *testing.T) {
	t.Parallel()
	url := serve(t)
	var played atomic.Int32
	count := queue.Worker{Slots: 1, Do: func(ctx context.Context, task queue.Task) (queue.Answer, error) {
		played.Add(1)
		return echo(ctx, task)
	}}
	first := connect(t, url)
	g := campaign(t, first, "c")
	put(t, g, queue.Cell, "a", "b", "c")
	work(t, connect(t, url), ours, count)
	next(t, g)
	first.Close() // as kill -9 does
	await(t, "all are played", func() bool { return played.Load() == 3 })

	again := campaign(t, connect(t, url), "c")
	put(t, again, queue.Cell, "c", "d", "a", "b")
	had := map[string]bool{}
	for range 4 {
		had[next(t, again)] = true
	}
	if len(had) != 4 || played.Load() != 4 {
		t.Errorf("%v, and %d were played", had, played.Load())
	}
	if err := again.Close(true); err != nil {
		t.Fatal(err)
	}
	// A removed campaign is played again.
	g = campaign(t, connect(t, url), "c")
	put(t, g, queue.Cell, "a")
	if got := next(t, g); got != "a=a" || played.Load() != 5 {
		t.Error(got, played.Load())
	}
}

// await waits until a condition holds.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("never: ", what)
		}
	}
}

// TestAWorkerGivesBack checks that an item given back by a worker goes to other workers, and that
// an item that many workers did not survive is not played forever.
func TestAWorkerGivesBack(t *testing.T) {
	t.Parallel()
	url := serve(t)
	var times atomic.Int32
	work(t, connect(t, url), ours, queue.Worker{Slots: 1, Do: func(ctx context.Context, task queue.Task) (queue.Answer, error) {
		if int(times.Add(1)) != task.Times {
			t.Errorf("it was given %d times, and says %d", times.Load(), task.Times)
		}
		if task.Times < 4 {
			return queue.Answer{}, errors.New("not today")
		}
		return echo(ctx, task)
	}})
	g := campaign(t, connect(t, url), "c")
	put(t, g, queue.Cell, "a")
	if got := next(t, g); got != "a=a" || times.Load() != 4 {
		t.Error(got, times.Load())
	}
}

// TestTheFirstAnswerIsKept checks that an item played by two workers has one answer: the later
// answer is discarded.
func TestTheFirstAnswerIsKept(t *testing.T) {
	t.Parallel()
	url := serve(t)
	hold, held := make(chan bool), make(chan bool, 2)
	slow := func(answer string) queue.Worker {
		return queue.Worker{Slots: 1, Do: func(ctx context.Context, task queue.Task) (queue.Answer, error) {
			held <- true
			<-hold
			return queue.Answer{Body: []byte(answer)}, nil
		}}
	}
	// There are two requesters of one campaign. The second puts the item while a worker has it, and
	// the item is rejected; the third puts it after it was acknowledged.
	g := campaign(t, connect(t, url), "c")
	put(t, g, queue.Cell, "a")
	work(t, connect(t, url), ours, slow("first"))
	<-held
	other := campaign(t, connect(t, url), "c")
	put(t, other, queue.Cell, "a")
	state, err := other.State(t.Context())
	if err != nil || state.Waiting != 0 || state.InHand != 1 {
		t.Errorf("%+v, %v", state, err)
	}
	close(hold)
	if a, b := next(t, g), next(t, other); a != "a=first" || b != a {
		t.Error(a, b)
	}
}

// TestTwoWhoAskForTheSame checks two requesters of the same campaign: the other one still gets an
// item that one of them dropped, and a search continues.
func TestTwoWhoAskForTheSame(t *testing.T) {
	t.Parallel()
	url := serve(t)
	began, free := make(chan bool, 9), make(chan bool)
	work(t, connect(t, url), ours, queue.Worker{Do: func(ctx context.Context, task queue.Task) (queue.Answer, error) {
		began <- true
		for {
			select {
			case <-task.Notes:
			case <-free:
				return echo(ctx, task)
			case <-ctx.Done():
				t.Error("it was given up")
				return queue.Answer{}, ctx.Err()
			}
		}
	}})
	one, other := campaign(t, connect(t, url), "c"), campaign(t, connect(t, url), "c")
	put(t, one, queue.Search, "a")
	put(t, other, queue.Search, "a")
	<-began
	if err := one.Close(true); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // time for a worker to give up, if it did
	close(free)
	if got := next(t, other); got != "a=a" {
		t.Error(got)
	}
}

// TestAnAnswerThatIsTooLate checks that an answer stored after its requester has gone is not used
// for a later requester of the same item.
func TestAnAnswerThatIsTooLate(t *testing.T) {
	t.Parallel()
	url := serve(t)
	var times atomic.Int32
	began, free, stored := make(chan bool), make(chan bool), make(chan bool, 1)
	work(t, connect(t, url), ours, queue.Worker{Slots: 1, Do: func(ctx context.Context, task queue.Task) (queue.Answer, error) {
		if times.Add(1) == 1 {
			began <- true
			<-free
			defer func() { stored <- true }()
			return queue.Answer{Body: []byte("stale")}, nil
		}
		return echo(ctx, task)
	}})
	g := campaign(t, connect(t, url), "c")
	put(t, g, queue.Cell, "a")
	<-began
	if err := g.Close(true); err != nil {
		t.Fatal(err)
	}
	free <- true
	<-stored
	time.Sleep(300 * time.Millisecond) // time for the answer to be stored
	g = campaign(t, connect(t, url), "c")
	put(t, g, queue.Cell, "a")
	if got := next(t, g); got != "a=a" {
		t.Error(got)
	}
}

// TestSlowWhatIsLostIsPutAnew checks that lost items are published again, and that an answer found in
// two ways is returned once.
func TestSlowWhatIsLostIsPutAnew(t *testing.T) {
	t.Parallel()
	url := serve(t)
	impatient := natsserver.Engine{Engine: nats.Engine{Quiet: 5 * time.Millisecond}}
	g := campaign(t, connectWith(t, impatient, url), "c")
	const n = 50
	for i := range n {
		put(t, g, queue.Cell, fmt.Sprint(i))
	}
	purge(t, url)
	// An item answered during the check may be published, and played, once more.
	work(t, connect(t, url), ours, queue.Worker{Slots: 1, Do: func(ctx context.Context, task queue.Task) (queue.Answer, error) {
		time.Sleep(time.Millisecond)
		return echo(ctx, task)
	}})
	had := map[string]bool{}
	for range n {
		name := next(t, g)
		if had[name] {
			t.Errorf("%s was answered twice", name)
		}
		had[name] = true
	}
	// A requester that waits for a moment at a time also gets answers that were lost.
	put(t, g, queue.Cell, "late")
	purge(t, url)
	for began := time.Now(); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		a, err := g.Next(ctx)
		cancel()
		if err == nil && a.Name == "late" {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal(err)
		}
	}
	// No requester waits any more.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if a, err := g.Next(ctx); err == nil {
		t.Errorf("%+v", a)
	}
}

// raw returns what the server stores, read without lockfault's code.
func raw(t *testing.T, at queue.Address) jetstream.JetStream {
	t.Helper()
	option, err := client.NkeyOptionFromSeed(at.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := client.Connect(at.URLs, option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// purge makes the server lose its waiting items, as a server that lost its disk does.
func purge(t *testing.T, at queue.Address) {
	t.Helper()
	js := raw(t, at)
	for _, name := range []string{"LOCKFAULT_WORK", "LOCKFAULT_RESULTS", "KV_LOCKFAULT_NOTES", "OBJ_LOCKFAULT_FILES"} {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnotherProgramIsRefused checks that a worker of another program gets no item, and an error
// that names the program whose work is waiting.
func TestAnotherProgramIsRefused(t *testing.T) {
	t.Parallel()
	url := serve(t)
	g := campaign(t, connect(t, url), "c")
	put(t, g, queue.Cell, "a")
	theirs := queue.Program{Class: "feedbeef", Version: "v9.9.9"}
	c := connect(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err := c.Work(ctx, theirs, queue.Worker{Do: echo})
	if !errors.Is(err, queue.ErrForeign) || !strings.Contains(err.Error(), "is for v1.2.3, build 0123abcd, and this is v9.9.9, build feedbeef") {
		t.Error(err)
	}
	work(t, connect(t, url), ours, queue.Worker{Do: echo})
	if got := next(t, g); got != "a=a" {
		t.Error(got)
	}
	// No work is waiting any more, so the worker may wait for work of its own program. An item whose
	// answer has come may still be there, until its campaign is closed.
	if err := g.Close(true); err != nil {
		t.Fatal(err)
	}
	work(t, c, theirs, queue.Worker{Do: echo})
	mine, err := c.Campaign(t.Context(), theirs, "c", "test")
	if err != nil {
		t.Fatal(err)
	}
	put(t, mine, queue.Cell, "a")
	if got := next(t, mine); got != "a=a" {
		t.Error(got)
	}
}

// TestNotes checks that a search receives the notes of its campaign, earlier ones included, and the
// note that its answer is not needed any more.
func TestNotes(t *testing.T) {
	t.Parallel()
	url := serve(t)
	notes := make(chan string, 10)
	work(t, connect(t, url), ours, queue.Worker{Do: func(ctx context.Context, task queue.Task) (queue.Answer, error) {
		for task.Kind == queue.Search {
			note := <-task.Notes
			notes <- note.Key + "=" + note.Value
			if note.Key == queue.Dropped+task.Name {
				break
			}
		}
		return echo(ctx, task)
	}})
	g := campaign(t, connect(t, url), "c")
	if err := g.SetNote(t.Context(), "reach", "7"); err != nil {
		t.Fatal(err)
	}
	item := queue.Item{Kind: queue.Search, Name: "a", Body: []byte("a")}
	if err := g.Put(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	heard := map[string]bool{<-notes: true, <-notes: true}
	if !heard["reach=7"] || !heard["says=v1.2.3: test"] {
		t.Error(heard)
	}
	if err := g.SetNote(t.Context(), "reach", "5"); err != nil {
		t.Fatal(err)
	}
	if got := <-notes; got != "reach=5" {
		t.Error(got)
	}
	if err := g.Drop(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	if got := <-notes; got != "dropped-a=" {
		t.Error(got)
	}
	put(t, g, queue.Cell, "b")
	if got := next(t, g); got != "b=b" { // and no answer to a
		t.Error(got)
	}
}

// TestASearchEndsWithItsCampaign checks that a search ends with its campaign.
func TestASearchEndsWithItsCampaign(t *testing.T) {
	t.Parallel()
	url := serve(t)
	began, ended := make(chan bool), make(chan error)
	work(t, connect(t, url), ours, queue.Worker{Do: func(ctx context.Context, task queue.Task) (queue.Answer, error) {
		began <- true
		for range task.Notes {
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return queue.Answer{}, ctx.Err()
	}})
	g := campaign(t, connect(t, url), "c")
	put(t, g, queue.Search, "a")
	<-began
	if err := g.Close(true); err != nil {
		t.Fatal(err)
	}
	within(t, ended)
}

// within waits for an answer with a timeout shorter than the time until items are given out again.
func within[T any](t *testing.T, soon <-chan T) {
	t.Helper()
	select {
	case <-soon:
	case <-time.After(2 * time.Minute):
		t.Fatal("waited in vain")
	}
}

// TestASearchThatWasOverWhenItBegan checks a campaign that ends after a worker fetched its search
// and before the worker watches notes.
func TestASearchThatWasOverWhenItBegan(t *testing.T) {
	t.Parallel()
	url := serve(t)
	g := campaign(t, connect(t, url), "c")
	put(t, g, queue.Search, "a")
	js := raw(t, url)
	notes, err := js.KeyValue(t.Context(), "LOCKFAULT_NOTES")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := notes.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if err := notes.Purge(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	work(t, connect(t, url), ours, queue.Worker{Do: func(ctx context.Context, task queue.Task) (queue.Answer, error) {
		for range task.Notes {
		}
		<-ctx.Done()
		ended <- ctx.Err()
		return queue.Answer{}, ctx.Err()
	}})
	within(t, ended)
}

// TestLargeAnswers checks that an answer too large for a message is delivered as well, and is
// removed with its campaign.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	url := serve(t)
	large := make([]byte, 3<<20)
	if _, err := rand.Read(large); err != nil {
		t.Fatal(err)
	}
	work(t, connect(t, url), ours, queue.Worker{Do: func(context.Context, queue.Task) (queue.Answer, error) {
		return queue.Answer{Body: large, Files: map[string][]byte{"f": large[1:]}}, nil
	}})
	g := campaign(t, connect(t, url), "c")
	put(t, g, queue.Cell, "a")
	a, err := g.Next(t.Context())
	if err != nil || string(a.Body) != string(large) || string(a.Files["f"]) != string(large[1:]) {
		t.Error(len(a.Body), len(a.Files["f"]), err)
	}
	if err := g.Close(true); err != nil {
		t.Error(err)
	}
}

// TestAServerComesBack checks that items survive a restart of the server, and that connected
// clients find them again.
func TestAServerComesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	up := func() (down func()) {
		ctx, cancel := context.WithCancel(context.Background())
		ready, ended := make(chan bool), make(chan error, 1)
		go func() {
			ended <- natsserver.Engine{}.Serve(ctx, queue.ServerOptions{Listen: at, Dir: dir}, func(_, _ string) { close(ready) })
		}()
		select {
		case <-ready:
		case err := <-ended:
			t.Fatal(err)
		}
		return func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	down := up()
	g := campaign(t, connect(t, queue.Address{URLs: "nats://" + at, Credentials: filepath.Join(dir, "queue.key")}), "c")
	put(t, g, queue.Cell, "a", "b")
	down()
	down = up()
	defer func() { down() }()
	work(t, connect(t, queue.Address{URLs: "nats://" + at, Credentials: filepath.Join(dir, "queue.key")}), ours, queue.Worker{Do: echo})
	if had := map[string]bool{next(t, g): true, next(t, g): true}; !had["a=a"] || !had["b=b"] {
		t.Error(had)
	}
	down()
	down = up()
	put(t, g, queue.Cell, "c")
	if got := next(t, g); got != "c=c" {
		t.Error(got)
	}
}

// TestSecurity checks that a client without a password, or without TLS where the server requires
// it, is rejected.
func TestSecurity(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, cert, key := certificate(t, dir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	config := filepath.Join(dir, "nats.conf")
	text := fmt.Sprintf("listen: %q\nauthorization { user: me, password: secret }\ntls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\n", at, cert, key, ca)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan bool), make(chan error, 1)
	go func() {
		ended <- natsserver.Engine{}.Serve(ctx, queue.ServerOptions{Config: config, Dir: filepath.Join(dir, "kept")}, func(_, _ string) { close(ready) })
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	kept := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	right, wrong := kept("right", "me:secret\n"), kept("wrong", "me:guess\n")
	for _, c := range []struct {
		name string
		at   queue.Address
		ok   bool
	}{
		{"all that it takes", queue.Address{URLs: "tls://" + at, Credentials: right, CA: ca, Certificate: cert, Key: key}, true},
		{"no password", queue.Address{URLs: "tls://" + at, CA: ca, Certificate: cert, Key: key}, false},
		{"a wrong one", queue.Address{URLs: "tls://" + at, Credentials: wrong, CA: ca, Certificate: cert, Key: key}, false},
		{"none in the file", queue.Address{URLs: "tls://" + at, Credentials: kept("none", "secret\n"), CA: ca, Certificate: cert, Key: key}, false},
		{"a password in the address", queue.Address{URLs: "tls://me:secret@" + at, Credentials: right, CA: ca, Certificate: cert, Key: key}, false},
		{"no certificate", queue.Address{URLs: "tls://" + at, Credentials: right, CA: ca}, false},
		{"not trusted", queue.Address{URLs: "tls://" + at, Credentials: right, Certificate: cert, Key: key}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := natsserver.Engine{}.Connect(t.Context(), c.at, func(string) {})
			if conn != nil {
				conn.Close()
			}
			if (err == nil) != c.ok {
				t.Error(err)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "guess")) {
				t.Errorf("the password is told: %v", err)
			}
		})
	}
}

// certificate writes a self-signed certificate of 127.0.0.1.
func certificate(t *testing.T, dir string) (ca, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, cert, key
}

// TestItListensHereAlone checks that a server that other machines can reach requires
// authentication.
func TestItListensHereAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "nats.conf")
	for _, c := range []struct{ listen, config, want string }{
		{":4222", "", "every address"},
		{"127.0.0.1", "", "give HOST:PORT"},
		{"127.0.0.1:70000", "", "give HOST:PORT"},
		{"", `listen: "0.0.0.0:0"`, "anybody would be let in"},
		{"", `listen: [`, "config: "},
		{"", `websocket { listen: "0.0.0.0:4223", no_tls: true }`, "websocket 0.0.0.0:4223 is not this machine alone"},
		{"", `leafnodes { listen: "0.0.0.0:4223" }`, "leafnodes 0.0.0.0:4223 is"},
		{"", `http: "0.0.0.0:4223"`, "http 0.0.0.0:4223 is"},
		{"", "listen: \"0.0.0.0:4223\"\nauthorization { user: me, password: \"\" }", "anybody would be let in"},
		{"", "listen: \"0.0.0.0:4223\"\naccounts { X { jetstream: enabled, users: [ { user: me, password: secret } ] } }\nno_auth_user: me", "anybody would be let in"},
		{"", "listen: \"0.0.0.0:4223\"\nauthorization { user: me, password: secret }\nserver_name: x\ncluster { name: c, listen: \"0.0.0.0:4224\" }", "cluster 0.0.0.0:4224 is"},
	} {
		o := queue.ServerOptions{Listen: c.listen, Dir: dir}
		if c.config != "" {
			o.Config = config
			if err := os.WriteFile(config, []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := natsserver.Engine{}.Serve(t.Context(), o, func(_, _ string) { t.Errorf("%+v listens", c) })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
