package cli

import (
	"fmt"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/worlds"
)

// Option adds a capability, other than a strategy, to a program.
type Option func(*kit.App)

// WithQueue enables distributed work through queues that engine connects to. If engine is also a
// [queue.Host], the command queue can serve one.
func WithQueue(engine queue.Engine) Option { return func(a *kit.App) { a.Engine = engine } }

// WithServices adds services other than Redis and their built-in strategies. These strategies must
// not be in the program's registry: WithServices panics if a name is taken.
func WithServices(list ...worlds.Service) Option {
	return func(a *kit.App) {
		a.Services = list
		for _, service := range list {
			everything, err := a.Everything.WithBuiltin(service.Strategies()...)
			if err != nil {
				panic(fmt.Sprintf("cli: WithServices: %v", err))
			}
			a.Everything = everything
		}
	}
}

// WithContainers adds the world docker, whose servers engine runs.
func WithContainers(engine worlds.Containers) Option {
	return func(a *kit.App) { a.Containers = engine }
}

// WithPlay enables the command play, which shows a story with a function such as tui.Show.
func WithPlay(show kit.Show) Option { return func(a *kit.App) { a.Show = show } }

// WithFull names a larger program, which replaces this program if the command line needs a part
// that this program lacks.
func WithFull(full Full) Option { return func(a *kit.App) { a.Full = &full } }

// Full is a program with parts that another program lacks.
type Full = kit.Full
