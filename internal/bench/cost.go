// Package cost measures what locks cost on real Redis, or on servers of another service: how many times a second
// one can be acquired and released, how long that takes, and what is added by
// this module's links and its gate.
//
// Strategies come in; [Cost]s go out. The servers are processes of this
// machine, the clients goroutines of this process. It judges nothing.
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
	// Direct is the strategy as its users have it: straight to the server.
	Direct = "direct"
	// Hop leads through a link that nobody looks into: a process in between
	// that reads from one socket and writes to another. No toxics are in its
	// way, here and on the paths that follow.
	Hop = "hop"
	// Gate leads through the same link with the gate in it before a script has
	// begun: each message is decided on, one after the other, nothing is
	// recorded, and the lock's key isn't looked at.
	Gate = "gate"
	// Recorded leads through the gate of a script that has begun: each
	// message is decided on and recorded, and the lock's key looked at.
	Recorded = "recorded"
)

// Paths returns all paths, each with more in it than the one before.
func Paths() []string { return []string{Direct, Hop, Gate, Recorded} }

// Options say what to measure. Strategies must be set.
type Options struct {
	Strategies []strategies.Strategy
	// Contenders are the numbers of clients that want one lock; empty means
	// 1 and 8.
	Contenders []int
	// Time is how long each path is measured for each strategy and number of
	// contenders; 0 means 2 s.
	Time time.Duration
	// Rounds is how many slices that time is cut into: in each round every
	// path gets one, so that whatever else the machine does meanwhile hits
	// all alike. 0 means 10.
	Rounds int
	// Replicas is how many replicas each node has.
	Replicas int
	// Services are what strategies may run on besides Redis.
	Services []worlds.Service
	// RedisServer is the server program; empty means the one on PATH.
	RedisServer string
	// Temp is where the servers' directories are made; empty means the
	// system's place.
	Temp string
	// Begin, unless nil, is told what is measured next.
	Begin func(strategy string, contenders int)
}

// The defaults of Options.
const (
	DefaultTime   = 2 * time.Second
	DefaultRounds = 10
)

// DefaultContenders returns the default of Options.Contenders.
func DefaultContenders() []int { return []int{1, 8} }

// A Cost is what a strategy costs with so many contenders on a path.
type Cost struct {
	Strategy   string
	Contenders int
	// Path is one of [Paths].
	Path string
	// PairsPerSecond is how many times a second all contenders together
	// acquired and released the lock: the median of the slices.
	PairsPerSecond float64
	// P50 and P99 are quantiles of how long a pair took, waiting included,
	// over all pairs.
	P50, P99 time.Duration
	// They are from the least to the most in each slice by itself.
	P50Least, P50Most, P99Least, P99Most time.Duration
	// Pairs is how many were measured, and Failures how many attempts failed:
	// acquires that gave up, or releases of a lock that was lost.
	Pairs, Failures int
	// Busiest is the share of the pairs, from 0 to 1, that the contender with
	// the most of them got: one in Contenders is fair.
	Busiest float64
	// OverDirect and OverHop are by how many times fewer pairs there
	// were than on those paths: the medians of the rounds; 0 if there were
	// none at all.
	OverDirect, OverHop float64
}

// Server returns the name and version of the server program, such as
// "Redis 7.0.15", and the names of the other services that strategies run on, or why there is none, in one line with what to do. It
// blocks until that is known.
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
			return "", fmt.Errorf("cost: %w", err)
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

// hostOf returns who starts servers of a service, or of Redis if that is nil.
func (o Options) hostOf(ctx context.Context, service worlds.Service, nodes int) (real.Host, error) {
	if service == nil {
		return o.host()
	}
	return service.Host(ctx, nodes, o.Replicas, o.Temp)
}

func (o Options) host() (*process.Host, error) {
	return process.New(process.Options{Binary: o.RedisServer, Dir: o.Temp})
}

// Measure measures the strategies one after the other and returns the costs by
// strategy, number of contenders and path. It blocks for about Time for each of
// them, and leaves nothing behind when it returns. When ctx is done it returns
// what it has, and ctx's error.
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
			return list, fmt.Errorf("cost: measuring %s: %w", s.Name, err)
		}
	}
	return list, nil
}
