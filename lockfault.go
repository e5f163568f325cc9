// Package lockfault is the lockfault command as a library. Programs of your own have the whole command
// line, and know your strategies beside the built-in ones:
//
//	func main() {
//		registry, err := all.Registry().With(mine)
//		if err != nil {
//			log.Fatal(err)
//		}
//		os.Exit(lockfault.Main(registry))
//	}
//
// Package strategies says what a strategy is, and package strategies/all has the built-in ones. To test
// a lock with go test, use package locktest.
package lockfault

import (
	"context"
	"io"

	"github.com/lockfault/lockfault/internal/cli"
	"github.com/lockfault/lockfault/internal/cli/tui"
	"github.com/lockfault/lockfault/strategies"
)

// The exit statuses.
const (
	ExitOK          = cli.ExitOK          // everything is as expected
	ExitDiffers     = cli.ExitDiffers     // something is not as expected
	ExitUsage       = cli.ExitUsage       // the command line is wrong; nothing was done
	ExitUndecided   = cli.ExitUndecided   // something is unknown, or ended in an error
	ExitInterrupted = cli.ExitInterrupted // the command was interrupted; what was finished is kept
)

// An Option adds what not every program needs: see the packages withdocker, withqueue and withservices
// in cmd/lockfault.
type Option = cli.Option

// Main runs the command line of this process with the strategies of the registry and returns the
// exit status for [os.Exit]. A main function must call nothing else: the binary starts itself again
// for worker processes, and Main serves them.
func Main(registry strategies.Registry, options ...Option) int {
	return cli.Main(registry, withPlay(options)...)
}

// Run runs one command line, without the program's name, and returns its exit status. When ctx is
// done Run ends what it has started and returns [ExitInterrupted]. Commands that play cells start
// the running executable again as their worker processes, so the executable's main function must
// call [Main], or Run with its own arguments. Run must not be called concurrently.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, registry strategies.Registry, options ...Option) int {
	return cli.Run(ctx, args, stdin, stdout, stderr, registry, withPlay(options)...)
}

func withPlay(options []Option) []Option { return append([]Option{cli.WithPlay(tui.Show)}, options...) }
