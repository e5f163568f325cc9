package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/explore"
	"github.com/lockfault/lockfault/internal/pool"
	"github.com/lockfault/lockfault/strategies"
	"github.com/lockfault/lockfault/worlds"
)

type exploreOptions struct {
	bound  explore.Bound
	budget map[explore.Fault]*int
	seed   uint64
	jobs   int
	span   time.Duration
	out    string
	world  string
	place  worlds.Place
}

func newExploreCommand(a *app) *cobra.Command {
	o := exploreOptions{budget: map[explore.Fault]*int{}}
	cmd := &cobra.Command{
		Use:   "explore STRATEGY",
		Short: "Search for schedules that break a lock, or see that there are none",
		Long: `Search all orders in which the requests of some clients can reach their servers,
with as many faults as are allowed, for those that violate something. The shortest
script for each anomaly is kept: lockfault run --scenario plays it like any other.
If the search comes to its end, nothing else goes wrong within the bound.

What a search can see, and what its bound means: docs/explore.md.

The exit status is 0 if nothing was found, 1 if something was, 3 if the lock ended
in an error or came out differently twice, and 130 if the search was interrupted;
what was found until then is told and written all the same.`,
		Example: `  lockfault explore getset-timestamp --clients 3 --advance 1
  lockfault explore setnx-expire --clients 2 --crash 1
  lockfault explore set-nx-px-lua --clients 3 --rounds 2 --for 5m`,
		Args: exactArgs("the name of a strategy"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.explore(cmd, a, args[0]) },
	}
	flags := cmd.Flags()
	flags.IntVar(&o.bound.Clients, "clients", 2, "`number` of clients")
	flags.IntVar(&o.bound.Rounds, "rounds", 1, "`number` of times that each client tries to get the lock, writes and releases it")
	flags.IntVar(&o.bound.Replicas, "replicas", 0, "`number` of replicas of each node; 1 for --failover")
	flags.DurationVar(&o.bound.TTL, "ttl", 30*time.Second, "the lease")
	flags.IntVar(&o.bound.Moves, "moves", 0, "longest path that is followed, a `number` of moves; default any")
	flags.IntVar(&o.bound.States, "states", 0, "`number` of states after which the search ends; default any")
	flags.BoolVar(&o.bound.UntilFirst, "until-first", false, "end with the first anomaly")
	flags.DurationVar(&o.span, "for", 30*time.Second, "real time that the search may take")
	flags.Uint64Var(&o.seed, "seed", defaultSeed, "`number` that decides the strategies' randomness")
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "`number` of worker processes")
	flags.StringVar(&o.out, "out", "", "`directory` for the scripts that are found; default none")
	for _, f := range explore.Faults() {
		o.budget[f] = flags.Int(string(f), 0, "how often it may happen that "+f.About())
	}
	return cmd
}

// check sees to it that what is asked for makes sense.
func (o *exploreOptions) check(cmd *cobra.Command) error {
	b := &o.bound
	switch {
	case b.Clients < 1 || b.Clients > 26:
		return usage("--clients %d: give 1 to 26, which are called A to Z", b.Clients)
	case b.Rounds < 1:
		return usage("--rounds %d: each client needs one at least", b.Rounds)
	case b.Replicas < 0 || b.Moves < 0 || b.States < 0:
		return usage("--replicas, --moves and --states are not negative")
	case b.TTL < time.Second || b.TTL%time.Millisecond != 0:
		return usage("--ttl %v: give a whole number of milliseconds, 1s at least", b.TTL)
	case o.span <= 0:
		return usage("--for %v leaves no time: give some, such as 30s", o.span)
	case o.jobs < 1:
		return usage("--jobs %d: one worker at least has to do the work", o.jobs)
	}
	b.Budget = map[explore.Fault]int{}
	for f, n := range o.budget {
		if *n < 0 {
			return usage("--%s %d is less than nothing", f, *n)
		}
		b.Budget[f] = *n
	}
	if b.Budget[explore.Failover] > 0 && b.Replicas == 0 {
		if cmd.Flags().Changed("replicas") {
			return usage("--failover needs a replica to promote: --replicas 1")
		}
		b.Replicas = 1
	}
	return nil
}

