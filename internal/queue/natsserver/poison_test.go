package natsserver_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"runtime"
	"strconv"
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

// zipped returns a text as workers send it.
func zipped(t *testing.T, text io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.Copy(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// zeros yields the given number of bytes of an answer without an end.
type zeros struct{ left int }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(z.left, len(p))
	for i := range p[:n] {
		p[i] = ' '
	}
	z.left -= n
	return n, nil
}

// TestBadAnswersAreRefused checks that an answer is refused, without ending the command, if it is
// unsigned, signed by another worker, garbage, or larger than its limit, and that its item is
// published again. A worker is excluded only for answers that it has signed.
func TestBadAnswersAreRefused(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(m *client.Msg) {
		sum := sha256.Sum256(m.Data)
		m.Header = client.Header{}
		m.Header.Set("Lockfault-Worker", hex.EncodeToString(public))
		m.Header.Set("Lockfault-Signature", base64.StdEncoding.EncodeToString(ed25519.Sign(private, append([]byte("lockfault answer\n"+m.Subject+"\n"), sum[:]...))))
	}
	good := zipped(t, strings.NewReader(`{"Body":"bGll"}`)) // a wrong answer
	bomb := zipped(t, &zeros{left: 4 * queue.MaxAnswer})
	// object makes an answer refer to an object of its item with the given metadata; empty means no
	// object.
	object := func(meta string) func(m *client.Msg, js jetstream.JetStream) {
		return func(m *client.Msg, js jetstream.JetStream) {
			tokens := strings.Split(m.Subject, ".")
			name := strings.Join(append(tokens[2:], "evil"), "/")
			m.Header = client.Header{"Lockfault-Object": []string{name}}
			if meta != "" {
				_, err := js.PublishMsg(t.Context(), &client.Msg{Subject: "$O.LOCKFAULT_FILES.M." + base64.URLEncoding.EncodeToString([]byte(name)),
					Data: []byte(strings.ReplaceAll(meta, "NAME", strconv.Quote(name)))})
				if err != nil {
					t.Error(err)
				}
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(m *client.Msg, js jetstream.JetStream)
		said   string
	}{
		{"not signed", func(m *client.Msg, _ jetstream.JetStream) { m.Data = good }, "no worker has signed it"},
		{"signed for another item", func(m *client.Msg, _ jetstream.JetStream) {
			m.Data = good
			was := m.Subject
			m.Subject += "x"
			sign(m)
			m.Subject = was
		}, "the signature is not that of worker"},
		{"another text than the signed one", func(m *client.Msg, _ jetstream.JetStream) {
			sign(m)
			m.Data = good
		}, "the signature is not that of worker"},
		{"in the name of another worker", func(m *client.Msg, _ jetstream.JetStream) {
			m.Data = good
			sign(m)
			m.Header.Set("Lockfault-Worker", hex.EncodeToString(make([]byte, ed25519.PublicKeySize)))
		}, "the signature is not that of worker 000000000000"},
		{"no gzip", func(m *client.Msg, _ jetstream.JetStream) {
			m.Data = []byte("garbage")
			sign(m)
		}, "unexpected EOF"},
		{"no JSON", func(m *client.Msg, _ jetstream.JetStream) {
			m.Data = zipped(t, strings.NewReader("{]"))
			sign(m)
		}, "invalid character"},
		{"a bomb", func(m *client.Msg, _ jetstream.JetStream) {
			m.Data = bomb
			sign(m)
		}, "more than the limit of 134217728 bytes"},
		{"an object of another item", func(m *client.Msg, _ jetstream.JetStream) {
			m.Header = client.Header{"Lockfault-Object": []string{"nowhere"}}
		}, "its object is none of this item's"},
		{"an object that is not there", object(""), "its object can't be read: not heard of yet: nats: object not found"},
		{"an object without metadata", object("null"), "its object can't be read: nats: object-store meta information invalid"},
		{"an object that is a link to itself", object(`{"name":NAME,"options":{"link":{"bucket":"LOCKFAULT_FILES","name":NAME}},"bucket":"LOCKFAULT_FILES","nuid":"z","size":0,"chunks":0}`), "its object can't be read: it is a link"},
		{"an object that is too large", object(`{"name":NAME,"bucket":"LOCKFAULT_FILES","nuid":"z","size":9223372036854775807,"chunks":1000000000}`), "larger than the limit"},
		{"an object whose parts are missing", object(`{"name":NAME,"bucket":"LOCKFAULT_FILES","nuid":"z","size":100,"chunks":3}`), "its object can't be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at := serve(t)
			said := make(chan string, 10)
			conn, err := natsserver.Engine{Engine: nats.Engine{Quiet: time.Second}}.Connect(t.Context(), at, func(text string) { said <- text })
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			g := campaign(t, conn, "c")
			put(t, g, queue.Cell, "a")
			js := raw(t, at)
			m := &client.Msg{Subject: resultSubject(t, js, "a")}
			c.change(m, js)
			if _, err := js.PublishMsg(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := make(chan string, 1)
			go func() { got <- next(t, g) }()
			if text := <-said; !strings.Contains(text, "an answer to a is refused: ") || !strings.Contains(text, c.said) {
				t.Errorf("said %q, want %q", text, c.said)
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 8*queue.MaxAnswer {
				t.Errorf("%d bytes were allocated", took)
			}
			work(t, connect(t, at), ours, queue.Worker{Do: echo})
			if text := <-got; text != "a=a" || g.Refused() != 1 {
				t.Errorf("%q, %d refused", text, g.Refused())
			}
		})
	}
}

// A refused answer counts once, although the requester looks for lost answers again and again and so
// finds it twice.
func TestRefusedOnce(t *testing.T) {
	t.Parallel()
	at := serve(t)
	conn, err := natsserver.Engine{Engine: nats.Engine{Quiet: time.Millisecond}}.Connect(t.Context(), at, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	g := campaign(t, conn, "c")
	js := raw(t, at)
	const items = 50
	for i := range items {
		put(t, g, queue.Cell, fmt.Sprint("a", i))
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for range items {
			next(t, g)
		}
	}()
	for i := range items {
		if _, err := js.PublishMsg(t.Context(), &client.Msg{Subject: resultSubject(t, js, fmt.Sprint("a", i)), Data: []byte("garbage")}); err != nil {
			t.Fatal(err)
		}
	}
	work(t, connect(t, at), ours, queue.Worker{Do: echo})
	<-answered
	if g.Refused() > items {
		t.Errorf("%d answers were refused, want at most %d", g.Refused(), items)
	}
}

// resultSubject returns the subject of the answer to the only waiting item.
func resultSubject(t *testing.T, js jetstream.JetStream, name string) string {
	t.Helper()
	stream, err := js.Stream(t.Context(), "LOCKFAULT_WORK")
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	tokens := strings.Split(m.Subject, ".")
	return strings.Join([]string{"lockfault.result", tokens[2], tokens[4], name}, ".")
}

// TestSlowAnExcludedWorker checks that all answers of an excluded worker are refused, and that an item
// is not published again forever.
func TestSlowAnExcludedWorker(t *testing.T) {
	t.Parallel()
	at := serve(t)
	bad := connect(t, at)
	stop := employ(t, bad, queue.Worker{Do: echo})
	g := campaign(t, connect(t, at), "c")
	put(t, g, queue.Cell, "a")
	a, err := g.Next(t.Context())
	if err != nil || a.Worker != bad.Worker() {
		t.Fatalf("%+v, %v", a, err)
	}
	item := queue.Item{Kind: queue.Cell, Name: "a", Body: []byte("a")}
	if err := g.Refuse(t.Context(), item, a, true); err != nil {
		t.Fatal(err)
	}
	if a, err = g.Next(t.Context()); err != nil || a.Err == nil || !strings.Contains(a.Err.Error(), fmt.Sprint(queue.MostTimes)) || g.Refused() != queue.MostTimes {
		t.Errorf("%+v, %v, %d refused", a, err, g.Refused())
	}
	stop()
	put(t, g, queue.Cell, "b")
	good := connect(t, at)
	work(t, good, ours, queue.Worker{Do: echo})
	if a, err = g.Next(t.Context()); err != nil || a.Worker != good.Worker() || a.Err != nil {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestBadItemsAreRemoved checks that a message that is not an item is removed from the queue and
// gets no answer, because its name may be that of an item.
func TestBadItemsAreRemoved(t *testing.T) {
	t.Parallel()
	at := serve(t)
	conn, err := natsserver.Engine{Engine: nats.Engine{Quiet: time.Second}}.Connect(t.Context(), at, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	g := campaign(t, conn, "c")
	var refused atomic.Int32
	put(t, g, queue.Cell, "a")
	work(t, connect(t, at), ours, queue.Worker{Do: func(ctx context.Context, task queue.Task) (queue.Answer, error) {
		if refused.Add(1) == 1 {
			return queue.Answer{}, fmt.Errorf("%w: forged", queue.ErrBadItem)
		}
		return echo(ctx, task)
	}})
	began := time.Now()
	if got := next(t, g); got != "a=a" || refused.Load() != 2 {
		t.Errorf("%q after %v, given %d times", got, time.Since(began), refused.Load())
	}
}
