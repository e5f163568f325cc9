package checkcmd

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker/history"
	"github.com/lockfault/lockfault/checker/linear"
	"github.com/lockfault/lockfault/internal/cli/kit"
)

// Kinds of lock that a history can be judged against.
const (
	specAuto      = "auto" // guessed from the content
	specMutex     = "mutex"
	specReentrant = "reentrant"
	specLease     = "lease"
	specFenced    = "fenced"
	specMulti     = "multi"
	specSemaphore = "semaphore"
	specTokens    = "mutex-tokens"
	specReadWrite = "read-write"
	specByServer  = "lease-by-server"
)

func specs() []string {
	return []string{specAuto, specMutex, specReentrant, specLease, specFenced, specMulti, specSemaphore, specTokens, specReadWrite, specByServer}
}

func expiries() []string { return []string{"believed", "known", "unknown"} }

// specOf returns the kind of lock that the flags select: --spec, or the only kind that has a given
// flag, or specAuto. Flags of different kinds are a usage error.
func (o *checkOptions) specOf(cmd *cobra.Command) (string, error) {
	name, by := o.spec, ""
	for _, f := range []struct{ flag, spec string }{{"permits", specSemaphore}, {"limit", specReentrant}, {"expiry", specLease}} {
		switch {
		case !cmd.Flags().Changed(f.flag) || name == f.spec:
		case name == specAuto:
			name, by = f.spec, f.flag
		case by != "":
			return "", kit.Usage("--%s goes with --spec %s, and --%s with --spec %s: give one of them", by, name, f.flag, f.spec)
		default:
			return "", kit.Usage("--%s means nothing with --spec %s: it goes with --spec %s", f.flag, name, f.spec)
		}
	}
	return name, nil
}

// linear returns the checker specification of the given name.
func (o *checkOptions) linear(name string) (linear.Spec, error) {
	switch name {
	case specReentrant:
		return linear.Reentrant(o.limit), nil
	case specFenced:
		return linear.Fenced(), nil
	case specTokens:
		return linear.MutexTokens(), nil
	case specReadWrite:
		return linear.ReadWrite(), nil
	case specByServer:
		return linear.Lease(linear.ByServer), nil
	case specMulti:
		return linear.Multi(), nil
	case specSemaphore:
		return linear.Semaphore(o.permits), nil
	case specLease:
		switch o.expiry {
		case "believed":
			return linear.Lease(linear.Believed), nil
		case "known":
			return linear.Lease(linear.Known), nil
		case "unknown":
			return linear.Lease(linear.NotKnown), nil
		}
		return linear.Spec{}, kit.Unknown("expiry", o.expiry, expiries(), "there are "+strings.Join(expiries(), ", "))
	}
	return linear.Mutex(), nil
}

// guess returns the kind of lock that the beginning of a history suggests, and the reason; the
// reason is empty for the default, a mutex. Unreadable lines are skipped; the complete reading
// reports them.
func guess(head []byte, how history.Options) (name, because string) {
	token, lease, shared, ended := "", "", "", ""
	how.Skip = func(*history.Error) {}
	for e, err := range history.New(bytes.NewReader(head), how).Events() {
		if err != nil {
			break
		}
		if ended == "" && e.Phase == linear.Expired {
			ended = fmt.Sprintf("line %d has a lease that ended by the server's clock", e.Line)
		}
		if shared == "" && e.Shared {
			shared = fmt.Sprintf("line %d is about reading", e.Line)
		}
		if token == "" && e.Token != 0 {
			token = fmt.Sprintf("line %d has a fencing token", e.Line)
		}
		switch {
		case lease != "":
		case e.Lease != 0:
			lease = fmt.Sprintf("line %d has the end of a lease", e.Line)
		case e.Op == linear.Extend:
			lease = fmt.Sprintf("line %d extends a lease", e.Line)
		}
	}
	switch {
	case ended != "":
		return specByServer, ended
	case shared != "" && token == "" && lease == "":
		return specReadWrite, shared
	case token != "" && lease != "":
		return specFenced, token + ", and " + lease
	case token != "":
		return specTokens, token + ", and none has a lease"
	case lease != "":
		return specLease, lease
	}
	return specMutex, ""
}
