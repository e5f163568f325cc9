package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/tempdir"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// tracePrefix is how the names of the directories begin in which a traced cell
// leaves its history.
const tracePrefix = "lockfault-trace-"

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
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("subject") && len(args) == 1 {
				return nil
			}
			return exactArgs("the name of a strategy", "the name or file of a scenario")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 { // the strategy is the program
				args = []string{"", args[0]}
			}
			return o.trace(cmd, a, args[0], args[1])
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, "tell each event on a line of its own, however often it repeats itself")
	flags.StringVar(&o.around, "around", "", "`EVENT[,N]`: tell only the N lines before and behind the event of that number; default 10")
	flags.StringSliceVar(&o.only, "only", nil, "`names` of clients, nodes and servers, such as A,n1, with commas between them: leave out what is of others; what the script does stays")
	o.addFlags(cmd)
	return cmd
}

// neighbours is how many lines before and behind an event are told, unless its
// user says.
const neighbours = 10

// view returns how much of the story is to be told, of a cell with those names.
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

// names returns what the events of a cell can be of: clients, nodes and servers.
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

func (o *traceOptions) trace(cmd *cobra.Command, a *app, strategyName, scenario string) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	if len(o.worlds) > 1 {
		return usage("--world names %d worlds: a story happens in one", len(o.worlds))
	}
	if _, ok := a.registry.Lookup(strategyName); !ok && (isFile(strategyName) || slices.Contains(scenarios.Names(), strategyName)) {
		if _, ok := a.registry.Lookup(scenario); ok {
			return usage("the strategy comes first, did you mean \"%s %s %s\"?", cmd.CommandPath(), scenario, strategyName)
		}
	}
	var chosenNames []string
	if strategyName != "" {
		chosenNames = []string{strategyName}
	}
	registry, list, err := o.chooseSubject(cmd, a.registry, chosenNames)
	if err != nil {
		return err
	}
	if o.subject != nil && strategyName != "" && (len(list) > 1 || list[0].Name != o.subject.Name) {
		return usage("%q and --subject name two locks: leave one of them out", strategyName)
	}
	if len(list) > 1 {
		return usage("%q names %d strategies: name one", strategyName, len(list))
	}
	if list, err = o.on(list); err != nil {
		return err
	}
	script, err := chooseScenario(cmd.Context(), scenario)
	if err != nil {
		return err
	}
	expected, err := o.expectations(cmd, registry, list, []chosen{script}, false)
	if err != nil {
		return err
	}
	if err := o.prepare(cmd.Context(), registry, []chosen{script}, list); err != nil {
		return err
	}
	view, err := o.view(cmd, names(script, list[0]))
	if err != nil {
		return err
	}
	o.warn(cmd)
	temp, err := tempdir.Make("", tracePrefix)
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w: name a directory that can be written to with TMPDIR", err)
	}
	defer temp.Remove() // or the next one does
	dir := temp.Path()

	var cell reports.Cell
	world := o.worlds[0]
	err = o.play(cmd.Context(), world, 1, o.cells(world, 0, []chosen{script}, []strategies.Strategy{list[0]}, dir), func(_ job, c reports.Cell) error {
		cell = c
		return nil
	})
	if errors.Is(err, context.Canceled) {
		return &statusError{ExitInterrupted, errors.New("interrupted")}
	}
	if err != nil {
		return err
	}
	expected.of(&cell)
	cell.Settle()
	var history checker.History
	if cell.History != "" {
		if history, err = reports.ReadHistory(filepath.Join(dir, filepath.FromSlash(cell.History))); err != nil {
			return err
		}
	}
	if n := len(history.Events); n > 0 && view.Around != nil && view.Around.Event >= n {
		return usage("there is no event %d to tell of: the last is %d", view.Around.Event, n-1)
	}
	if err := reports.Story(cmd.OutOrStdout(), cell, history, view); err != nil {
		return err
	}
	var m reports.Matrix
	if err := m.Add(cell); err != nil {
		return err
	}
	if cell.Verdict == reports.NotApplicable { // which nobody could know before
		return &statusError{code: ExitUndecided}
	}
	return verdictStatus(m.Tally())
}
