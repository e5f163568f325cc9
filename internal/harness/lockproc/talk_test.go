package lockproc_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/harness/client"
	"github.com/lockfault/lockfault/internal/harness/lockproc"
	"github.com/lockfault/lockfault/strategies"
)

// start returns the conversation with a program that answers each request with those
// lines, in which ID is the request's.
func start(t *testing.T, answer func(q lockproc.Request) string) (talk *lockproc.Talk, asked *[]string, ended chan struct{}) {
	t.Helper()
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	asked, ended = new([]string), make(chan struct{})
	go func() {
		defer close(ended)
		defer outWrite.Close()
		lines := bufio.NewScanner(inRead)
		for lines.Scan() {
			var q lockproc.Request
			if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
				t.Error(err)
			}
			*asked = append(*asked, lines.Text())
			id, _ := json.Marshal(q.ID)
			if text := answer(q); text != "" {
				io.WriteString(outWrite, strings.ReplaceAll(text, "ID", string(id))+"\n")
			}
		}
	}()
	t.Cleanup(func() { inWrite.Close(); outRead.Close() })
	return lockproc.NewTalk(inWrite, outRead), asked, ended
}

// makeLock makes a program's lock on a key.
func makeLock(t *testing.T, talk *lockproc.Talk) (strategies.Lock, error) {
	t.Helper()
	setup := client.Setup{Client: "A", Strategy: "mine", TTL: 2 * time.Second, ReadTimeout: 100 * time.Millisecond}
	nodes := []lockproc.Node{{Host: "127.0.0.1", Port: 7, Password: "p"}}
	return talk.Strategy(t.Context(), setup, nodes).New(strategies.Env{Key: "k", Owner: "A-1", Thread: "9"})
}

func TestLock(t *testing.T) {
	answers := map[lockproc.Do]string{lockproc.Init: `{"id":ID,"answer":"ok","fenced":true}`}
	talk, asked, ended := start(t, func(q lockproc.Request) string { return answers[q.Do] })
	lock, err := makeLock(t, talk)
	if err != nil {
		t.Fatal(err)
	}
	within, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for _, c := range []struct {
		do     lockproc.Do
		answer string
		call   func(context.Context) error
		want   error // nil, or what it is; any other for errUnknown
	}{
		{lockproc.Acquire, `{"id":ID,"answer":"ok","token":7}`, lock.Acquire, nil},
		{lockproc.Extend, `{"id":ID,"answer":"ok"}`, lock.(strategies.Extender).Extend, nil},
		{lockproc.Extend, `{"id":ID,"answer":"failed","error":"gone"}`, lock.(strategies.Extender).Extend, strategies.ErrNotHeld},
		{lockproc.Release, `{"id":ID,"answer":"failed"}`, lock.Release, strategies.ErrNotHeld},
		{lockproc.Try, `{"id":ID,"answer":"failed"}`, lock.(strategies.TryAcquirer).TryAcquire, strategies.ErrNotAcquired},
		{lockproc.Acquire, `{"id":ID,"answer":"error","error":"timed out"}`, lock.Acquire, errUnknown},
		{lockproc.Acquire, `{"id":ID,"answer":"error"}`, lock.Acquire, errUnknown},
	} {
		answers[c.do] = c.answer
		err := c.call(within)
		unknown := err != nil && !errors.Is(err, strategies.ErrNotHeld) && !errors.Is(err, strategies.ErrNotAcquired)
		if c.want == errUnknown && !unknown || c.want != errUnknown && !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s answered %s: %v, want %v", c.do, c.answer, err, c.want)
		}
		if token := lock.(strategies.Fenced).Token(); token != 7 {
			t.Errorf("after %s the token is %d, want 7", c.answer, token)
		}
	}
	want := `{"id":1,"do":"init","key":"k","client":"A","owner":"A-1","thread":"9","ttl_ms":2000,"nodes":[{"host":"127.0.0.1","port":7,"password":"p"}],"read_timeout_ms":100}`
	if (*asked)[0] != want {
		t.Errorf("init is\n%s, want\n%s", (*asked)[0], want)
	}
	// An hour, less what this took until then.
	if want := regexp.MustCompile(`^{"id":2,"do":"acquire","key":"k","within_ms":3[0-6]\d{5}}$`); !want.MatchString((*asked)[1]) {
		t.Errorf("acquire is %s, want %s", (*asked)[1], want)
	}
	talk.Shutdown()
	<-ended
	if last := (*asked)[len(*asked)-1]; !strings.Contains(last, `"do":"shutdown"`) {
		t.Errorf("the last request is %s", last)
	}
	<-talk.Silent()
	if talk.Wrong() != nil {
		t.Error(talk.Wrong())
	}
}

var errUnknown = errors.New("unknown")

func TestInitRefused(t *testing.T) {
	talk, _, _ := start(t, func(lockproc.Request) string { return `{"id":ID,"answer":"error","error":"no such host"}` })
	if _, err := makeLock(t, talk); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("%v, want the program's own reason", err)
	}
}

// A program that doesn't keep to the form is found out, whatever it says then.
func TestBroken(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"garbage":            {"hello", `what is no answer: "hello"`},
		"another's answer":   {`{"id":17,"answer":"ok"}`, "answered request 17, which nobody had asked"},
		"no id":              {`{"answer":"ok"}`, "without the request's id"},
		"an id in quotes":    {`{"id":"1","answer":"ok"}`, `answered with "id" that is a string, and has to be a whole number`},
		"half a token":       {`{"id":ID,"answer":"ok","token":1.5}`, `answered with "token" that is a number 1.5, and has to be a whole number`},
		"fenced in quotes":   {`{"id":ID,"answer":"ok","fenced":"yes"}`, `answered with "fenced" that is a string, and has to be true or false`},
		"no such answer":     {`{"id":ID,"answer":"yes"}`, `answered "yes": the answers are "ok", "failed" and "error"`},
		"an array":           {`[]`, "what is no answer"},
		"twice":              {"{\"id\":ID,\"answer\":\"ok\"}\n{\"id\":ID,\"answer\":\"ok\"}", "answered request 1 twice"},
		"a line without end": {strings.Repeat("x", 2<<20), "a line of more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			talk, _, _ := start(t, func(lockproc.Request) string { return c.answer })
			go talk.Ask(t.Context(), lockproc.Request{Do: lockproc.Acquire})
			select {
			case <-talk.Broken():
			case <-time.After(time.Minute):
				t.Fatal("nobody found out")
			}
			if err := talk.Wrong(); !strings.Contains(err.Error(), c.want) || len(err.Error()) > 500 {
				t.Errorf("it is wrong with %v, want %q", err, c.want)
			}
		})
	}
}

// An answer that comes never is waited for as long as the client lives.
func TestNeverAnswered(t *testing.T) {
	talk, _, _ := start(t, func(lockproc.Request) string { return "" })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := talk.Ask(ctx, lockproc.Request{Do: lockproc.Acquire}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
