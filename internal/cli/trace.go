package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/strategies"
)

type traceOptions struct {
	playOptions
	all    bool
	around string
	only   []string
}

func newTraceCommand(a *app) *cobra.Command {
	var o traceOptions
	cmd := &cobra.Command{
		Use:   "trace STRATEGY SCENARIO",
		Short: "Tell the story of one cell",
		Long: `Play one strategy under one scenario and tell what happened, in order of time:
on the wire and in the script, and beside it the four truths in columns of their
own. Belief is who thinks that it holds the lock, server is whose the key is,
result is what each operation returned, and damage is what the protected
resource accepted. Then comes the verdict, with the events that prove it.

Where a client asks the same again and again, and is answered the same, one line
says so; the numbers of its first event and its last stand before it, and what
others did meanwhile comes behind it. --all tells every event.`,
		Example: `  lockfault trace getset-timestamp getset-race
  lockfault trace redlock holder-crash --around 5518,20
  lockfault trace redlock holder-crash --only B,n3 --all
  lockfault trace --subject 'python3 my_lock.py' holder-crash --world process`,
		Args: cellArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.trace(cmd, a, args) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, "tell each event on a line of its own, however often it repeats itself")
	flags.StringVar(&o.around, "around", "", "`EVENT[,N]`: tell only the N lines before and behind the event of that number; default 10")
	flags.StringSliceVar(&o.only, "only", nil, "`names` of clients, nodes and servers, such as A,n1, with commas between them: leave out what is of others; what the script does stays")
	o.addFlags(cmd)
	return cmd
}

// neighbours is the default number of lines that --around prints before and after an event.
const neighbours = 10

// view returns the part of the story that the flags select. names are the valid values of --only.
func (o *traceOptions) view(cmd *cobra.Command, names []string) (reports.View, error) {
	v := reports.View{All: o.all, Only: o.only}
	if cmd.Flags().Changed("only") && len(o.only) == 0 {
		return v, usage("--only is empty: name clients, nodes or servers, or leave it out to see all")
	}
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return v, unknown("name", name, names, "there are "+strings.Join(names, ", "))
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
		return v, usage("--around does not take %q: give the number of an event, and how many lines before and behind it if not %d, such as 812,20", o.around, neighbours)
	}
	v.Around = &reports.Neighbourhood{Event: at, Lines: n}
	return v, nil
}

// names returns the names of the clients, nodes and servers of a cell.
func names(script chosen, strategy strategies.Strategy) []string {
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

func (o *traceOptions) trace(cmd *cobra.Command, a *app, args []string) error {
	c, err := o.chooseCell(cmd, a, args)
	if err != nil {
		return err
	}
	view, err := o.view(cmd, names(c.script, c.strategy))
	if err != nil {
		return err
	}
	cell, history, err := o.playCell(cmd, c)
	if err != nil {
		return err
	}
	if n := len(history.Events); n > 0 && view.Around != nil && view.Around.Event >= n {
		return usage("there is no event %d to tell of: the last is %d", view.Around.Event, n-1)
	}
	if err := reports.Story(cmd.OutOrStdout(), cell, history, view); err != nil {
		return err
	}
	return cellStatus(cell)
}
