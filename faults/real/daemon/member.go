package daemon

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lockfault/lockfault/faults/real"
)

// A Member is one of the servers of a cluster that keep together by themselves, each a node of its own: without its data it is
// another server. [Host.Member] makes one, and the Daemon is added then.
type Member struct {
	*Daemon
	// Number is its node's, from 1.
	Number int
	// Spec is what was asked for.
	Spec real.ServerSpec

	host  *Host
	empty string // why it isn't started without its data
}

// Member checks that a server can be one of so many members, and makes it one: n1 to nN, in Node of the spec. noClock says why it has no
// clock of its own, if it can't, and empty why it isn't started again without its data.
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

// Restart implements [real.ManagedServer], of a member with its data.
func (m *Member) Restart(ctx context.Context, empty bool) error {
	if empty {
		return fmt.Errorf("%s: restart %s: %s", m.host.options.Name, m.Spec.Name, m.empty)
	}
	return m.Daemon.Restart(ctx, nil)
}

// RestartAlone implements [real.SoloStarter].
func (m *Member) RestartAlone(ctx context.Context) error { return m.restart(ctx, nil, false) }
