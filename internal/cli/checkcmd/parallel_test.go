package checkcmd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/checker/linear"
)

func sequence(events []linear.Event, last error) iter.Seq2[linear.Event, error] {
	return func(yield func(linear.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if last != nil {
			yield(linear.Event{}, last)
		}
	}
}

// drawHistory draws a history of a few clients and locks in which each client
// does one thing at a time; nothing else about it is sane.
func drawHistory(t *rapid.T) []linear.Event {
	type place struct{ client, key string }
	under := map[place]linear.Op{}
	events := make([]linear.Event, rapid.IntRange(1, 60).Draw(t, "n"))
	for i := range events {
		at := place{
			rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "client"),
			fmt.Sprint("k", rapid.IntRange(0, 20).Draw(t, "key")),
		}
		e := linear.Event{Time: time.Duration(i), Client: at.client, Key: at.key, Line: i + 1}
		switch op := under[at]; {
		case rapid.IntRange(0, 30).Draw(t, "crash") == 0:
			e.Phase, e.Key = linear.Crash, ""
			for p := range under {
				if p.client == at.client {
					delete(under, p)
				}
			}
		case op == 0:
			e.Phase, e.Op = linear.Invoke, rapid.SampledFrom([]linear.Op{linear.Acquire, linear.TryAcquire, linear.Release}).Draw(t, "op")
			under[at] = e.Op
		default:
			e.Phase, e.Op = rapid.SampledFrom([]linear.Phase{linear.ReturnOK, linear.ReturnFail, linear.ReturnUnknown}).Draw(t, "result"), op
			delete(under, at)
		}
		events[i] = e
	}
	return events
}

func together(spec linear.Spec, events []linear.Event, o linear.Options) linear.Result {
	c := linear.New(spec, o)
	for _, e := range events {
		if c.Add(e) != nil {
			break
		}
	}
	return c.Result()
}

// Judging many locks apart, at the same time, says what judging them together
// says: a lock is linearizable whatever happens to the others.
func TestJudgingApartAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawHistory(t)
		o := linear.Options{All: true, Strict: rapid.Bool().Draw(t, "strict"), Search: rapid.Bool().Draw(t, "search")}
		want := together(linear.Mutex(), events, o)
		got, err := judge(t.Context(), sequence(events, nil), linear.Mutex(), true, o)
		if err != nil {
			t.Fatal(err)
		}
		if got.Verdict != want.Verdict || got.Ops != want.Ops || got.Unknown != want.Unknown || len(got.Violations) != len(want.Violations) {
			t.Fatalf("apart %+v, together %+v", got, want)
		}
		if got, want := said(got.Violations), said(want.Violations); !slices.Equal(got, want) {
			t.Fatalf("apart\n%s\ntogether\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		first, err := judge(t.Context(), sequence(events, nil), linear.Mutex(), true, linear.Options{Strict: o.Strict, Search: o.Search})
		if err != nil {
			t.Fatal(err)
		}
		if first.Verdict != want.Verdict || len(first.Violations) != min(1, len(want.Violations)) {
			t.Fatalf("only the first: %+v, all: %+v", first, want)
		}
		again, _ := judge(t.Context(), sequence(events, nil), linear.Mutex(), true, o)
		if !reflect.DeepEqual(got, again) {
			t.Fatalf("once %+v, again %+v", got, again)
		}
	})
}

// said returns what violations say, in any order, and from when to when they were.
func said(list []linear.Violation) (lines []string) {
	for _, v := range list {
		lines = append(lines, fmt.Sprint(v.Key, " ", v.From, " ", v.To, " ", v.Message))
	}
	slices.Sort(lines)
	return lines
}

// A file that can't be read to its end still proves what comes before.
func TestJudgeUntilAnError(t *testing.T) {
	broken := errors.New("broken")
	overlap := []linear.Event{
		{Time: 1, Client: "A", Phase: linear.Invoke, Op: linear.Acquire, Line: 1},
		{Time: 2, Client: "A", Phase: linear.ReturnOK, Op: linear.Acquire, Line: 2},
		{Time: 3, Client: "B", Phase: linear.Invoke, Op: linear.Acquire, Line: 3},
		{Time: 4, Client: "B", Phase: linear.ReturnOK, Op: linear.Acquire, Line: 4},
	}
	got, err := judge(t.Context(), sequence(overlap, broken), linear.Mutex(), true, linear.Options{})
	if !errors.Is(err, broken) || got.Verdict != linear.Invalid || got.Ops != 2 {
		t.Errorf("got %+v and %v", got, err)
	}
	none, err := judge(t.Context(), sequence(nil, broken), linear.Mutex(), true, linear.Options{})
	if !errors.Is(err, broken) || none.Ops != 0 {
		t.Errorf("got %+v and %v", none, err)
	}
}

func TestJudgeIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	endless := func(yield func(linear.Event, error) bool) {
		for i := 0; yield(linear.Event{Time: time.Duration(i), Client: "A", Phase: linear.Crash}, nil); i++ {
		}
	}
	if _, err := judge(ctx, endless, linear.Mutex(), true, linear.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
