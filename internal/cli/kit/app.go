package kit

import (
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/worlds"
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
