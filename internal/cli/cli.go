// Package cli implements the command line: it parses flags, distributes cells over worker processes
// and writes reports. Users build their own binaries with it, which then include their strategies:
//
//	func main() {
//		registry, err := all.Registry().With(mine)
//		if err != nil {
//			log.Fatal(err)
//		}
//		os.Exit(cli.Main(registry))
//	}
//
// Arguments and a registry come in; text, a report directory and an exit status go out. Package cli
// is the top of the module: only package lockfault and the packages below cmd import it.
//
// A command is a file of this package, or a package NAMEcmd below. Commands refer to no other command:
// what two of them share is in a package below, in this order: kit, selection, cells, search.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockfault/lockfault/internal/cli/cells"
	"github.com/lockfault/lockfault/internal/cli/checkcmd"
	"github.com/lockfault/lockfault/internal/cli/explorecmd"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/mapcmd"
	"github.com/lockfault/lockfault/internal/cli/runcmd"
	"github.com/lockfault/lockfault/internal/cli/soakcmd"
	"github.com/lockfault/lockfault/internal/cli/workercmd"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Exit statuses of the program.
const (
	ExitOK          = kit.ExitOK          // completed, and everything as expected
	ExitDiffers     = kit.ExitDiffers     // completed, but something is not as expected
	ExitUsage       = kit.ExitUsage       // invalid command line; nothing was done
	ExitUndecided   = kit.ExitUndecided   // a result is undecided or an error
	ExitInterrupted = kit.ExitInterrupted // interrupted; finished results are kept
)

// Main runs the command line of this process with the strategies of the registry and returns the
// exit status for os.Exit. A main function needs nothing else: the binary also serves as its own
// worker process, which Main handles. Main cancels the command on SIGINT, SIGTERM and, unless it is
// ignored, SIGHUP; a second signal ends the process at once.
func Main(registry strategies.Registry, options ...Option) int {
	cells.CollectLess()
	workerpool.OutlivePipe()
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores SIGHUP: then the end of the terminal must not end the run
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	// A second interrupt ends the process at once.
	defer context.AfterFunc(ctx, stop)()
	return run(ctx, newApp(registry, program(os.Args), options), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// Run runs one command line, args without the program's name, and returns its exit status. When ctx
// is done Run stops, keeps finished results and returns [ExitInterrupted]. Commands that play cells
// start the running executable again as worker processes; its main function must call [Main], or
// Run with its own arguments.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, registry strategies.Registry, options ...Option) int {
	return run(ctx, newApp(registry, kit.Product, options), args, stdin, stdout, stderr)
}

func run(ctx context.Context, a *kit.App, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot(a)
	out, side := kit.NewOutput(stdout), kit.NewOutput(stderr)
	defer side.Flush()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(side)
	cmd, err := root.ExecuteContextC(ctx)
	out.Flush()
	if err == nil {
		err = out.Err
	}
	if part := (*kit.PartError)(nil); errors.As(err, &part) && a.Full != nil {
		code, failed := a.Full.Run(ctx, cmd, part.Need)
		if failed == nil {
			return code
		}
		err = failed
	}
	var status *kit.StatusError
	var syntax *scenarios.SyntaxError
	switch {
	case err == nil:
		return kit.ExitOK
	case errors.As(err, &syntax):
		// Without the program's name in front, editors recognize the file and line.
		fmt.Fprintln(side, err)
		return kit.ExitUsage
	case errors.As(err, &status):
		if status.Err != nil {
			fmt.Fprintf(side, "lockfault: %v\n", status.Err)
		}
		return status.Code
	default:
		fmt.Fprintf(side, "lockfault: %v\n", err)
		return kit.ExitUndecided
	}
}

// oneLine returns a usage error for an argument or flag with several lines. Where such a name is
// printed, its second line could pass for a line of the program, such as an annotation of a CI
// system. The program of --subject may have several lines.
func oneLine(cmd *cobra.Command, args []string) (err error) {
	check := func(what, text string) {
		if err == nil && strings.ContainsAny(text, "\r\n") {
			err = kit.Usage("%s %q: must be a single line", what, text)
		}
	}
	for _, arg := range args {
		check("argument", arg)
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "subject" {
			check("--"+f.Name, f.Value.String())
		}
	})
	return err
}

