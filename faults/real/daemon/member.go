package daemon

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lockfault/lockfault/faults/real"
)

// A Member is one server of a cluster that replicates by itself, each member a node: without its
// data it would be another server. [Host.Member] makes one; the caller adds the Daemon.
type Member struct {
	*Daemon
	// Number is the number of the member's node, from 1.
	Number int
	// Spec is the requested specification.
	Spec real.ServerSpec

	host  *Host
	empty string // why the member can't be started without its data
}

// Member checks a specification and returns the member for it. The spec's Node must be n1 to nN for
// N members. A nonempty noClock is the reason why members can't have their own clock, and empty the
// reason why a member can't be started without its data.
func (h *Host) Member(spec real.ServerSpec, members int, noClock, empty string) (*Member, error) {
	number, err := strconv.Atoi(strings.TrimPrefix(spec.Node, "n"))
	switch {
	case err != nil || number < 1 || number > members:
		return nil, fmt.Errorf("%q is no node of a cluster of %d", spec.Node, members)
	case spec.Clock && noClock != "":
		return nil, fmt.Errorf("%w: %s", real.ErrNoClock, noClock)
	case spec.Password == "":
		return nil, errors.New("a server must have a password")
	}
	return &Member{Number: number, Spec: spec, host: h, empty: empty}, nil
}

// Restart implements [real.ManagedServer], for a member with its data.
func (m *Member) Restart(ctx context.Context, empty bool) error {
	if empty {
		return fmt.Errorf("%s: restart %s: %s", m.host.options.Name, m.Spec.Name, m.empty)
	}
	return m.Daemon.Restart(ctx, nil)
}

// RestartAlone implements [real.SoloStarter].
func (m *Member) RestartAlone(ctx context.Context) error { return m.restart(ctx, nil, false) }
