package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/version"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/strategies"
)

// Option adds a capability, other than a strategy, to a program.
type Option func(*app)

// WithQueue enables distributed work through queues that engine connects to. If engine is also a
// [queue.Host], the command queue can serve one.
func WithQueue(engine queue.Engine) Option { return func(a *app) { a.engine = engine } }

// WithServices adds services other than Redis and their built-in strategies. These strategies must
// not be in the program's registry: WithServices panics if a name is taken.
func WithServices(list ...worlds.Service) Option {
	return func(a *app) {
		a.services = list
		for _, service := range list {
			everything, err := a.everything.WithBuiltin(service.Strategies()...)
			if err != nil {
				panic(fmt.Sprintf("cli: WithServices: %v", err))
			}
			a.everything = everything
		}
	}
}

// queueFlags holds the flags that give the address and credentials of a queue.
type queueFlags struct {
	flag string // name of the flag with the URL
	at   queue.Address
}

func (q *queueFlags) addFlags(flags *pflag.FlagSet, flag, about string) {
	q.flag = flag
	flags.StringVar(&q.at.URLs, flag, "", about)
	flags.StringVar(&q.at.Credentials, "queue-creds", "", "`file` of credentials: a key that \"lockfault queue\" generated, credentials of NATS, or a line USER:PASSWORD")
	flags.StringVar(&q.at.CA, "queue-ca", "", "`file` of who vouches for the queue's servers; default whom the system trusts")
	flags.StringVar(&q.at.Certificate, "queue-cert", "", "`file` of the certificate that is shown to the queue's servers")
	flags.StringVar(&q.at.Key, "queue-key", "", "`file` of that certificate's key")
}

// onAbout is the help text of --on.
const onAbout = "`URL` of a queue whose workers play, such as nats://127.0.0.1:4222, in place of this machine"

// connect connects to the queue. The caller closes the connection.
func (q *queueFlags) connect(cmd *cobra.Command, a *app) (queue.Conn, error) {
	if a.engine == nil {
		return nil, usage("--%s: this program was built without queues: give cli.Main one by cli.WithQueue", q.flag)
	}
	c, err := a.engine.Connect(cmd.Context(), q.at, func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "lockfault: %s\n", text) })
	var wrong *queue.AddressError
	switch {
	case errors.As(err, &wrong):
		return nil, usage("--%s: %v", q.flag, err)
	case err != nil:
		return nil, &statusError{ExitUndecided, err}
	}
	return c, nil
}

// words returns the value of the URL flag and --queue-creds, as typed in a shell.
func (q *queueFlags) words() string {
	text := shell.Quote(q.at.URLs)
	if q.at.Credentials != "" {
		text += " --queue-creds " + shell.Quote(q.at.Credentials)
	}
	return text
}

