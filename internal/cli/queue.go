package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/shell"
)

func newQueueCommand(a *kit.App) *cobra.Command {
	var o queue.ServerOptions
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "Run a work queue server",
		Long: `Run a NATS JetStream server until interrupted. run, explore, soak and map put work into
the queue (--queue), and workers on any number of machines take work from it (worker
--queue). An existing NATS server of version 2.10 or newer with JetStream (nats-server -js)
can be used instead.

The server admits only clients with its credentials: a key that is generated when the
server first starts, in a file that no other user can read (--credentials). The server
prints the flags that workers and requesters need, which name that file.

With --config, a configuration file of nats-server defines users, TLS and the cluster
instead: https://docs.nats.io/running-a-nats-service/configuration`,
		Example: `  lockfault queue --dir queue
  lockfault queue --config nats.conf --dir queue`,
		Args: kit.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return serve(cmd, a, o) },
	}
	cmd.Flags().StringVar(&o.Listen, "listen", "", "`HOST:PORT` to listen on (default: as in --config, else 127.0.0.1:4222)")
	cmd.Flags().StringVar(&o.Dir, "dir", "", "`directory` for unfinished work (default: as in --config)")
	cmd.Flags().StringVar(&o.Credentials, "credentials", "", "credentials `file`, generated if it does not exist (default: queue.key in --dir)")
	cmd.Flags().StringVar(&o.Config, "config", "", "configuration `file` of nats-server (default none)")
	return cmd
}

func serve(cmd *cobra.Command, a *kit.App, o queue.ServerOptions) error {
	host, ok := a.Engine.(queue.Host)
	switch {
	case !ok:
		return kit.Lacks("the command queue", "withqueue")
	case o.Dir == "" && o.Config == "":
		return kit.Usage("name a directory with --dir, to keep in what is not done yet")
	case cmd.Flags().Changed("credentials") && o.Credentials == "":
		return kit.Usage("--credentials is empty: name a file, or leave it out")
	case o.Listen == "" && o.Config == "":
		o.Listen = "127.0.0.1:4222"
	}
	if o.Dir != "" {
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			return kit.Usage("--dir: %v", kit.PathErrorText(err))
		}
	}
	err := host.Serve(cmd.Context(), o, func(url, credentials string) {
		fmt.Fprintf(cmd.OutOrStdout(), "listening on %s\n", url)
		if credentials == "" {
			return
		}
		if path, err := filepath.Abs(credentials); err == nil {
			credentials = path
		}
		fmt.Fprintf(cmd.OutOrStdout(), "to take part: worker --queue %s --queue-creds %[2]s, or run, soak, map, explore --queue %[1]s --queue-creds %[2]s\n", url, shell.Quote(credentials))
	})
	if wrong := (*queue.AddressError)(nil); errors.As(err, &wrong) {
		return kit.Usage("%v", err)
	}
	return err
}
