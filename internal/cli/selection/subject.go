package selection

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/shell"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// Values of --subject-protocol.
const (
	SimpleProtocol = "simple"
	fullProtocol   = "full"
)

// Subject is a user's program that runs as each client of its cells, as described to worker
// processes.
type Subject struct {
	Name  string
	Words []string
	Nodes int
	Tags  []string
	Full  bool
}

// Strategy returns the strategy that runs the program.
func (s *Subject) Strategy() strategies.Strategy {
	return strategies.Strategy{
		Name: s.Name, Summary: "the program " + strings.Join(s.Words, " "), Source: "--subject",
		Nodes: s.Nodes, Tags: s.Tags, Program: &strategies.Program{Words: s.Words, Full: s.Full},
	}
}

// With returns the registry extended by the program, or the registry itself if s is nil.
func (s *Subject) With(registry strategies.Registry) (strategies.Registry, error) {
	if s == nil {
		return registry, nil
	}
	return registry.With(s.Strategy())
}

// SubjectFlags holds the flags that describe a user's program.
type SubjectFlags struct {
	Command, name, Protocol string
	nodes                   int
	tags                    []string
}

func (f *SubjectFlags) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Command, "subject", "", "`command` that starts your program as a client, such as 'python3 my_lock.py'; for worlds of real servers (docs/subject.md)")
	flags.StringVar(&f.Protocol, "subject-protocol", SimpleProtocol, "`form` of the protocol that the program uses: simple (docs/subject.md) or full (docs/client-protocol.md)")
	f.AddTraits(flags)
}

// AddTraits adds the flags for properties that cannot be detected from a program.
func (f *SubjectFlags) AddTraits(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "subject-name", "", "`name` of the program's lock in reports (default: the name of its file)")
	flags.IntVar(&f.nodes, "subject-nodes", 1, "`number` of independent Redis nodes that the program needs")
	flags.StringSliceVar(&f.tags, "subject-tags", nil, "`tags` of the program's lock, separated by commas, such as extending,fenced; scripts may require tags (default none)")
}

// FlagArgs returns the flags that describe the same program.
func (f *SubjectFlags) FlagArgs() []string {
	var args shell.Command
	args.Flag(true, "subject", f.Command)
	args.Flag(f.name != "", "subject-name", f.name)
	args.Flag(f.nodes != 1, "subject-nodes", f.nodes)
	args.Flag(len(f.tags) > 0, "subject-tags", strings.Join(f.tags, ","))
	args.Flag(f.Protocol != SimpleProtocol, "subject-protocol", f.Protocol)
	return args
}

// Read returns the program that the flags describe, or nil without --subject. Read checks
// everything that can be checked without starting the program.
func (f *SubjectFlags) Read(cmd *cobra.Command, registry strategies.Registry, names []string) (*Subject, error) {
	if !cmd.Flags().Changed("subject") {
		for _, name := range []string{"subject-name", "subject-nodes", "subject-tags", "subject-protocol"} {
			if cmd.Flags().Changed(name) {
				return nil, kit.Usage("--%s is about a program, and none is named: name it with --subject", name)
			}
		}
		return nil, nil
	}
	s, err := f.Program(cmd, registry, "--subject")
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(names, func(world string) bool { return world != worlds.Sim }) {
		if err := worlds.CanWatch(); err != nil {
			return nil, kit.Exit(kit.ExitUndecided, err)
		}
	}
	return s, nil
}

