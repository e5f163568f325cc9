package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/internal/proc"
	"github.com/lockfault/lockfault/strategies"
)

// Order is a line from the stage to a client's process; exactly one field is set.
// docs/client-protocol.md describes the protocol.
type Order struct {
	Setup  *Start  `json:"setup,omitempty"`
	Task   *Task   `json:"task,omitempty"`
	Answer *Heard  `json:"answer,omitempty"`
	Clock  *Clock  `json:"clock,omitempty"`
	Cancel *Cancel `json:"cancel,omitempty"`
	Beat   *Beat   `json:"beat,omitempty"`
	End    *Ending `json:"end,omitempty"`
}

// Start is a setup with the addresses of the nodes.
type Start struct {
	Setup
	// Places are the nodes' addresses, in the order of their names.
	Places []Place `json:"places,omitempty"`
	// Sentinels, if any, are the addresses of sentinels that know the primary of the only node
	// under the name Master and require SentinelPassword. Addresses maps each address that they may
	// return to the address to dial.
	Sentinels        []string          `json:"sentinels,omitempty"`
	Master           string            `json:"master,omitempty"`
	SentinelPassword string            `json:"sentinel_password,omitempty"`
	Addresses        map[string]string `json:"ways,omitempty"`
	// Skew is how far the client's wall clock is ahead.
	Skew time.Duration `json:"skew,omitempty"`
	// Sent is the time at which the order was sent, on the clock of [proc.SinceBoot]; 0 if the
	// delay is not of interest.
	Sent time.Duration `json:"sent,omitempty"`
}

