// Package cli is the command line: it reads what its user wants, spreads cells
// over worker processes, and has the results reported. Users build binaries of
// their own with it, which then know their strategies too:
//
//	func main() {
//		registry, err := all.Registry().With(mine)
//		if err != nil {
//			log.Fatal(err)
//		}
//		os.Exit(cli.Main(registry))
//	}
//
// Arguments and a registry come in; text, a report's directory and an exit
// status go out. It is the top of the module: nothing else imports it.
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
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/suggest"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// The exit statuses.
const (
	ExitOK          = 0   // done, and everything as expected
	ExitDiffers     = 1   // done, but something is not as expected
	ExitUsage       = 2   // asked for what there isn't; nothing was done
	ExitUndecided   = 3   // something is unknown or in error
	ExitInterrupted = 130 // stopped; what was finished is kept
)

// Main runs the command line of this process with the strategies of the
// registry and returns the exit status for os.Exit. It is all that a main
// function needs: the same binary serves as its own worker process, which Main
// takes care of.
func Main(registry strategies.Registry, options ...Option) int {
	collectLess()
	workerpool.OutlivePipe()
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup, say: the end of the terminal is not ours then
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	// Who interrupts twice wants it to end now.
	defer context.AfterFunc(ctx, stop)()
	return run(ctx, newApp(registry, program(os.Args), options), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// Run runs one command line, without the program's name, and returns its exit
// status. When ctx is done it winds up and returns [ExitInterrupted]. Commands
// that play cells start the running executable anew as their worker processes;
// its main function must call [Main], or Run with its own arguments.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, registry strategies.Registry, options ...Option) int {
	return run(ctx, newApp(registry, product, options), args, stdin, stdout, stderr)
}

func run(ctx context.Context, a *app, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot(a)
	out, side := newOutput(stdout), newOutput(stderr)
	defer side.flush()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(side)
	err := root.ExecuteContext(ctx)
	out.flush()
	if err == nil {
		err = out.err
	}
	var status *statusError
	var syntax *scenarios.SyntaxError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &syntax):
		// Without the program's name in front, editors find the place.
		fmt.Fprintln(side, err)
		return ExitUsage
	case errors.As(err, &status):
		if status.err != nil {
			fmt.Fprintf(side, "lockfault: %v\n", status.err)
		}
		return status.code
	default:
		fmt.Fprintf(side, "lockfault: %v\n", err)
		return ExitUndecided
	}
}

// oneLine refuses arguments of several lines: where a name is printed, its second line would pass for
// a line of the program, such as an annotation of a CI system. A program of --subject may have such.
func oneLine(cmd *cobra.Command, args []string) (err error) {
	check := func(what, text string) {
		if err == nil && strings.ContainsAny(text, "\r\n") {
			err = usage("%s %q: must be a single line", what, text)
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

// An output is what commands have in the place of a standard stream: text that they write passes
// [printable.Writer] and [printable.Quoter], so that no name and no error of others acts on the
// terminal or passes for an annotation. After its reader
// has closed the pipe, as head does, an output discards the text, so that the command finishes its
// work. An output keeps the first error of writing, since cobra drops errors when it prints help. It
// is safe for concurrent use: connections to a queue report from goroutines of their own.
type output struct {
	to    io.Writer
	mu    sync.Mutex // for what follows
	text  *printable.Writer
	lines *printable.Quoter
	err   error
}

func newOutput(to io.Writer) *output {
	lines := printable.NewQuoter(pipe{to})
	return &output{to: to, text: printable.NewWriter(lines), lines: lines}
}

// allowAnnotations lets lines through that are annotations. It must be called before the first text
// is written.
func (o *output) allowAnnotations() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = printable.NewWriter(pipe{o.to})
}

// A pipe discards what is written to it once nothing reads from it any more.
type pipe struct{ to io.Writer }

func (p pipe) Write(text []byte) (int, error) {
	n, err := p.to.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		return len(text), nil
	}
	return n, err
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(text)
	o.keep(err)
	return n, err
}

// control writes an escape sequence of the program itself, which Write would replace.
func (o *output) control(sequence string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, err := io.WriteString(pipe{o.to}, sequence)
	o.keep(err)
}

// flush writes the rest of an incomplete character.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep(o.text.Flush())
	o.keep(o.lines.Flush())
}

func (o *output) keep(err error) {
	if o.err == nil {
		o.err = err
	}
}

