package docker

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
)

// The labels of everything that a host makes: the host's run, and its directory.
const (
	runLabel = "lockfault.run"
	dirLabel = "lockfault.dir"
)

func (h *Host) labels(item string) map[string]string {
	return map[string]string{runLabel: h.run, dirLabel: h.dir.Path(), itemLabel: item}
}

// A hostNetwork is the network of a host's servers, which reach one another only through links of
// this machine.
type hostNetwork struct {
	mu  sync.Mutex
	net *testcontainers.DockerNetwork // nil until it is made
}

// network returns the host's network, and makes it at the first call.
func (h *Host) network(ctx context.Context) (*testcontainers.DockerNetwork, error) {
	n := &h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.net != nil {
		return n.net, nil
	}
	for {
		err := h.making.one(ctx, "network", func(ctx context.Context, item string) (err error) {
			n.net, err = network.New(ctx, network.WithLabels(h.labels(item)))
			return err
		})
		if err == nil {
			return n.net, nil
		}
		n.net = nil
		// An engine has addresses for about 30 networks. Other hosts may be using all of them, and
		// will release some soon.
		if !strings.Contains(err.Error(), "address pool") {
			return nil, fmt.Errorf("make a network: %w", err)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("make a network: %w: give fewer --jobs, or remove networks that nobody uses (%w)", context.Cause(ctx), err)
		}
	}
}

// Gateway returns this machine's address on the servers' network, as [real.GatewayHost] specifies.
// All containers of this machine can reach listeners at that address; other machines need an
// explicit route.
func (h *Host) Gateway(ctx context.Context, _ string) (string, error) {
	ctx, leave, err := h.enter(ctx)
	if err != nil {
		return "", fmt.Errorf("docker: %w", err)
	}
	defer leave()
	n, err := h.network(ctx)
	if err != nil {
		return "", fmt.Errorf("docker: %w", oneLine(err))
	}
	found, err := h.engine.NetworkInspect(ctx, n.ID, client.NetworkInspectOptions{})
	if err != nil {
		return "", fmt.Errorf("docker: ask for the network: %w", oneLine(err))
	}
	for _, block := range found.Network.IPAM.Config {
		if block.Gateway.Is4() && mine(block.Gateway) {
			return block.Gateway.String(), nil
		}
	}
	return "", fmt.Errorf("docker: containers can't reach this machine: the engine runs them in another one: play scenarios with replicas in --world process")
}

// mine reports whether this machine has the address.
func mine(ip netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range list {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Unmap() == ip {
			return true
		}
	}
	return false
}
