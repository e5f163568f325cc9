package topology

import (
	"slices"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
)

// Client is a client's process. A Client stays the same over crashes and restarts.
type Client struct {
	Name string
	// State is the client's state, in which the world counts messages. PausedFor does not include a
	// pause that has not ended.
	State faults.ClientState
	// Skew is the offset of the client's wall clock from true time; positive is ahead.
	Skew time.Duration

	since time.Time // when the present pause began
}

// Client returns the client of that name. Client creates the client on first use.
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

// State returns a client's state. PausedFor includes a pause that has not ended, and Held is the
// number of the client's held messages.
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

// Begin ends the preparations: it resets the counts of all clients to zero.
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
