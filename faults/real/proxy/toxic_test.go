package proxy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/real/proxy"
)

func TestLatency(t *testing.T) {
	r := newRig(t)
	c := r.dial(t) // before, and after
	c.ask("PING")
	const base = 30 * time.Millisecond
	must(t, r.link.Latency(base, 0))
	for _, c := range []*client{c, r.dial(t)} {
		began := time.Now()
		c.ask("GET lock")
		if took := time.Since(began); took < 2*base {
			t.Errorf("a round trip took %s; want %s at least", took, 2*base)
		}
	}
	must(t, r.link.Latency(time.Hour, time.Minute))
	c.send("SET lock A")
	eventually(t, "the delayed request seen", func() bool {
		seen := r.tap.messages()
		return seen[len(seen)-1] == "> SET lock A"
	})
	must(t, r.link.Latency(0, 0)) // lets go of what is delayed
	c.want("SET lock A")
	if err := r.link.Latency(-1, 0); err == nil {
		t.Error("a negative latency is accepted")
	}
}

// Latency changes while a message is held, which a gate in toxiproxy's chain
// would not allow.
func TestLatencyWhileHeld(t *testing.T) {
	r := newRig(t)
	r.tap.hold(is(">", "SET"))
	c := r.dial(t)
	c.send("SET lock A", "GET lock")
	held := r.tap.waits()
	for i := range 5 {
		must(t, r.link.Latency(time.Duration(i%2)*time.Millisecond, 0))
	}
	held.Forward()
	c.want("SET lock A", "GET lock")
}

// Toxics come and go on a live connection and lose nothing.
func TestToxicsComeAndGo(t *testing.T) {
	r := newRig(t)
	c := r.dial(t)
	const requests = 300
	done := make(chan error, 1)
	go func() {
		random := rand.New(rand.NewPCG(1, 2))
		specs := map[string]string{
			"latency":    `{"type": "latency", "attributes": {"latency": 1, "jitter": 1}}`,
			"bandwidth":  `{"type": "bandwidth", "stream": "upstream", "attributes": {"rate": 1000}}`,
			"slicer":     `{"type": "slicer", "attributes": {"average_size": 5, "size_variation": 2, "delay": 10}}`,
			"slow_close": `{"type": "slow_close", "attributes": {"delay": 1}}`,
			"limit_data": `{"type": "limit_data", "stream": "upstream", "attributes": {"bytes": 100000000}}`,
		}
		names := map[string]string{
			"latency": "latency_downstream", "bandwidth": "bandwidth_upstream", "slicer": "slicer_downstream",
			"slow_close": "slow_close_downstream", "limit_data": "limit_data_upstream",
		}
		for range 20 {
			for kind, spec := range specs {
				if err := r.link.Toxic(spec); err != nil {
					done <- err
					return
				}
				if err := r.link.Latency(time.Duration(random.IntN(3))*time.Millisecond, 0); err != nil {
					done <- err
					return
				}
				if err := r.link.RemoveToxic(names[kind]); err != nil {
					done <- err
					return
				}
			}
		}
		done <- r.link.Latency(0, 0)
	}()
	sent, received := 0, 0
	for received < requests {
		for sent < requests && sent-received < 20 {
			c.send(fmt.Sprintf("GET %d", sent))
			sent++
		}
		c.want(fmt.Sprintf("GET %d", received))
		received++
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	c.ask("PING")
}

func TestToxicsThatClose(t *testing.T) {
	for _, test := range []struct {
		spec  string
		reset bool
	}{
		{`{"type": "reset_peer", "attributes": {"timeout": 0}}`, true},
		{`{"type": "reset_peer", "stream": "upstream", "attributes": {"timeout": 1}}`, true},
		{`{"type": "limit_data", "attributes": {"bytes": 0}}`, false},
		{`{"type": "limit_data", "stream": "upstream", "attributes": {"bytes": 3}}`, false},
		{`{"type": "timeout", "attributes": {"timeout": 1}}`, false},
	} {
		t.Run(test.spec, func(t *testing.T) {
			r := newRig(t)
			old := r.dial(t)
			old.ask("PING")
			must(t, r.link.Toxic(test.spec))
			for _, c := range []*client{old, r.dial(t)} {
				// The first to meet a reset learns of it, a write perhaps, and then the end is all there is to read.
				_, err := c.Write(slices.Concat(request("GET", "1"), request("GET", "2")))
				if err == nil {
					_, err = c.in.ReadByte()
				}
				if err == nil || test.reset && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("the client got %v; want a reset: %v", err, test.reset)
				}
			}
			for _, c := range r.tap.endings(2) {
				if !errors.Is(c.Err(), proxy.ErrReset) {
					t.Errorf("connection %d ended by %v; want ErrReset", c.ID(), c.Err())
				}
			}
		})
	}
}

func TestBandwidth(t *testing.T) {
	r := newRig(t)
	c := r.dial(t)
	must(t, r.link.Toxic(`{"type": "bandwidth", "stream": "upstream", "attributes": {"rate": 1}}`))
	began := time.Now()
	line := "ECHO " + strings.Repeat("x", 200)
	c.ask(line)
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("200 bytes took %s at a KB a second", took)
	}
	must(t, r.link.RemoveToxic("bandwidth_upstream"))
	must(t, r.link.Toxic(`{"type": "bandwidth", "attributes": {"rate": 0}}`))
	c.send("GET 1", "GET 2")
	c.wantSilence()
	must(t, r.link.RemoveToxic("bandwidth_downstream"))
	c.want("GET 1", "GET 2")
}

func TestATimeoutSwallowsUntilItGoes(t *testing.T) {
	r := newRig(t)
	must(t, r.link.Toxic(`{"name": "silence", "type": "timeout", "stream": "upstream", "attributes": {"timeout": 0}}`))
	c := r.dial(t)
	c.send("GET 1", "GET 2")
	c.wantSilence()
	must(t, r.link.RemoveToxic("silence"))
	eventually(t, "the connection closed", func() bool {
		_, err := c.Write(request("GET", "3"))
		return err != nil
	})
	r.tap.endings(1)
	r.dial(t).ask("PING")
}

func TestResetPeerWaitsAndGoes(t *testing.T) {
	r := newRig(t)
	must(t, r.link.Toxic(`{"type": "reset_peer", "stream": "upstream", "attributes": {"timeout": 3600000}}`))
	c := r.dial(t)
	c.send("GET 1")
	eventually(t, "the request seen", func() bool { return len(r.tap.messages()) == 1 })
	must(t, r.link.RemoveToxic("reset_peer_upstream"))
	c.want("GET 1")
	must(t, r.link.Toxic(`{"type": "timeout", "attributes": {"timeout": 1}}`))
	c.wantEnd() // and no reset any more
}

func TestToxicRefuses(t *testing.T) {
	r := newRig(t)
	must(t, r.link.Toxic(`{"type": "noop"}`))
	for spec, want := range map[string]string{
		`{`:                                      "JSON",
		`{"type": "latenzy"}`:                    "invalid toxic type",
		`{"type": "latency", "stream": "up"}`:    "stream was invalid",
		`{"type": "noop"}`:                       "toxic already exists",
		`{"type": "latency", "attributes": "x"}`: "bad request body",
	} {
		if err := r.link.Toxic(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Toxic(%s): %v; want %q in it", spec, err, want)
		}
	}
	if err := r.link.RemoveToxic("none"); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("RemoveToxic: %v; want it to name the toxic", err)
	}
}