// programOf returns the identity of this program for a queue: a hash of its version, its build and
// its strategies. Only workers of the same identity take its work.
func programOf(registry strategies.Registry) (queue.Program, error) {
	build, err := digestOfThisProgram()
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
	return []string{"on", "queue-creds", "queue-ca", "queue-cert", "queue-key", "out", "format", "quiet", "verbose", "resume", "jobs", "costs", "baseline", "accept", "shrink"}
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

// check returns a usage error if a flag of the queue is empty or given without the URL.
func (q *queueFlags) check(cmd *cobra.Command) error {
	for _, name := range []string{q.flag, "queue-creds", "queue-ca", "queue-cert", "queue-key"} {
		f := cmd.Flags().Lookup(name)
		switch {
		case !f.Changed:
		case f.Value.String() == "":
			return usage("--%s is empty: leave it out, or give what it is to be", name)
		case !cmd.Flags().Changed(q.flag):
			return usage("--%s is of a queue: name one with --%s, or leave it out", name, q.flag)
		}
	}
	return nil
}

// share opens the command's campaign on a queue if --on is set. The caller must call leave.
func (o *playOptions) share(cmd *cobra.Command, a *app, args []string) (leave func(), err error) {
	if err := o.queue.check(cmd); err != nil {
		return nil, err
	}
	if !cmd.Flags().Changed(o.queue.flag) {
		return func() {}, nil
	}
	switch {
	case o.subject != nil:
		return nil, usage("--on: a --subject is a program of this machine, and workers are on others: build it in, by cli.Main, or leave one of them out")
	case len(o.place.Redis) > 0:
		return nil, usage("--on: the servers of --redis bear one cell after the other: leave --on out")
	case strings.ContainsAny(o.place.RedisServer, `/\`):
		return nil, usage("--on: workers know server programs by name: give --redis-server %s, and start workers with --redis-server and the path there", filepath.Base(o.place.RedisServer))
	case cmd.Flags().Changed("jobs"):
		return nil, usage("--on: nothing is played here, and each worker has --jobs of its own: leave --jobs out")
	}
	c, err := o.queue.connect(cmd, a)
	if err != nil {
		return nil, err
	}
	p, err := programOf(a.everything)
	if err != nil {
		c.Close()
		return nil, err
	}
	name, says := campaignOf(cmd, args)
	g, err := c.Campaign(cmd.Context(), p, name, says)
	if err != nil {
		c.Close()
		return nil, &statusError{ExitUndecided, err}
	}
	say := func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "lockfault: %s\n", text) }
	if o.shared, err = newShared(g, a, say); err != nil {
		c.Close()
		return nil, err
	}
	watched, stop := context.WithCancel(cmd.Context())
	go o.shared.watch(watched, func() {
		say(fmt.Sprintf("no worker of this build waits there: start one with \"%s worker --join %s\"", a.program, o.queue.words()))
	})
	return func() {
		stop()
		if n := g.Refused(); n > 0 {
			say(fmt.Sprintf("%s of workers refused", count(n, "answer", "answers")))
		}
		_ = g.Close(true) // the servers delete the rest after a week
		c.Close()
	}, nil
}

// lonely is the waiting time without workers after which a message is printed.
const lonely = 5 * time.Second

// watch calls say once if items are waiting and no worker is connected, and then returns. watch
// also returns when ctx is done.
func (s *shared) watch(ctx context.Context, say func()) {
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

type serveOptions struct {
	queue.ServerOptions
}

func newQueueCommand(a *app) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Be the queue that other machines take work from",
		Long: `Be a server of NATS JetStream, by which run, explore, soak and map share their work (--on)
with workers on any number of machines (worker --join), until it is interrupted. Whoever
has such servers needs no other: nats-server -js, of version 2.10 or newer, will do.

Only those who have its credentials are let in: a key that is generated when the server first
starts, in a file that no other user can read (--credentials; default queue.key in --dir). The
server prints the flags that workers and requesters need, which name that file.

--config names a file in the language of nats-server that says in its place who is let in, with
users, TLS and a cluster as https://docs.nats.io/running-a-nats-service/configuration has them.`,
		Example: `  lockfault queue --dir queue
  lockfault queue --config nats.conf --dir queue`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, a) },
	}
	cmd.Flags().StringVar(&o.Listen, "listen", "", "`HOST:PORT` to listen on; default what --config says, else 127.0.0.1:4222")
	cmd.Flags().StringVar(&o.Dir, "dir", "", "`directory` to keep in what is not done yet; default what --config says")
	cmd.Flags().StringVar(&o.Credentials, "credentials", "", "`file` of the credentials, generated if it does not exist (default queue.key in --dir)")
	cmd.Flags().StringVar(&o.Config, "config", "", "`file` of a server's configuration, in the language of nats-server")
	return cmd
}

func (o *serveOptions) run(cmd *cobra.Command, a *app) error {
	host, ok := a.engine.(queue.Host)
	switch {
	case !ok:
		return usage("this program was built without a queue's server: nats-server -js is one")
	case o.Dir == "" && o.Config == "":
		return usage("name a directory with --dir, to keep in what is not done yet")
	case cmd.Flags().Changed("credentials") && o.Credentials == "":
		return usage("--credentials is empty: name a file, or leave it out")
	case o.Listen == "" && o.Config == "":
		o.Listen = "127.0.0.1:4222"
	}
	if o.Dir != "" {
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			return usage("--dir: %v", pathErrorText(err))
		}
	}
	err := host.Serve(cmd.Context(), o.ServerOptions, func(url, credentials string) {
		fmt.Fprintf(cmd.OutOrStdout(), "listening on %s\n", url)
		if credentials == "" {
			return
		}
		if path, err := filepath.Abs(credentials); err == nil {
			credentials = path
		}
		fmt.Fprintf(cmd.OutOrStdout(), "to take part: worker --join %s --queue-creds %[2]s, or run, soak, map, explore --on %[1]s --queue-creds %[2]s\n", url, shell.Quote(credentials))
	})
	if wrong := (*queue.AddressError)(nil); errors.As(err, &wrong) {
		return usage("%v", err)
	}
	return err
}
