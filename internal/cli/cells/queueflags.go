package cells

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/version"
	"github.com/lockfault/lockfault/strategies"
)

// queueFlag is the name of the flag with the URL of a queue.
const queueFlag = "queue"

// QueueFlags holds the flags that give the address and credentials of a queue.
type QueueFlags struct {
	Address queue.Address
}

// AddFlags adds the flags. about is the text of --queue.
func (q *QueueFlags) AddFlags(flags *pflag.FlagSet, about string) {
	flags.StringVar(&q.Address.URLs, queueFlag, "", about)
	flags.StringVar(&q.Address.Credentials, "queue-creds", "", "credentials `file`: a key that \"lockfault queue\" generated, NATS credentials, or a line USER:PASSWORD (default none)")
	flags.StringVar(&q.Address.CA, "queue-ca", "", "CA certificate `file` of the queue servers (default: system roots)")
	flags.StringVar(&q.Address.Certificate, "queue-cert", "", "client certificate `file` for the queue servers (default none)")
	flags.StringVar(&q.Address.Key, "queue-key", "", "key `file` of the client certificate (default none)")
}

// QueueAbout is the help text of --queue.
const QueueAbout = "`URL` of a queue whose workers play instead of this machine, such as nats://127.0.0.1:4222 (default none)"

// Connect connects to the queue. The caller closes the connection.
func (q *QueueFlags) Connect(cmd *cobra.Command, a *kit.App) (queue.Conn, error) {
	if a.Engine == nil {
		return nil, kit.Lacks("--"+queueFlag, "withqueue")
	}
	c, err := a.Engine.Connect(cmd.Context(), q.Address, func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "lockfault: %s\n", text) })
	var wrong *queue.AddressError
	switch {
	case errors.As(err, &wrong):
		return nil, kit.Usage("--%s: %v", queueFlag, err)
	case err != nil:
		return nil, kit.Exit(kit.ExitUndecided, err)
	}
	return c, nil
}

// words returns the value of the URL flag and --queue-creds, as typed in a shell.
func (q *QueueFlags) words() string {
	text := shell.Quote(q.Address.URLs)
	if q.Address.Credentials != "" {
		text += " --queue-creds " + shell.Quote(q.Address.Credentials)
	}
	return text
}

// ProgramOf returns the identity of this program for a queue: a hash of its version, its build and
// its strategies. Only workers of the same identity take its work.
func ProgramOf(registry strategies.Registry) (queue.Program, error) {
	build, err := kit.BuildDigest()
	if err != nil {
		return queue.Program{}, err
	}
	v := version.Of()
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n", v, build)
	for _, s := range registry.All() {
		fmt.Fprintf(sum, "%q %d %q %v\n", s.Name, s.Nodes, s.Tags, s.Builtin())
	}
	return queue.Program{Class: fmt.Sprintf("%x", sum.Sum(nil)[:8]), Version: v}, nil
}

// here returns the names of the flags that affect only the output or this machine, and not the
// cells that are played.
func here() []string {
	return []string{queueFlag, "queue-creds", "queue-ca", "queue-cert", "queue-key", "out", "format", "quiet", "verbose", "resume", "jobs", "costs", "baseline", "accept", "shrink"}
}

// campaignOf returns the name and the description of a command's campaign. The name is a hash of
// the command and its flags, so that repeating the command resumes the campaign.
func campaignOf(cmd *cobra.Command, args []string) (name, says string) {
	words := append([]string{cmd.Name()}, args...)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(here(), f.Name) {
			words = append(words, "--"+f.Name+"="+f.Value.String())
		}
	})
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return fmt.Sprintf("%x", sum[:8]), strings.Join(words, " ")
}

// Check returns a usage error if a flag of the queue is empty or given without the URL.
func (q *QueueFlags) Check(cmd *cobra.Command) error {
	for _, name := range []string{queueFlag, "queue-creds", "queue-ca", "queue-cert", "queue-key"} {
		f := cmd.Flags().Lookup(name)
		switch {
		case f == nil || !f.Changed: // not every command that plays cells has a queue
		case f.Value.String() == "":
			return kit.Usage("--%s is empty: leave it out, or give what it is to be", name)
		case !cmd.Flags().Changed(queueFlag):
			return kit.Usage("--%s is of a queue: name one with --%s, or leave it out", name, queueFlag)
		}
	}
	return nil
}

// Share opens the command's campaign on a queue if --queue is set. The caller must call leave.
func (o *Settings) Share(cmd *cobra.Command, a *kit.App, args []string) (leave func(), err error) {
	if err := o.Queue.Check(cmd); err != nil {
		return nil, err
	}
	if !cmd.Flags().Changed(queueFlag) {
		return func() {}, nil
	}
	if err := cmp.Or(
		kit.UsageIf(o.Subject != nil, "--queue: a --subject is a program of this machine, and workers are on others: build it in, by cli.Main, or leave one of them out"),
		kit.UsageIf(len(o.Place.Redis) > 0, "--queue: the servers of --redis bear one cell after the other: leave --queue out"),
		kit.UsageIf(strings.ContainsAny(o.Place.RedisServer, `/\`), "--queue: workers know server programs by name: give --redis-server %s, and start workers with --redis-server and the path there", filepath.Base(o.Place.RedisServer)),
		kit.UsageIf(cmd.Flags().Changed("jobs"), "--queue: nothing is played here, and each worker has --jobs of its own: leave --jobs out"),
	); err != nil {
		return nil, err
	}
	c, err := o.Queue.Connect(cmd, a)
	if err != nil {
		return nil, err
	}
	p, err := ProgramOf(a.Everything)
	if err != nil {
		c.Close()
		return nil, err
	}
	name, says := campaignOf(cmd, args)
	g, err := c.Campaign(cmd.Context(), p, name, says)
	if err != nil {
		c.Close()
		return nil, kit.Exit(kit.ExitUndecided, err)
	}
	say := func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "lockfault: %s\n", text) }
	if o.Remote, err = newRemote(g, a, say); err != nil {
		c.Close()
		return nil, err
	}
	watched, stop := context.WithCancel(cmd.Context())
	go o.Remote.watch(watched, func() {
		say(fmt.Sprintf("no worker of this build waits there: start one with \"%s worker --queue %s\"", a.Program, o.Queue.words()))
	})
	return func() {
		stop()
		if n := g.Refused(); n > 0 {
			say(fmt.Sprintf("%s of workers refused", kit.Count(n, "answer", "answers")))
		}
		_ = g.Close(true) // the servers delete the rest after a week
		c.Close()
	}, nil
}

// lonely is the waiting time without workers after which a message is printed.
const lonely = 5 * time.Second

// watch calls say once if items are waiting and no worker is connected, and then returns. watch
// also returns when ctx is done.
func (s *Remote) watch(ctx context.Context, say func()) {
	ticker := time.NewTicker(lonely)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			state, err := s.State(ctx)
			if err == nil && state.Waiting > 0 && state.InHand+state.Idle == 0 {
				say()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
