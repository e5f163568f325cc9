package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lockfault/lockfault/faults/real"
)

// ClusterOptions configure a [Cluster].
type ClusterOptions struct {
	Options
	// Members is the number of members, n1 to nN in Node of [real.ServerSpec].
	Members int
	// NoClock is the reason why members can't have their own clock; empty if they can.
	NoClock string
	// NoEmpty is the reason why a member can't be started again without its data.
	NoEmpty string
}

// A Cluster is a [Host] of the members of one cluster, and the ways between them. [NewCluster]
// makes one. It is safe for concurrent use.
type Cluster struct {
	*Host
	*PeerProxy
	options ClusterOptions

	mu      sync.Mutex
	members []*Member
}

// NewCluster makes the host's directory, without members and without ways.
func NewCluster(options ClusterOptions) (*Cluster, error) {
	host, err := New(options.Options)
	if err != nil {
		return nil, err
	}
	return &Cluster{Host: host, PeerProxy: host.NewWays(), options: options}, nil
}

// A Member is one server of a cluster that replicates by itself, each member a node: without its
// data it would be another server. [Cluster.AddMember] makes one.
type Member struct {
	*Daemon
	// Number is the number of the member's node, from 1.
	Number int
	// Spec is the requested specification.
	Spec real.ServerSpec

	cluster *Cluster
}

// AddMember checks a specification and adds the member for it, whose server it does not start.
func (c *Cluster) AddMember(spec real.ServerSpec, program Program) (*Member, error) {
	number, err := strconv.Atoi(strings.TrimPrefix(spec.Node, "n"))
	switch {
	case err != nil || number < 1 || number > c.options.Members:
		return nil, fmt.Errorf("%q is no node of a cluster of %d", spec.Node, c.options.Members)
	case spec.Clock && c.options.NoClock != "":
		return nil, fmt.Errorf("%w: %s", real.ErrNoClock, c.options.NoClock)
	case spec.Password == "":
		return nil, errors.New("a server must have a password")
	}
	d, err := c.Add(spec.Name, program)
	if err != nil {
		return nil, err
	}
	c.Join(number, d)
	m := &Member{Daemon: d, Number: number, Spec: spec, cluster: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = append(c.members, m)
	return m, nil
}

// Members returns the members that were added.
func (c *Cluster) Members() []*Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.members)
}

// Restart implements [real.ManagedServer], for a member with its data.
func (m *Member) Restart(ctx context.Context, empty bool) error {
	if empty {
		return fmt.Errorf("%s: restart %s: %s", m.cluster.options.Name, m.Spec.Name, m.cluster.options.NoEmpty)
	}
	return m.Daemon.Restart(ctx, nil)
}

// RestartAlone implements [real.SoloStarter].
func (m *Member) RestartAlone(ctx context.Context) error { return m.restart(ctx, nil, false) }
