package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

type traceOptions struct {
	cells.Settings
	all    bool
	around string
	filter []string
}

func newTraceCommand(a *kit.App) *cobra.Command {
	var o traceOptions
	cmd := &cobra.Command{
		Use:   "trace STRATEGY SCENARIO",
		Short: "Print the events of one cell",
		Long: `Play one strategy under one scenario and print its events in order of time: messages, steps
of the script, and beside them four columns:

  belief  the clients that believe that they hold the lock
  server  the owner of the key
  result  the result of each operation
  damage  what the protected resource accepted

The verdict follows, with the events that prove it.

If a client repeats a request and gets the same reply, one line stands for all repetitions.
The line begins with the numbers of the first and last event, and ends with the events of
others in between. --all prints every event.`,
		Example: `  lockfault trace getset-timestamp getset-race
  lockfault trace redlock holder-crash --around 5518,20
  lockfault trace redlock holder-crash --filter B,n3 --all
  lockfault trace --subject 'python3 my_lock.py' holder-crash --world process`,
		Args: cells.CellArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.trace(cmd, a, args) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, "print each event on its own line, even repetitions")
	flags.StringVar(&o.around, "around", "", "`EVENT[,N]` to print only N lines before and after the event of that number (default: N 10)")
	flags.StringSliceVar(&o.filter, "filter", nil, "`names` of clients, nodes and servers to print, such as A,n1, separated by commas; steps of the script are always printed (default: all)")
	o.AddFlags(cmd)
	return cmd
}

// neighbours is the default number of lines that --around prints before and after an event.
const neighbours = 10

// view returns the part of the story that the flags select. names are the valid values of --filter.
func (o *traceOptions) view(cmd *cobra.Command, names []string) (reports.View, error) {
	v := reports.View{All: o.all, Only: o.filter}
	if cmd.Flags().Changed("filter") && len(o.filter) == 0 {
		return v, kit.Usage("--filter is empty: name clients, nodes or servers, or leave it out to see all")
	}
	for _, name := range o.filter {
		if err := kit.OneOf("name", name, names); err != nil {
			return v, err
		}
	}
	if !cmd.Flags().Changed("around") {
		return v, nil
	}
	event, lines, given := strings.Cut(o.around, ",")
	at, err := strconv.Atoi(event)
	n := neighbours
	if given && err == nil {
		n, err = strconv.Atoi(lines)
	}
	if err != nil || at < 0 || n < 0 {
		return v, kit.Usage("--around does not take %q: give the number of an event, and how many lines before and behind it if not %d, such as 812,20", o.around, neighbours)
	}
	v.Around = &reports.Neighbourhood{Event: at, Lines: n}
	return v, nil
}

// names returns the names of the clients, nodes and servers of a cell.
func names(script selection.Chosen, strategy strategies.Strategy) []string {
	list := slices.Clone(script.Clients)
	for i := range max(1, strategy.Nodes) {
		list = append(list, faults.NodeName(i))
	}
	for i := range max(1, strategy.Nodes) {
		for k := range 1 + script.Replicas {
			list = append(list, fmt.Sprintf("%s/%d", faults.NodeName(i), k))
		}
	}
	return list
}

func (o *traceOptions) trace(cmd *cobra.Command, a *kit.App, args []string) error {
	c, err := o.ChooseCell(cmd, a, args)
	if err != nil {
		return err
	}
	view, err := o.view(cmd, names(c.Script, c.Strategy))
	if err != nil {
		return err
	}
	cell, history, err := o.PlayCell(cmd, c)
	if err != nil {
		return err
	}
	if n := len(history.Events); n > 0 && view.Around != nil && view.Around.Event >= n {
		return kit.Usage("there is no event %d to tell of: the last is %d", view.Around.Event, n-1)
	}
	if err := reports.Story(cmd.OutOrStdout(), cell, history, view); err != nil {
		return err
	}
	return cells.CellStatus(cell)
}
