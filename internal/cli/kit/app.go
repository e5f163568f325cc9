package kit

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

// App holds the state that all commands share.
type App struct {
	Registry strategies.Registry
	Program  string       // the command name that a user types
	Engine   queue.Engine // nil if the program has no work queue

	Full       *Full               // nil if no larger program is known
	Containers worlds.Containers   // nil if the program has no container engine
	Show       Show                // nil if the program has no command play
	Services   []worlds.Service    // services other than Redis
	Everything strategies.Registry // registry, and the strategies of services
}

// Product is the name of the program where the typed name is unknown.
const Product = "lockfault"

// Show shows a story on a terminal, as tui.Show does.
type Show = func(ctx context.Context, in, out *os.File, story reports.Narrative, colour bool) error

// Full is a program with parts that another program lacks.
type Full struct {
	// Services are the services that only the full program has, and Strategies their locks.
	Services, Strategies []string
	// Replace replaces this process by the full program with the arguments of this process, or runs
	// it and returns its exit status. Lines for the user, such as the reason of a wait for need, go
	// to stderr. The error says in one line how to install the full program.
	Replace func(ctx context.Context, need string, stderr io.Writer) (status int, err error)
}

// Run replaces this process because a command needs a part.
func (f *Full) Run(ctx context.Context, cmd *cobra.Command, need string) (status int, err error) {
	stderr := cmd.ErrOrStderr()
	if quiet, err := cmd.Flags().GetBool("quiet"); err == nil && quiet {
		stderr = io.Discard
	}
	status, err = f.Replace(ctx, need, stderr)
	if err != nil {
		return 0, Interrupted(Exit(ExitUndecided, err), "interrupted")
	}
	return status, nil
}

// Has reports whether only the full program has a lock whose name matches the pattern. The result is
// false for nil.
func (f *Full) Has(pattern string) bool {
	return f != nil && slices.ContainsFunc(f.Strategies, func(name string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// PartError is the error of a command that needs a part that this program was built without.
type PartError struct {
	Need   string // what needs the part, such as a flag with its value
	Option string // package below cmd/lockfault that has the part; "" if lockfault.Main has it
}

func (e *PartError) Error() string {
	text := e.Need + ": this program was built without this part"
	if e.Option != "" {
		text += fmt.Sprintf(": pass %s.Option() to lockfault.Main", e.Option)
	}
	return text
}

// Lacks returns the usage error of a command that needs a part that this program was built without.
func Lacks(need, option string) error { return Exit(ExitUsage, &PartError{need, option}) }
