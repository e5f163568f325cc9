package topology

import (
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// A Client is a client's process, over all its lives.
type Client struct {
	Name string
	// State is how it is. The world counts its messages in it; PausedFor
	// doesn't include a present pause.
	State faults.ClientState
	// Skew is by how much its wall clock is ahead of true time.
	Skew time.Duration

	since time.Time // when the present pause began
}

// Client returns the client of that name; there is one for every name.
func (t *Topology) Client(name string) *Client {
	c := t.clients[name]
	if c == nil {
		c = &Client{Name: name}
		t.clients[name] = c
		t.Links.join(name, t.Nodes)
	}
	return c
}

// Holds reports whether the gate holds a message between the client and the node.
func (t *Topology) Holds(client, node string) bool {
	return slices.ContainsFunc(t.held, func(m Message) bool { return m.Owner().Name == client && m.About().Node == node })
}

// State returns how a client is, with a present pause in PausedFor, and how many
// of its messages are held.
func (t *Topology) State(c *Client) faults.ClientState {
	state := c.now()
	for _, m := range t.held {
		if m.Owner() == c {
			state.Held++
		}
	}
	return state
}

// Held returns the messages that the gate holds, in order of arrival.
func (t *Topology) Held() []Message { return slices.Clone(t.held) }

func (c *Client) now() faults.ClientState {
	state := c.State
	if state.Paused {
		state.PausedFor += time.Since(c.since)
	}
	return state
}

// Begin ends the preparations: what clients count begins at zero.
func (t *Topology) Begin() {
	now := time.Now()
	for _, c := range t.clients {
		c.State = faults.ClientState{Paused: c.State.Paused, Crashed: c.State.Crashed}
		c.since = now
	}
}

func (t *Topology) applyToClient(f faults.Fault, c *Client) error {
	tell := func(kind checker.Kind) { t.driver.Record(checker.Event{Kind: kind, Client: c.Name}) }
	switch f := f.(type) {
	case faults.PauseClient:
		if c.State.Paused || c.State.Crashed {
			return nil
		}
		tell(checker.Pause)
		c.State.Paused, c.since = true, time.Now()
		return t.driver.StopClient(c)
	case faults.ResumeClient:
		if !c.State.Paused {
			return nil
		}
		tell(checker.Resume)
		c.resume()
		return t.driver.ContinueClient(c)
	case faults.CrashClient:
		if c.State.Crashed {
			return nil
		}
		tell(checker.Crash)
		c.State.Crashed = true
		if c.State.Paused {
			c.resume()
		}
		return t.driver.EndClient(c)
	case faults.RestartClient:
		if !c.State.Crashed {
			return nil
		}
		tell(checker.Restart)
		c.State.Crashed = false
		return t.driver.ReviveClient(c)
	case faults.ClientClock:
		t.record(f, c.Name, "")
		c.Skew += f.By.Of(t.cfg.TTL)
	}
	return nil
}

func (c *Client) resume() {
	c.State.PausedFor = c.now().PausedFor
	c.State.Paused = false
}
