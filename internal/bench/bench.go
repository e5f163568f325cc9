// Package bench measures the cost of locks on real servers of Redis or another service. It measures
// pairs of acquire and release per second, the duration of a pair, and the overhead of this
// module's links and gate.
//
// Strategies come in, [Cost] values go out. The servers are processes on this machine, and the
// clients are goroutines of this process. The package does not judge whether a lock is correct.
package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
)

// The paths between clients and servers that are compared.
const (
	// Direct connects the strategy to the server directly, as its users do.
	Direct = "direct"
	// Hop leads through a link that does not inspect messages: a process that copies from one
	// socket to another. This path and the following ones have no toxics.
	Hop = "hop"
	// Gate leads through the same link with the gate, before a script has begun. The gate decides
	// on each message in turn, records nothing, and does not look at the lock's key.
	Gate = "gate"
	// Recorded leads through the gate of a script that has begun: each message is decided on and
	// recorded, and the lock's key is looked at.
	Recorded = "recorded"
)

// Paths returns all paths. Each path has more overhead than the one before.
func Paths() []string { return []string{Direct, Hop, Gate, Recorded} }

// Options configure [Measure]. Strategies must be set.
type Options struct {
	Strategies []strategies.Strategy
	// Contenders holds the numbers of clients that compete for one lock; empty means 1 and 8.
	Contenders []int
	// Time is the duration of the measurement of each path, for each strategy and number of
	// contenders; 0 means 2 s.
	Time time.Duration
	// Rounds is the number of slices into which Time is divided. Each round measures one slice of
	// every path, so that other load on the machine affects all paths alike. 0 means 10.
	Rounds int
	// Replicas is the number of replicas per node.
	Replicas int
	// Services are the services other than Redis that strategies may run on.
	Services []worlds.Service
	// RedisServer is the server program; empty means redis-server on PATH.
	RedisServer string
	// Temp is the parent directory of the servers' directories; empty means the system's default.
	Temp string
	// Begin, if not nil, is called before each measurement with the strategy's name and the number
	// of contenders.
	Begin func(strategy string, contenders int)
}

// The defaults of Options.
const (
	DefaultTime   = 2 * time.Second
	DefaultRounds = 10
)

// DefaultContenders returns the default of Options.Contenders.
func DefaultContenders() []int { return []int{1, 8} }

// A Cost is the cost of a strategy with a number of contenders on a path.
type Cost struct {
	Strategy   string
	Contenders int
	// Path is one of [Paths].
	Path string
	// PairsPerSecond is the number of pairs of acquire and release per second of all contenders
	// together: the median of the slices.
	PairsPerSecond float64
	// P50 and P99 are quantiles of the duration of a pair, including the wait for the lock, over
	// all pairs.
	P50, P99 time.Duration
	// P50Least, P50Most, P99Least and P99Most are the smallest and largest P50 and P99 of single
	// slices.
	P50Least, P50Most, P99Least, P99Most time.Duration
	// Pairs is the number of pairs measured. Failures is the number of failed attempts: acquires
	// that gave up, or releases of a lost lock.
	Pairs, Failures int
	// Busiest is the share of the pairs, from 0 to 1, of the contender with the most pairs; a fair
	// share is 1 / Contenders.
	Busiest float64
	// OverDirect and OverHop are the factors by which the path has fewer pairs than the paths
	// Direct and Hop. They are medians over the rounds; 0 if no round has pairs on both paths.
	OverDirect, OverHop float64
}

// Server returns the name and version of the server program, such as "Redis 7.0.15", and the names
// of the other services that the strategies run on. If one is missing, the error says in one line
// what to do. Server blocks until it has checked all services.
func (o Options) Server(ctx context.Context) (string, error) {
	var list []string
	seen := map[string]bool{}
	for _, s := range o.Strategies {
		if seen[s.RunsOn()] {
			continue
		}
		seen[s.RunsOn()] = true
		service, err := worlds.Programs{Services: o.Services}.ServiceOf(s)
		if err != nil {
			return "", fmt.Errorf("bench: %w", err)
		}
		if service != nil {
			if err := service.Check(ctx); err != nil {
				return "", err
			}
			list = append(list, service.Name())
			continue
		}
		host, err := o.host()
		if err != nil {
			return "", err
		}
		list = append(list, host.Version())
		if err := host.Close(); err != nil {
			return "", err
		}
	}
	return strings.Join(list, ", "), nil
}

// hostOf returns the host that starts servers of a service, or of Redis if service is nil.
func (o Options) hostOf(ctx context.Context, service worlds.Service, nodes int) (real.Host, error) {
	if service == nil {
		return o.host()
	}
	return service.Host(ctx, nodes, o.Replicas, o.Temp)
}

func (o Options) host() (*process.Host, error) {
	return process.New(process.Options{Binary: o.RedisServer, Dir: o.Temp})
}

// Measure measures the strategies one after the other and returns the costs by strategy, number of
// contenders and path. Measure blocks for about Time per path, and ends all servers and clients
// before it returns. When ctx is done, Measure returns the costs so far and ctx's error.
func Measure(ctx context.Context, o Options) ([]Cost, error) {
	if len(o.Contenders) == 0 {
		o.Contenders = DefaultContenders()
	}
	if o.Time <= 0 {
		o.Time = DefaultTime
	}
	if o.Rounds <= 0 {
		o.Rounds = DefaultRounds
	}
	var list []Cost
	for _, s := range o.Strategies {
		costs, err := o.measure(ctx, s)
		list = append(list, costs...)
		if ctx.Err() != nil {
			return list, ctx.Err()
		}
		if err != nil {
			return list, fmt.Errorf("bench: measuring %s: %w", s.Name, err)
		}
	}
	return list, nil
}
