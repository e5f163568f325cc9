package client_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness/client"
	"github.com/lockfault/lockfault/internal/proc"
	"github.com/lockfault/lockfault/strategies"
)

// toy is a lock that needs no Redis.
type toy struct {
	lost  chan struct{}
	token int64
}

func (l *toy) Acquire(context.Context) error {
	l.token++
	l.lost = make(chan struct{})
	return nil
}

func (l *toy) Release(context.Context) error {
	switch l.token {
	case 1:
		return nil
	case 2:
		return strategies.ErrNotHeld
	case 3:
		panic("out of luck")
	}
	return errors.New("who knows")
}

func (l *toy) Token() int64          { return l.token }
func (l *toy) Lost() <-chan struct{} { return l.lost }
func (l *toy) Extend(context.Context) error {
	close(l.lost)
	return nil
}

// waits is a lock that nobody ever gets.
type waits struct{}

func (waits) Acquire(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (waits) Release(context.Context) error { return nil }

// talk is a stage's end of a conversation.
type talk struct {
	t     *testing.T
	in    io.Writer
	lines chan []byte // far more than there will be: while it is spoken to, it may speak of gaps
	ended chan error
	// goesOn lets the strategy "slow" make its lock.
	goesOn chan struct{}
}

func start(t *testing.T) *talk {
	t.Helper()
	goesOn := make(chan struct{})
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	c := &talk{t: t, goesOn: goesOn, in: inWrite, lines: make(chan []byte, 10_000), ended: make(chan error, 1)}
	go c.listen(outRead)
	lookup := func(name string) (strategies.Strategy, bool) {
		return strategies.Strategy{Name: name, New: func(strategies.Env) (strategies.Lock, error) {
			switch name {
			case "waits":
				return waits{}, nil
			case "broken":
				return nil, errors.New("no luck today")
			case "slow":
				<-goesOn
			}
			return &toy{}, nil
		}}, name != "unheard-of"
	}
	go func() {
		err := client.Serve(inRead, outWrite, lookup)
		outWrite.Close()
		inRead.Close()
		c.ended <- err
	}()
	t.Cleanup(func() { inWrite.Close(); outRead.Close() })
	return c
}

func (c *talk) listen(from io.Reader) {
	defer close(c.lines)
	for lines := bufio.NewScanner(from); lines.Scan(); {
		c.lines <- slices.Clone(lines.Bytes())
	}
}

func (c *talk) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// hear returns the next line but those that tell how busy the machine is.
func (c *talk) hear() client.Line {
	c.t.Helper()
	for {
		line, ok := <-c.lines
		if !ok {
			c.t.Fatal("it said nothing more")
		}
		var l client.Line
		if err := json.Unmarshal(line, &l); err != nil {
			c.t.Fatal(err)
		}
		if l.Gap == nil {
			return l
		}
	}
}

// report expects a report and answers it.
func (c *talk) report(kind client.Kind, answer client.Answer) client.Report {
	c.t.Helper()
	l := c.hear()
	if l.Report == nil || l.Report.Kind != kind {
		c.t.Fatalf("got %+v; want a report of %s", l, kind)
	}
	text, err := json.Marshal(client.Order{Answer: &client.Heard{ID: l.Report.ID, Answer: answer}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.say(string(text))
	return l.Report.Report
}

const setup = `{"setup":{"client":"A","strategy":"toy","key":"k","warm_up":"w","ttl":1000000000,"nodes":["n1"],"read_timeout":1,"places":[{"addr":"127.0.0.1:1"}]}}`

func TestConversation(t *testing.T) {
	c := start(t)
	c.say(setup)
	if l := c.hear(); l.Ready == nil || !l.Ready.Fenced {
		t.Fatalf("got %+v; want ready", l)
	}
	task := func(op string) { c.say(`{"task":{"do":"call","op":"` + op + `","within":1000000000}}`) }
	results := func(want checker.Result) client.Report {
		t.Helper()
		r := c.report(client.Returned, client.Answer{})
		if r.Result != want {
			t.Errorf("%s came to %s (%s); want %s", r.Op, r.Result, r.Error, want)
		}
		return r
	}

	task("acquire")
	c.report(client.Invoked, client.Answer{})
	if r := c.report(client.Returned, client.Answer{Hold: 1}); r.Token != 1 || r.Result != checker.OK {
		t.Errorf("got %+v", r)
	}
	c.report(client.Done, client.Answer{Hold: 1})

	// The loss of a hold is reported once, whatever else goes on.
	task("extend")
	c.report(client.Invoked, client.Answer{Hold: 1})
	kinds := map[client.Kind]int{}
	for range 3 {
		l := c.hear()
		kinds[l.Report.Kind]++
		if l.Report.Kind == client.Lost && l.Report.Hold != 1 {
			t.Errorf("hold %d was lost; want 1", l.Report.Hold)
		}
		// It holds on as far as the stage knows: else nobody would wait for the loss.
		text, _ := json.Marshal(client.Order{Answer: &client.Heard{ID: l.Report.ID, Answer: client.Answer{Hold: 1}}})
		c.say(string(text))
	}
	if want := map[client.Kind]int{client.Returned: 1, client.Lost: 1, client.Done: 1}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("heard %v; want %v", kinds, want)
	}

	for _, want := range []checker.Result{checker.OK, checker.Fail} {
		task("release")
		c.report(client.Invoked, client.Answer{})
		results(want)
		c.report(client.Done, client.Answer{})
		task("acquire")
		c.report(client.Invoked, client.Answer{})
		results(checker.OK)
		c.report(client.Done, client.Answer{})
	}
	task("release") // panics
	c.report(client.Invoked, client.Answer{})
	if r := c.report(client.Failed, client.Answer{}); !strings.Contains(r.Error, "panicked: out of luck") {
		t.Errorf("got %q", r.Error)
	}
	c.report(client.Done, client.Answer{})

	c.say(`{"end":{}}`)
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
}

// A lock may take its time to be made: other orders are heard meanwhile.
func TestSlowToBeMade(t *testing.T) {
	c := start(t)
	c.say(strings.Replace(setup, "toy", "slow", 1))
	c.say(`{"clock":{"by":1000000000}}`)
	c.say(`{"beat":{}}`)
	if l := c.hear(); l.Beat == nil {
		t.Fatalf("got %+v; want a beat", l)
	}
	close(c.goesOn)
	if l := c.hear(); l.Ready == nil {
		t.Fatalf("got %+v; want ready", l)
	}
	c.say(`{"end":{}}`)
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
}

// A caller that gives up ends the operation that it waits for, from its invoke on, and
// no other.
func TestCancelled(t *testing.T) {
	c := start(t)
	c.say(strings.Replace(setup, "toy", "waits", 1))
	if l := c.hear(); l.Ready == nil || !l.Ready.Cancels {
		t.Fatalf("got %+v; want one that understands cancel", l)
	}
	cancel := func(id int) {
		t.Helper()
		c.say(fmt.Sprintf(`{"cancel":{"id":%d}}`, id))
		if l := c.hear(); l.Cancelled == nil || l.Cancelled.ID != id {
			t.Fatalf("got %+v; want cancelled %d", l, id)
		}
	}
	returned := func(result checker.Result, err string) {
		t.Helper()
		if r := c.report(client.Returned, client.Answer{}); r.Result != result || r.Error != err {
			t.Errorf("it came to %s, %q; want %s, %q", r.Result, r.Error, result, err)
		}
		c.report(client.Done, client.Answer{})
	}
	task := func(within time.Duration) {
		c.say(fmt.Sprintf(`{"task":{"do":"call","op":"acquire","within":%d}}`, within))
	}
	cancel(1) // nothing

	task(time.Millisecond)
	c.report(client.Invoked, client.Answer{})
	returned(checker.Unknown, "context deadline exceeded")
	cancel(2) // it has come back

	task(time.Hour)
	invoked := c.hear()
	cancel(3) // before its first command
	c.say(fmt.Sprintf(`{"answer":{"id":%d}}`, invoked.Report.ID))
	returned(checker.Unknown, "context canceled")

	c.say(`{"end":{}}`)
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
}

// One whose lock is never made ends with its standard input.
func TestNeverMade(t *testing.T) {
	c := start(t)
	c.say(strings.Replace(setup, "toy", "slow", 1))
	c.in.(io.Closer).Close()
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
	close(c.goesOn)
}

// How late a process was told who it is, it says first.
func TestSetupReadLate(t *testing.T) {
	now := proc.SinceBoot()
	if now == 0 {
		t.Skip("this system has no such clock")
	}
	c := start(t)
	sent := now - time.Minute
	c.say(strings.Replace(setup, `"places"`, fmt.Sprintf(`"sent":%d,"places"`, sent), 1))
	line := <-c.lines
	var l client.Line
	if err := json.Unmarshal(line, &l); err != nil || l.Gap == nil || l.Gap.From != sent || l.Gap.To < now {
		t.Errorf("it began with %s; want a gap of a minute", line)
	}
	if l := c.hear(); l.Ready == nil {
		t.Errorf("got %+v; want ready", l)
	}
}

// The end of its standard input ends a client, whatever it is doing.
func TestOrphan(t *testing.T) {
	c := start(t)
	c.say(setup)
	c.hear()
	c.say(`{"task":{"do":"work","for":3600000000000}}`)
	c.report(client.WantsTime, client.Answer{})
	c.in.(io.Closer).Close()
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	for strategy, want := range map[string]string{
		"broken": "no luck today", "unheard-of": `knows no strategy "unheard-of"`,
	} {
		c := start(t)
		c.say(strings.Replace(setup, "toy", strategy, 1))
		if l := c.hear(); !strings.Contains(l.Refused, want) {
			t.Errorf("%s: got %+v; want %q", strategy, l, want)
		}
		<-c.ended
	}
}

func TestOrdersOutOfPlace(t *testing.T) {
	for order, want := range map[string]string{
		"{":                       "not an order",
		`{"task":{"do":"write"}}`: "out of place",
		`{}`:                      "out of place",
	} {
		c := start(t)
		c.say(order)
		if err := <-c.ended; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", order, err, want)
		}
	}
}

// The example in the documents is one.
func TestExample(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "client-protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(text)) {
		var into any
		switch {
		case strings.HasPrefix(line, "> {"):
			into = &client.Order{}
		case strings.HasPrefix(line, "< {"):
			into = &client.Line{}
		default:
			continue
		}
		seen++
		d := json.NewDecoder(strings.NewReader(line[2:]))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("%s%v", line, err)
		}
	}
	if seen < 8 {
		t.Errorf("%d lines of an example", seen)
	}
}
