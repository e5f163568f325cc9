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

// An Order is a line that the stage sends to a client's process; one of the
// fields is set. docs/client-protocol.md describes the conversation.
type Order struct {
	Setup  *Start  `json:"setup,omitempty"`
	Task   *Task   `json:"task,omitempty"`
	Answer *Heard  `json:"answer,omitempty"`
	Clock  *Clock  `json:"clock,omitempty"`
	Cancel *Cancel `json:"cancel,omitempty"`
	Beat   *Beat   `json:"beat,omitempty"`
	End    *Ending `json:"end,omitempty"`
}

// A Start is a setup and where the nodes are.
type Start struct {
	Setup
	// Places are the nodes' addresses, in the order of their names.
	Places []Place `json:"places,omitempty"`
	// Sentinels, if there are any, know the address of the only node's
	// primary under the name Master, and ask for SentinelPassword. Ways says
	// at which address to dial in place of each that they may name.
	Sentinels        []string          `json:"sentinels,omitempty"`
	Master           string            `json:"master,omitempty"`
	SentinelPassword string            `json:"sentinel_password,omitempty"`
	Addresses        map[string]string `json:"ways,omitempty"`
	// Skew is by how much the client's wall clock is ahead.
	Skew time.Duration `json:"skew,omitempty"`
	// Sent is when it was sent, on the clock of [proc.SinceBoot]; 0 if nobody
	// wants to know how late it was read.
	Sent time.Duration `json:"sent,omitempty"`
}

// A Place is where a node is.
type Place struct {
	Addr     string `json:"addr"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// DB is the number of the database.
	DB int `json:"db,omitempty"`
}

// Heard answers a report by its number.
type Heard struct {
	ID int `json:"id"`
	Answer
}

// Clock moves the client's wall clock.
type Clock struct {
	By time.Duration `json:"by"`
}

// A Cancel ends the context of the operation that the client is in, if it is in one:
// its caller gives up. The answer of the same number says that it has. Only those are
// sent it that said they understand it.
type Cancel struct {
	ID int `json:"id"`
}

// A Beat asks a client whether it is there, and is its answer: every gap that it
// had until then it has told of. Only those are asked that said they can.
type Beat struct{}

// Ending asks the client to end.
type Ending struct{}

// A Line is what a client's process writes; one of the fields is set.
type Line struct {
	// Ready says that the lock is made, and what it can do. Nothing but gaps and
	// beats comes before it.
	Ready *Ready `json:"ready,omitempty"`
	// Refused says why it can't be made.
	Refused string `json:"refused,omitempty"`
	// Report is a report with its number.
	Report *Numbered `json:"report,omitempty"`
	// Gap is told at once, and asks for no answer: the process may be killed
	// before it has anything else to say.
	Gap *Gap `json:"gap,omitempty"`
	// Cancelled answers a cancel.
	Cancelled *Cancel `json:"cancelled,omitempty"`
	// Beat answers one.
	Beat *Beat `json:"beat,omitempty"`
}

// Ready says what a client's lock can do.
type Ready struct {
	Fenced bool `json:"fenced,omitempty"`
	// Beats says that it answers beats.
	Beats bool `json:"beats,omitempty"`
	// Cancels says that it understands a cancel.
	Cancels bool `json:"cancels,omitempty"`
}

// Numbered is a report that waits for the answer of the same number.
type Numbered struct {
	ID int `json:"id"`
	// Sent is when it was sent, on the system's clock since boot: by that the
	// stage finds out whether the machine was too slow. Left out by a client
	// that can't tell. Gaps are as Gap of a [Line], told later.
	Sent time.Duration `json:"sent,omitempty"`
	Gaps []Gap         `json:"gaps,omitempty"`
	Report
}

// A Gap is a stretch of time in which a process didn't get to run although it
// had something to do, on the clock of [proc.SinceBoot].
type Gap struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// maxLine is how long a line of the protocol may be.
const maxLine = 1 << 20

// Serve is the life of a client's process: it reads orders from in and writes
// lines to out until in ends, it is asked to end, or its lock can't be made. It
// blocks until then. The error says what it could not understand; what the lock does
// wrong is reported, not returned.
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

// obey does what orders say, until they end.
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
				<-s.ran // whoever sent the order knows how long that may take
				c.Leave()
			}
			return nil
		default:
			return fmt.Errorf("client: an order out of place: %.80s", lines.Bytes())
		}
	}
	return lines.Err()
}

// server is a client's end of the conversation.
type server struct {
	life   context.Context
	lookup func(string) (strategies.Strategy, bool)
	skew   atomic.Int64  // of the wall clock, in nanoseconds
	ran    chan struct{} // closed when the client has ended
	quits  chan error    // why there is no client to go on with

	mu      sync.Mutex
	out     *json.Encoder
	last    int // number of the last report
	waiting map[int]chan Answer
}

// live lets the client make its lock and do what it is given. Other orders are heard
// meanwhile.
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

// feel tells of all that this process is late with from now on, and of how late it
// was told who it is.
func (s *server) feel(start Start) {
	now := proc.SinceBoot()
	if now == 0 {
		return // it can't tell
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

// failover returns a client that asks the sentinels where the primary is.
func (start Start) failover() redis.UniversalClient {
	o := start.Options()
	return redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: start.Master, SentinelAddrs: start.Sentinels, SentinelPassword: start.SentinelPassword,
		Password:   start.SentinelPassword,
		MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: o.ContextTimeoutEnabled,
		PoolSize: o.PoolSize, ConnMaxIdleTime: o.ConnMaxIdleTime, Protocol: o.Protocol, DisableIdentity: o.DisableIdentity,
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
		return Answer{}, false // there is no stage any more
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
