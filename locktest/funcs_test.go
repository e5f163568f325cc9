package locktest

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/lockfault/lockfault/strategies"
)

// An embedding is a lock of a user who takes most of it from Funcs.
type embedding struct {
	Funcs
	closed *bool
}

func (e embedding) Close() error { *e.closed = true; return nil }
func (e embedding) Token() int64 { return 7 }

// TestFuncsSupportWhatIsGiven checks that a lock of functions has the abilities of the functions that
// are set and no others, bare or embedded, and that methods of the embedding type come first.
func TestFuncsSupportWhatIsGiven(t *testing.T) {
	works := func(context.Context) error { return nil }
	closed := false
	lost := make(chan struct{})
	until := time.Unix(9, 0)
	full := Funcs{
		Lock: works, Unlock: works, TryLock: works, Extend: works, Lost: func() <-chan struct{} { return lost },
		ValidUntil: func() time.Time { return until }, Token: func() int64 { return 5 }, Close: func() error { closed = true; return nil },
	}
	for _, c := range []struct {
		name  string
		lock  Lock
		has   bool
		token int64
	}{
		{"bare", Funcs{Lock: works, Unlock: works}, false, 0},
		{"full", full, true, 5},
		{"embedded", embedding{full, &closed}, true, 7},
		{"by pointer", &embedding{full, &closed}, true, 7},
		{"embedded bare", embedding{Funcs{Lock: works, Unlock: works}, &closed}, false, 7},
	} {
		l, err := adapt(c.lock)
		if err != nil {
			t.Fatal(c.name, err)
		}
		_, tries := strategies.As[strategies.TryAcquirer](l)
		_, extends := strategies.As[strategies.Extender](l)
		notifier, notifies := strategies.As[strategies.LossNotifier](l)
		valid, validity := strategies.As[strategies.Validity](l)
		fenced, tokens := strategies.As[strategies.Fenced](l)
		if tries != c.has || extends != c.has || notifies != c.has || validity != c.has || tokens != (c.token != 0) {
			t.Errorf("%s: TryAcquire %t, Extend %t, Lost %t, ValidUntil %t, Token %t", c.name, tries, extends, notifies, validity, tokens)
			continue
		}
		if c.has && (notifier.Lost() != (<-chan struct{})(lost) || !valid.ValidUntil().Equal(until)) || tokens && fenced.Token() != c.token {
			t.Errorf("%s: the functions are not those that were given", c.name)
		}
		closed = false
		if err := l.(io.Closer).Close(); err != nil || closed != (c.name != "bare") {
			t.Errorf("%s: closed %t, %v", c.name, closed, err)
		}
	}
	if _, err := adapt(Funcs{Lock: works}); err == nil {
		t.Error("a lock without Unlock is accepted")
	}
}