// Program returns the program of the flags; called names the command in error messages.
func (f *SubjectFlags) Program(cmd *cobra.Command, registry strategies.Registry, called string) (*Subject, error) {
	words, err := commandWords(called, f.Command)
	if err != nil {
		return nil, err
	}
	s := &Subject{Name: f.name, Words: words, Nodes: f.nodes, Full: f.Protocol == fullProtocol}
	if err := cmp.Or(
		kit.OneOf("form of the protocol", f.Protocol, []string{SimpleProtocol, fullProtocol}),
		kit.UsageIf(f.nodes < 1 || f.nodes > scenarios.MaxNodes, "--subject-nodes %d: give 1 to %d, as many as a script may have", f.nodes, scenarios.MaxNodes),
		kit.UsageIf(s.Name == "" && cmd.Flags().Changed("subject-name"), "--subject-name is empty: name the lock, or leave it out"),
	); err != nil {
		return nil, err
	}
	if s.Name == "" {
		s.Name = nameOf(words)
	}
	// The number of nodes determines the group: single-node or multi-node.
	own, other := strategies.TagSingle, strategies.TagMulti
	if f.nodes > 1 {
		own, other = other, own
	}
	for _, tag := range f.tags {
		if err := cmp.Or(
			kit.OneOf("tag", tag, append(strategies.Tags(), leases.ClassNames()...)),
			kit.UsageIf(tag == other, "--subject-tags has %s, and the program is on --subject-nodes %d: leave the tag out, it goes by the number", tag, f.nodes),
		); err != nil {
			return nil, err
		}
		if !slices.Contains(s.Tags, tag) {
			s.Tags = append(s.Tags, tag)
		}
	}
	if !slices.Contains(s.Tags, own) {
		s.Tags = append(s.Tags, own)
	}
	if _, taken := registry.Lookup(s.Name); taken {
		return nil, kit.Usage("there is a strategy %q already: give the program another name with --subject-name", s.Name)
	}
	if _, err := s.With(registry); err != nil {
		return nil, kit.Usage("the program can't be a strategy: %v: see --subject-name and --subject-tags", err)
	}
	return s, nil
}

// commandWords returns the words of a command, with the path of its program, or a usage error if
// the program cannot be started.
func commandWords(flag, command string) ([]string, error) {
	words, err := shell.Split(command)
	switch {
	case err != nil:
		return nil, kit.Usage("%s does not take %q: %v", flag, command, err)
	case len(words) == 0 || words[0] == "":
		return nil, kit.Usage("%s is empty: name a program, such as 'python3 my_lock.py'", flag)
	}
	path, err := exec.LookPath(words[0])
	info, missing := os.Stat(words[0])
	switch {
	case err != nil && missing == nil && info.IsDir():
		return nil, kit.Usage("%s: %s is a directory: name a program", flag, words[0])
	case errors.Is(err, fs.ErrPermission):
		return nil, kit.Usage("%s: %s may not be executed: make it executable, or name its interpreter before it", flag, words[0])
	case err != nil:
		return nil, kit.Usage("%s: there is no program %q to start: install it, or write its path", flag, words[0])
	}
	words[0] = path
	return words, nil
}

// nameOf derives a strategy's name from a command: from the first argument with a file extension,
// or else from the program.
func nameOf(words []string) string {
	file := words[0]
	for _, word := range words[1:] {
		if !strings.HasPrefix(word, "-") && filepath.Ext(word) != "" {
			file = word
			break
		}
	}
	name := strings.ToLower(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
	name = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name), "-")
	if name == "" {
		return "subject"
	}
	return name
}

// RefuseProgram returns a usage error for a strategy that is a program, because the command plays
// in virtual time.
func RefuseProgram(cmd *cobra.Command, s strategies.Strategy) error {
	if s.Program == nil {
		return nil
	}
	return kit.Usage("%s is a program, and %q plays in virtual time, which is for locks in Go: play it with \"%s run --world process\"", s.Name, cmd.Name(), cmd.Root().Name())
}

// AddNoSubjectFlag adds a hidden flag --subject that explains in its error that programs cannot be
// played in virtual time.
func AddNoSubjectFlag(cmd *cobra.Command) {
	const name = "subject"
	cmd.Flags().String(name, "", "a program can't be played in virtual time")
	_ = cmd.Flags().MarkHidden(name) // cannot fail: the flag exists
	args := cmd.Args
	cmd.Args = func(cmd *cobra.Command, given []string) error {
		if cmd.Flags().Changed(name) { // even if arguments are missing too
			return kit.Usage("--subject is not for %q, which plays in virtual time, and programs don't: use \"%s run --subject %s --world process\"",
				cmd.Name(), cmd.Root().Name(), shell.Quote(cmd.Flag(name).Value.String()))
		}
		return args(cmd, given)
	}
}
