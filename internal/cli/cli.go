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

// Exit statuses of the program.
const (
	ExitOK          = 0   // completed, and everything as expected
	ExitDiffers     = 1   // completed, but something is not as expected
	ExitUsage       = 2   // invalid command line; nothing was done
	ExitUndecided   = 3   // a result is undecided or an error
	ExitInterrupted = 130 // interrupted; finished results are kept
)

// Main runs the command line of this process with the strategies of the registry and returns the
// exit status for os.Exit. A main function needs nothing else: the binary also serves as its own
// worker process, which Main handles. Main cancels the command on SIGINT, SIGTERM and, unless it is
// ignored, SIGHUP; a second signal ends the process at once.
func Main(registry strategies.Registry, options ...Option) int {
	collectLess()
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
		// Without the program's name in front, editors recognize the file and line.
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

// oneLine returns a usage error for an argument or flag with several lines. Where such a name is
// printed, its second line could pass for a line of the program, such as an annotation of a CI
// system. The program of --subject may have several lines.
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

// output wraps a standard stream of a command. Text passes [printable.Writer] and
// [printable.Quoter], so that foreign names and errors can neither control the terminal nor pass
// for annotations. After the reader has closed the pipe, as head does, an output discards text, so
// that the command finishes its work. An output keeps the first write error, because cobra drops
// errors when it prints help. output is safe for concurrent use: connections to a queue report from
// their own goroutines.
type output struct {
	to    io.Writer
	mu    sync.Mutex // guards the fields below
	text  *printable.Writer
	lines *printable.Quoter
	err   error
}

func newOutput(to io.Writer) *output {
	lines := printable.NewQuoter(pipe{to})
	return &output{to: to, text: printable.NewWriter(lines), lines: lines}
}

// allowAnnotations lets annotation lines pass unquoted. allowAnnotations must be called before the
// first write.
func (o *output) allowAnnotations() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = printable.NewWriter(pipe{o.to})
}

// pipe is a writer that discards text after the reader has closed the pipe.
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

// file returns the underlying file, or nil if the stream is not a file.
func (o *output) file() *os.File {
	f, _ := o.to.(*os.File)
	return f
}

// app holds the state that all commands share.
type app struct {
	registry strategies.Registry
	program  string       // the command name that a user types
	engine   queue.Engine // nil if the program has no work queue

	services   []worlds.Service    // services other than Redis
	everything strategies.Registry // registry, and the strategies of services
}

func newApp(registry strategies.Registry, program string, options []Option) *app {
	a := &app{registry: registry, program: program, everything: registry}
	for _, option := range options {
		option(a)
	}
	return a
}

// product is the name of the program where the typed name is unknown.
const product = "lockfault"

// program returns the command name that a user types, from the arguments of the process. The name
// is the typed word, or its base name if it is an absolute path, or product if the result needs
// quoting. A user's own program has its own name.
func program(args []string) string {
	if len(args) == 0 {
		return product
	}
	name := args[0]
	if filepath.IsAbs(name) { // such as a temporary file of go run
		name = strings.TrimSuffix(filepath.Base(name), ".exe")
	}
	if shell.Quote(name) != name {
		return product
	}
	return name
}

// statusError ends the program with an exit status, and with a line on standard error unless err is
// nil.
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

// usage returns an error that ends the program with [ExitUsage].
func usage(format string, args ...any) error {
	return &statusError{ExitUsage, fmt.Errorf(format, args...)}
}

// unknown returns the usage error for an unknown word: with the most similar known word if there is
// a close match, or else with help.
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

// ownWords matches the program's name in examples.
var ownWords = regexp.MustCompile(`\b` + product + ` `)

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
				return unknown("command", args[0], visible(cmd), fmt.Sprintf("\"%s help\" lists them", cmd.Root().Name()))
			case len(rest) > 0:
				return usage("\"help %s\" has no use for %q", found.Name(), rest[0])
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