// file returns the file that is written to, nil if that is no file.
func (o *output) file() *os.File {
	f, _ := o.to.(*os.File)
	return f
}

// app is what the commands share.
type app struct {
	registry strategies.Registry
	program  string       // what to type for it
	engine   queue.Engine // nil if there is none

	services   []worlds.Service    // besides Redis
	everything strategies.Registry // the registry, and their strategies
}

func newApp(registry strategies.Registry, program string, options []Option) *app {
	a := &app{registry: registry, program: program, everything: registry}
	for _, option := range options {
		option(a)
	}
	return a
}

// product is what this is called where it isn't known what the program is called.
const product = "lockfault"

// program returns what to type for the program that was started with these
// arguments: what was typed, as far as that is a word, or its file's name. A user's
// own program has a name of its own.
func program(args []string) string {
	if len(args) == 0 {
		return product
	}
	name := args[0]
	if filepath.IsAbs(name) { // a temporary file's, say, that go run made
		name = strings.TrimSuffix(filepath.Base(name), ".exe")
	}
	if shell.Quote(name) != name {
		return product
	}
	return name
}

// A statusError ends the program with an exit status, and a line on standard
// error unless err is nil.
type statusError struct {
	code int
	err  error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// usage returns the error of somebody who asked for what there isn't.
func usage(format string, args ...any) error {
	return &statusError{ExitUsage, fmt.Errorf(format, args...)}
}

// unknown returns the usage error for a word that is none of the known ones.
func unknown(kind, word string, known []string, help string) error {
	if meant, ok := suggest.Of(word, known); ok {
		return usage("unknown %s %q, did you mean %q?", kind, word, meant)
	}
	return usage("unknown %s %q: %s", kind, word, help)
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   a.program,
		Short: "Break distributed locks on purpose, and say what broke",
		Long: `lockfault plays distributed locks under scripted faults (pauses, lost replies,
failovers, clock jumps, crashes, partitions), records what every party saw, and
says whether two holders overlapped and what damage that did.

The exit status is 0 if everything came out as the scenarios expect, 1 if
something differs, 2 if nothing was done because something was asked for that
there isn't, 3 if a cell could not be decided or the machine lacks something,
and 130 if the run was interrupted. A reader that closes standard output early,
as head does, changes neither the work nor the exit status.`,
		Args: cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if f := cmd.Flags().Lookup("format"); f != nil && strings.Contains(f.Value.String(), reports.AnnotationsForm) {
				cmd.OutOrStdout().(*output).allowAnnotations()
			}
			return oneLine(cmd, args)
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown("command", args[0], visible(cmd), fmt.Sprintf("\"%s help\" lists them", cmd.Root().Name()))
			}
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newRunCommand(a),
		newTraceCommand(a),
		newPlayCommand(a),
		newExploreCommand(a),
		newSoakCommand(a),
		newMapCommand(a),
		newShrinkCommand(a),
		newMergeCommand(a),
		newCheckCommand(),
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
		newWorkerCommand(a),
		newClientCommand(a),
		newWatchmanCommand(),
	)
	complete(root, a.registry)
	root.SetHelpCommand(newHelpCommand())
	for _, cmd := range root.Commands() {
		cmd.Example = ownWords.ReplaceAllLiteralString(cmd.Example, a.program+" ")
	}
	return root
}

// ownWords are where an example has the program's name.
var ownWords = regexp.MustCompile(`\b` + product + ` `)

// visible returns the names of the commands that a user may call.
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
				return unknown("command", args[0], visible(cmd), fmt.Sprintf("\"%s help\" lists them", cmd.Root().Name()))
			case len(rest) > 0:
				return usage("\"help %s\" has no use for %q", found.Name(), rest[0])
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// flagError words an error in a command's flags.
func flagError(cmd *cobra.Command, err error) error {
	help := fmt.Sprintf("\"%s --help\" explains the flags", cmd.CommandPath())
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		return usage("--%s does not take %q: %s", wrong.GetFlag().Name, wrong.GetValue(), help)
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		return usage("--%s needs a value: %s", missing.GetFlag().Name, help)
	}
	var absent *pflag.NotExistError
	if !errors.As(err, &absent) {
		return usage("%v: %s", err, help)
	}
	if short := absent.GetSpecifiedShortnames(); short != "" {
		return usage("unknown flag \"-%s\": %s", absent.GetSpecifiedName(), help)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, "--"+f.Name)
		}
	})
	return unknown("flag", "--"+absent.GetSpecifiedName(), known, help)
}