// Place is the address and login of a node.
type Place struct {
	Addr     string `json:"addr"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// DB is the number of the database.
	DB int `json:"db,omitempty"`
}

// Heard answers the report with the given number.
type Heard struct {
	ID int `json:"id"`
	Answer
}

// Clock moves the client's wall clock.
type Clock struct {
	By time.Duration `json:"by"`
}

// Cancel ends the context of the client's current operation, if any: its caller gives up. A
// cancelled line with the same ID confirms it. Cancel is sent only to clients that reported their
// support.
type Cancel struct {
	ID int `json:"id"`
}

// Beat asks whether a client is alive, and is also its reply. With the reply, the client confirms
// that it has reported every gap so far. Beat is sent only to clients that reported their support.
type Beat struct{}

// Ending asks the client to end.
type Ending struct{}

// Line is a line from a client's process; exactly one field is set.
type Line struct {
	// Ready reports that the lock is made, and its abilities. Only gaps and beats may precede it.
	Ready *Ready `json:"ready,omitempty"`
	// Refused is the reason why the lock cannot be made.
	Refused string `json:"refused,omitempty"`
	// Report is a report with its number.
	Report *Numbered `json:"report,omitempty"`
	// Gap is sent at once and needs no answer, because the process may be killed before its next
	// report.
	Gap *Gap `json:"gap,omitempty"`
	// Cancelled confirms a cancel.
	Cancelled *Cancel `json:"cancelled,omitempty"`
	// Beat replies to a beat.
	Beat *Beat `json:"beat,omitempty"`
}

// Ready holds the abilities of a client and its lock.
type Ready struct {
	Fenced bool `json:"fenced,omitempty"`
	// Beats reports that the client replies to beats.
	Beats bool `json:"beats,omitempty"`
	// Cancels reports that the client supports cancels.
	Cancels bool `json:"cancels,omitempty"`
}

// Numbered is a report that waits for the answer with the same number.
type Numbered struct {
	ID int `json:"id"`
	// Sent is the time at which the report was sent, on the system's clock since boot: the stage
	// computes the machine's delay from it. A client that cannot read that clock omits Sent. Gaps
	// are like Gap of a [Line], but reported later.
	Sent time.Duration `json:"sent,omitempty"`
	Gaps []Gap         `json:"gaps,omitempty"`
	Report
}

// Gap is a time interval in which a process did not run although it was ready to run, on the clock
// of [proc.SinceBoot].
type Gap struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// maxLine is the maximum length of a line of the protocol, in bytes.
const maxLine = 1 << 20

// Serve runs a client's process. Serve reads orders from in and writes lines to out until in ends,
// the client is asked to end, or its lock cannot be made. Serve blocks until then. The error
// describes an invalid order; errors of the lock are reported, not returned.
func Serve(in io.Reader, out io.Writer, lookup func(string) (strategies.Strategy, bool)) error {
	life, end := context.WithCancel(context.Background())
	defer end()
	s := &server{
		out: json.NewEncoder(out), waiting: map[int]chan Answer{}, life: life, lookup: lookup,
		ran: make(chan struct{}), quits: make(chan error, 1),
	}
	obeyed := make(chan error, 1)
	go func() { obeyed <- s.obey(in, end) }()
	select {
	case err := <-obeyed:
		return err
	case err := <-s.quits:
		return err
	}
}

// obey executes orders until they end.
func (s *server) obey(in io.Reader, end func()) error {
	var c *Client
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var o Order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return fmt.Errorf("client: not an order: %w: %.80s", err, lines.Bytes())
		}
		switch {
		case o.Setup != nil && c == nil:
			var err error
			if c, err = s.begin(*o.Setup); err != nil {
				return s.say(Line{Refused: err.Error()})
			}
			go s.live(c)
		case o.Task != nil && c != nil:
			c.Give(*o.Task)
		case o.Answer != nil:
			s.heard(*o.Answer)
		case o.Clock != nil:
			s.skew.Add(int64(o.Clock.By))
		case o.Cancel != nil && c != nil:
			c.CancelOperation()
			if err := s.say(Line{Cancelled: o.Cancel}); err != nil {
				return err
			}
		case o.Beat != nil:
			if err := s.say(Line{Beat: o.Beat}); err != nil {
				return err
			}
		case o.End != nil:
			end()
			if c != nil {
				<-s.ran // the sender of the order limits this wait
				c.Leave()
			}
			return nil
		default:
			return fmt.Errorf("client: an order out of place: %.80s", lines.Bytes())
		}
	}
	return lines.Err()
}

// server is the client's side of the conversation.
type server struct {
	life   context.Context
	lookup func(string) (strategies.Strategy, bool)
	skew   atomic.Int64  // of the wall clock, in nanoseconds
	ran    chan struct{} // closed when the client has ended
	quits  chan error    // why the conversation cannot continue

	mu      sync.Mutex
	out     *json.Encoder
	last    int // number of the last report
	waiting map[int]chan Answer
}

// live makes the lock and runs the client's tasks. obey reads other orders meanwhile.
func (s *server) live(c *Client) {
	defer close(s.ran)
	made := c.Make()
	line := Line{Ready: &Ready{Fenced: made.Fenced, Beats: true, Cancels: made.Cancels}}
	if made.Kind == Refused {
		line = Line{Refused: made.Error}
	}
	if err := s.say(line); err != nil || made.Kind == Refused {
		s.quits <- err
		return
	}
	c.Run()
}

// feel reports all delays of this process from now on, and the delay with which it received its
// setup.
func (s *server) feel(start Start) {
	now := proc.SinceBoot()
	if now == 0 {
		return // the system has no such clock
	}
	if start.Sent != 0 && now-start.Sent > proc.LagThreshold {
		_ = s.say(Line{Gap: &Gap{From: start.Sent, To: now}})
	}
	go proc.MeasureTimerLag(start.TTL, s.life.Done(), func(by time.Duration) {
		now := proc.SinceBoot()
		_ = s.say(Line{Gap: &Gap{From: now - by, To: now}})
	})
}

func (s *server) begin(start Start) (*Client, error) {
	strategy, ok := s.lookup(start.Strategy)
	if !ok {
		return nil, fmt.Errorf("this program knows no strategy %q", start.Strategy)
	}
	s.feel(start)
	s.skew.Store(int64(start.Skew))
	if len(start.Sentinels) == 0 && len(start.Places) != len(start.Nodes) {
		return nil, fmt.Errorf("%d nodes, but %d places", len(start.Nodes), len(start.Places))
	}
	places := map[string]Place{}
	var servers []strategies.Server
	for i, place := range start.Places {
		places[start.Nodes[i]] = place
		servers = append(servers, strategies.Server{Addr: place.Addr, Username: place.Username, Password: place.Password})
	}
	return New(s.life, start.Setup, strategy, Host{
		Stage:   s,
		Servers: servers,
		Now:     func() time.Time { return time.Now().Add(time.Duration(s.skew.Load())) },
		Connect: func(node string) (redis.UniversalClient, error) {
			if len(start.Sentinels) > 0 {
				return start.failover(), nil
			}
			options := start.Options()
			place := places[node]
			options.Addr, options.Username, options.Password, options.DB = place.Addr, place.Username, place.Password, place.DB
			return redis.NewClient(options), nil
		},
	})
}

// failover returns a client that asks the sentinels for the primary's address.
func (start Start) failover() redis.UniversalClient {
	o := start.Options()
	return redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: start.Master, SentinelAddrs: start.Sentinels, SentinelPassword: start.SentinelPassword,
		Password:   start.SentinelPassword,
		MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: o.ContextTimeoutEnabled,
		PoolSize: o.PoolSize, ConnMaxIdleTime: o.ConnMaxIdleTime, Protocol: o.Protocol, DisableIdentity: o.DisableIdentity,
		PipelineReadBufferSize: o.PipelineReadBufferSize, PipelineWriteBufferSize: o.PipelineWriteBufferSize,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if way, ok := start.Addresses[addr]; ok {
				addr = way
			}
			var dialer net.Dialer
			return dialer.DialContext(ctx, network, addr)
		},
	})
}

func (s *server) say(l Line) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Encode(l)
}

// Report implements [Stage].
func (s *server) Report(r Report) (Answer, bool) {
	answer := make(chan Answer, 1)
	s.mu.Lock()
	s.last++
	s.waiting[s.last] = answer
	err := s.out.Encode(Line{Report: &Numbered{ID: s.last, Sent: proc.SinceBoot(), Report: r}})
	s.mu.Unlock()
	if err != nil {
		return Answer{}, false // the stage has ended
	}
	select {
	case a := <-answer:
		return a, true
	case <-s.life.Done():
		return Answer{}, false
	}
}

func (s *server) heard(h Heard) {
	s.mu.Lock()
	answer := s.waiting[h.ID]
	delete(s.waiting, h.ID)
	s.mu.Unlock()
	if answer != nil {
		answer <- h.Answer
	}
}