func newApp(registry strategies.Registry, program string, options []Option) *kit.App {
	a := &kit.App{Registry: registry, Program: program, Everything: registry}
	for _, option := range options {
		option(a)
	}
	return a
}

// program returns the command name that a user types, from the arguments of the process. The name
// is the typed word, or its base name if it is an absolute path, or product if the result needs
// quoting. A user's own program has its own name.
func program(args []string) string {
	if len(args) == 0 {
		return kit.Product
	}
	name := args[0]
	if filepath.IsAbs(name) { // such as a temporary file of go run
		name = strings.TrimSuffix(filepath.Base(name), ".exe")
	}
	if shell.Quote(name) != name {
		return kit.Product
	}
	return name
}

func newRoot(a *kit.App) *cobra.Command {
	root := &cobra.Command{
		Use:   a.Program,
		Short: "Test distributed locks under scripted faults",
		Long: `lockfault plays distributed locks under scripted faults: pauses, lost replies,
failovers, clock jumps, crashes and partitions. lockfault records what every client
and server did, and reports whether two holders overlapped and what damage followed.

Exit status:
  0    every result is as the scenarios expect
  1    a result differs
  2    the command line is invalid, or names a thing that does not exist; nothing was done
  3    a cell is undecided, or the machine lacks a program or service
  130  interrupted

A reader that closes standard output early, as head does, changes neither the work
nor the exit status.`,
		Args: cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if f := cmd.Flags().Lookup("format"); f != nil && strings.Contains(f.Value.String(), reports.AnnotationsForm) {
				cmd.OutOrStdout().(*kit.Output).AllowAnnotations()
			}
			return oneLine(cmd, args)
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return kit.Unknown("command", args[0], visible(cmd), fmt.Sprintf("\"%s help\" lists them", cmd.Root().Name()))
			}
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		runcmd.NewCommand(a),
		runcmd.NewTestCommand(a),
		newTraceCommand(a),
		newPlayCommand(a),
		explorecmd.NewCommand(a),
		soakcmd.NewCommand(a),
		mapcmd.NewCommand(a),
		newShrinkCommand(a),
		newMergeCommand(a),
		checkcmd.NewCommand(),
		newBenchCommand(a),
		newReportCommand(a),
		newCompareCommand(),
		newListCommand(a),
		newShowCommand(),
		newFmtCommand(),
		newInitCommand(),
		newSubjectCheckCommand(a),
		newVersionCommand(),
		newQueueCommand(a),
		workercmd.NewCommand(a),
		newClientCommand(a),
		newWatchmanCommand(a),
	)
	complete(root, a.Registry)
	root.SetHelpCommand(newHelpCommand())
	for _, cmd := range root.Commands() {
		cmd.Example = ownWords.ReplaceAllLiteralString(cmd.Example, a.Program+" ")
	}
	return root
}

// ownWords matches the program's name in examples.
var ownWords = regexp.MustCompile(`\b` + kit.Product + ` `)

// visible returns the names of the commands that are not hidden.
func visible(cmd *cobra.Command) []string {
	names := []string{"help"}
	for _, c := range cmd.Root().Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}

func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil || len(rest) > 0 && !found.HasParent():
				return kit.Unknown("command", args[0], visible(cmd), fmt.Sprintf("\"%s help\" lists them", cmd.Root().Name()))
			case len(rest) > 0:
				return kit.Usage("\"help %s\" has no use for %q", found.Name(), rest[0])
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// flagError returns the usage error for an error of the flag parser.
func flagError(cmd *cobra.Command, err error) error {
	help := fmt.Sprintf("\"%s --help\" explains the flags", cmd.CommandPath())
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		return kit.Usage("--%s does not take %q: %s", wrong.GetFlag().Name, wrong.GetValue(), help)
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		return kit.Usage("--%s needs a value: %s", missing.GetFlag().Name, help)
	}
	var absent *pflag.NotExistError
	if !errors.As(err, &absent) {
		return kit.Usage("%v: %s", err, help)
	}
	if short := absent.GetSpecifiedShortnames(); short != "" {
		return kit.Usage("unknown flag \"-%s\": %s", absent.GetSpecifiedName(), help)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, "--"+f.Name)
		}
	})
	return kit.Unknown("flag", "--"+absent.GetSpecifiedName(), known, help)
}