func (o *exploreOptions) explore(cmd *cobra.Command, a *app, name string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	list, err := chooseStrategies(a.registry, []string{name})
	if err != nil {
		return err
	}
	if len(list) > 1 {
		return usage("%q names %d strategies: name one", name, len(list))
	}
	strategy := list[0]
	o.bound.Nodes = max(1, strategy.Nodes)
	start, err := startWorker()
	if err != nil {
		return err
	}
	p := &explorer{options: o, strategy: strategy}
	p.pool = pool.Options{Workers: o.jobs, Start: start, Crew: &p.crew}
	defer p.crew.Close(0)
	ctx, cancel := context.WithTimeout(cmd.Context(), o.span)
	defer cancel()
	began := time.Now()
	w := cmd.OutOrStdout()
	result, err := explore.Search(ctx, o.bound, p, nil)
	if err != nil {
		return err
	}
	if err := o.tell(w, strategy.Name, result, time.Since(began)); err != nil {
		return err
	}
	if o.out != "" {
		if err := o.write(strategy.Name, result); err != nil {
			return err
		}
	}
	switch {
	case cmd.Context().Err() != nil:
		return &statusError{ExitInterrupted, nil}
	case len(result.Errors) > 0:
		return &statusError{ExitUndecided, nil}
	case len(result.Findings) > 0:
		return &statusError{ExitDiffers, nil}
	}
	return nil
}

// tell prints what came of a search.
func (o *exploreOptions) tell(w io.Writer, strategy string, r explore.Result, took time.Duration) error {
	var p strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&p, "%s: %d moves, %d requests; it shows %s\n\n%s\n", f.Anomaly, f.Moves, f.Commands, words(f.Anomalies), indent(f.Script))
	}
	for _, f := range r.Errors[:min(1, len(r.Errors))] {
		fmt.Fprintf(&p, "%d scripts came to nothing, the first: %s\n\n%s\n", len(r.Errors), f.Err, indent(f.Script))
	}
	yes := "yes"
	if !r.Exhausted {
		yes = "no"
		if r.Cut != "" {
			yes += ": " + r.Cut
		}
	}
	fmt.Fprintf(&p, "%s, %s: %d states, %d of them ends, %d runs, longest path %d moves, %.1fs; exhausted: %s\n",
		strategy, o.about(), r.States, r.Ends, r.Runs, r.Depth, took.Seconds(), yes)
	if r.Unjudged != "" {
		fmt.Fprintf(&p, "what went wrong on servers was not judged: %s\n", r.Unjudged)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// about says what the bound is.
func (o *exploreOptions) about() string {
	text := fmt.Sprintf("%d clients, %d rounds", o.bound.Clients, o.bound.Rounds)
	for _, f := range explore.Faults() {
		if n := o.bound.Budget[f]; n > 0 {
			text += fmt.Sprintf(", %s %d", f, n)
		}
	}
	return text
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}

// write writes the scripts that were found.
func (o *exploreOptions) write(strategy string, r explore.Result) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	for _, f := range r.Findings {
		file := filepath.Join(o.out, fmt.Sprintf("%s-%s.txt", strategy, f.Anomaly))
		if err := os.WriteFile(file, []byte(f.Script), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// An explorer plays scripts in worker processes.
type explorer struct {
	options  *exploreOptions
	strategy strategies.Strategy
	pool     pool.Options
	crew     pool.Crew
}

// Play implements [explore.Player].
func (e *explorer) Play(ctx context.Context, scripts []string) ([]explore.Look, error) {
	looks := make([]explore.Look, len(scripts))
	jobs := func(yield func(job) bool) {
		for i, script := range scripts {
			j := job{
				Number: i, Strategy: e.strategy.Name, Scenario: "found", File: "found.txt", Source: []byte(script),
				Place: worlds.Place{World: worlds.Sim}, Seed: e.options.seed, Look: true,
			}
			if !yield(j) {
				return
			}
		}
	}
	err := pool.Run(ctx, e.pool, jobs, func(j job, r pool.Result[played]) error {
		switch {
		case r.Failure != nil:
			looks[j.Number].Err = r.Failure.Error()
		case r.Value.Look != nil:
			looks[j.Number] = *r.Value.Look
		default:
			looks[j.Number].Err = r.Value.Cell.Reason
		}
		return nil
	})
	return looks, err
}
