// Package checkcmd is the command check: it reads recorded histories in several formats and judges them
// against the specification of a lock. The package plays nothing.
package checkcmd

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/checker/history"
	"github.com/lockfault/lockfault/checker/linear"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/printable"
	"github.com/lockfault/lockfault/reports"
)

type checkOptions struct {
	spec    string
	expiry  string
	permits int
	limit   int
	strict  bool
	skew    time.Duration
	all     bool
	explain bool
	input   string
	unit    string
	lenient bool
	format  string
	html    string
}

// inputAuto selects detection of the history format by content.
const inputAuto = "auto"

// mostHolders is the largest number of simultaneous holders in a checked history.
const mostHolders = 1_000_000

func inputs() []string { return append([]string{inputAuto}, kit.Words(history.Formats())...) }

func NewCommand() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Check whether histories of locks are linearizable",
		Long: `Read histories of locks, from this program or any other, and report for each whether
it is linearizable: whether a correct lock could have given these replies. "-", or no
file, means standard input.

The formats are JSON lines as "lockfault run" writes them, Jepsen's EDN, and CSV with
the columns time,client,event,result and, if present, key, token, lease, permits and
shared. Each format may be compressed with gzip. docs/history.md describes them.

Without --spec the beginning of a history selects the kind of lock; the first row that
applies counts:

  a lease ended by the server's clock        lease-by-server
  read operations, no tokens and no leases   read-write
  fencing tokens, and leases or extensions   fenced
  fencing tokens                             mutex-tokens
  leases or extensions                       lease
  everything else                            mutex

Exit status:
  0    every history is valid
  1    a history is invalid
  2    nothing was checked: the command line is invalid, or a file does not exist
  3    a history is undecided, or a file cannot be read as a history to its end
  130  interrupted`,
		Example: `  lockfault check lockfault-report/histories/*/*/*.jsonl
  lockfault check --spec fenced --strict history.edn
  lockfault check --all --html check.html logs.csv
  grep lock production.log | to-csv | lockfault check --clock-skew 20ms`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.spec, "spec", specAuto, "`kind` of lock: "+strings.Join(specs(), ", "))
	flags.StringVar(&o.expiry, "expiry", "believed", "`kind` of lease ends, with --spec lease: believed, known or unknown")
	flags.IntVar(&o.permits, "permits", 0, "`number` of permits, with --spec semaphore")
	flags.IntVar(&o.limit, "limit", 0, "maximum `number` of holds of one client, with --spec reentrant (default unlimited)")
	flags.BoolVar(&o.strict, "strict", false, "require another holder for each try that returned busy")
	flags.DurationVar(&o.skew, "clock-skew", 0, "maximum error of any time, early or late: a violation within the error is possible, not certain (default 0s)")
	flags.BoolVar(&o.all, "all", false, "report all violations, not only the first")
	flags.BoolVar(&o.explain, "explain", false, "print the smallest illegal part of the history, and the reason")
	flags.StringVar(&o.input, "input", inputAuto, "`format` of the histories: "+strings.Join(inputs(), ", "))
	flags.StringVar(&o.unit, "time-unit", inputAuto, "`unit` of plain numbers in the times of CSV: "+strings.Join(timeUnits(), ", "))
	flags.BoolVar(&o.lenient, "lenient", false, "skip unreadable lines, and print their number")
	flags.StringVar(&o.format, "format", kit.FormatTable, "`format` of the output: table or json")
	kit.CompleteFlag(cmd, "format", func() []string { return []string{kit.FormatTable, kit.FormatJSON} })
	flags.StringVar(&o.html, "html", "", "`file` for an additional page with a picture of each violation (default none)")
	return cmd
}

// check validates the flags and sets o.spec to the kind of lock that they ask for.
func (o *checkOptions) check(cmd *cobra.Command) error {
	if err := cmp.Or(
		kit.OneOf("spec", o.spec, specs()),
		kit.OneOf("input", o.input, inputs()),
		kit.OneOf("time unit", o.unit, timeUnits()),
		kit.OneOf("format", o.format, []string{kit.FormatTable, kit.FormatJSON}),
	); err != nil {
		return err
	}
	var err error
	if o.spec, err = o.specOf(cmd); err != nil {
		return err
	}
	semaphore, changed := o.spec == specSemaphore, cmd.Flags().Changed
	if err := cmp.Or(
		kit.UsageIf(o.skew < 0, "--clock-skew %v is negative: give 0s or more", o.skew),
		kit.Between("clock-skew", o.skew, 0, kit.MaxDuration),
		kit.Between("limit", max(1, o.limit), 1, mostHolders),
		kit.UsageIf(semaphore && !changed("permits"), "--spec semaphore needs --permits, from 1 to %d", linear.MaxPermits),
		kit.UsageIf(changed("limit") && o.limit < 1, "--limit %d lets nobody hold: give 1 or more", o.limit),
	); err != nil {
		return err
	}
	if semaphore {
		return kit.Between("permits", o.permits, 1, linear.MaxPermits)
	}
	_, err = o.linear(o.spec)
	return err
}

// checked is the result of checking one file, as in the JSON output.
type checked struct {
	File       string `json:"file"`
	Format     string `json:"format"`
	Spec       string `json:"spec"`
	SpecReason string `json:"because,omitempty"` // why this spec, if it was guessed from the content
	Verdict    string `json:"verdict"`           // valid, invalid, unknown, or error
	Reason     string `json:"reason,omitempty"`
	Operations int    `json:"operations"`
	Unknown    int    `json:"unknown"`
	Keys       int    `json:"keys"`
	Estimated  bool   `json:"keys_estimated,omitempty"` // keys is an estimate
	Ignored    int    `json:"ignored"`
	Skipped    int    `json:"skipped"`
	FirstSkip  string `json:"first_skipped,omitempty"`
	found
	Violations []violation `json:"violations"`
	Omitted    int         `json:"omitted,omitempty"` // violations that are not listed
	Explained  *explained  `json:"explained,omitempty"`
	drawn      []reports.Drawn
}

type violation struct {
	Rule    string        `json:"rule"`
	Certain bool          `json:"certain"`
	Key     string        `json:"key,omitempty"`
	Lines   []int         `json:"lines"`
	Clients []string      `json:"clients,omitempty"`
	From    time.Duration `json:"from"`
	To      time.Duration `json:"to"`
	Message string        `json:"says"`
}

// verdictError is the verdict on a file that could not be read completely.
const verdictError = "error"

func (o *checkOptions) run(cmd *cobra.Command, files []string) error {
	defer kit.KeepSmall()()
	if err := o.check(cmd); err != nil {
		return err
	}
	if err := o.checkHTML(cmd.Flags().Changed("html"), files); err != nil {
		return err
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	for i, file := range files {
		if file == "-" && slices.Contains(files[:i], "-") {
			return kit.Usage("standard input is named twice, but can be read only once")
		}
		if file == "-" {
			continue
		}
		// Fail before hours of reading, not after.
		if info, err := os.Stat(file); err != nil {
			return kit.Usage("can't read the history: %v", kit.PathErrorText(err))
		} else if info.IsDir() {
			return kit.Usage("can't read the history: %s is a directory", file)
		}
	}
	list := make([]checked, 0, len(files))
	for _, file := range files {
		c, err := o.one(cmd.Context(), cmd.InOrStdin(), file)
		if errors.Is(err, context.Canceled) {
			if len(list) > 0 {
				if err := o.print(cmd.OutOrStdout(), list); err != nil {
					return err
				}
			}
			return kit.Exit(kit.ExitInterrupted, fmt.Errorf("interrupted: %d of %d histories are checked", len(list), len(files)))
		}
		if err != nil {
			// Without the program's name in front, editors recognize the file and line.
			fmt.Fprintln(cmd.ErrOrStderr(), err)
		}
		list = append(list, c)
	}
	if err := o.writeHTML(list); err != nil {
		return err
	}
	if err := o.print(cmd.OutOrStdout(), list); err != nil {
		return err
	}
	status := kit.ExitOK
	for _, c := range list {
		switch c.Verdict {
		case string(linear.Valid):
		case string(linear.Invalid):
			status = max(status, kit.ExitDiffers)
		default:
			status = max(status, kit.ExitUndecided)
		}
	}
	if status != kit.ExitOK {
		return kit.Exit(status, nil)
	}
	return nil
}

// one checks one file, with "-" for stdin. The error says why the file could not be read to its
// end; the result is valid for the part that was read.
func (o *checkOptions) one(ctx context.Context, stdin io.Reader, file string) (checked, error) {
	c := checked{File: file, Spec: o.spec}
	if file == "-" {
		c.File = "stdin"
	}
	from, done, err := kit.OpenInterruptible(ctx, stdin, file)
	if err != nil {
		c.Verdict, c.Reason = verdictError, kit.PathErrorText(err).Error()
		return c, kit.PathErrorText(err)
	}
	defer done()
	in := newHistoryText(from)
	how := history.Options{Name: c.File}
	if o.input != inputAuto {
		how.Format = history.Format(o.input)
	}
	if o.unit != inputAuto {
		how.TimeUnit = history.TimeUnit(o.unit)
	}
	if c.Spec == specAuto {
		c.Spec, c.SpecReason = guess(in.head, how)
	}
	spec, err := o.linear(c.Spec)
	if err != nil {
		return c, err
	}
	how.ByServer = c.Spec == specByServer
	if o.lenient {
		how.Skip = func(err *history.Error) {
			if c.FirstSkip == "" {
				c.FirstSkip = err.Error()
			}
		}
	}
	as := linear.Options{Strict: o.strict, Skew: o.skew, All: o.all}
	r := history.New(in.whole, how)
	j, err := judge(ctx, r.Events(), spec, c.Spec != specMulti, as)
	if err == nil && j.Unsettled && (j.Verdict == linear.Unknown || o.all) {
		// The rules alone leave the verdict open: only a search from the first event can settle it.
		if from := in.reopen(); from == nil && j.Verdict == linear.Unknown {
			j.Reason += "; a search may settle it, but not of an input of this size that can be read only once: give it as a file"
		} else if from != nil {
			as.Search, as.Locks = true, j.Open
			r = history.New(from, how)
			j, err = judge(ctx, r.Events(), spec, c.Spec != specMulti, as)
		}
	}
	c.Format, c.Ignored, c.Skipped = string(r.Format()), r.Ignored(), r.Skipped()
	c.found = foundBy(r)
	c.Verdict, c.Reason = string(j.Verdict), j.Reason
	c.Operations, c.Unknown, c.Keys = j.Ops, j.Unknown, j.keys
	c.Estimated = j.estimated
	c.Omitted = j.Omitted
	c.Violations = make([]violation, 0, len(j.Violations))
	for _, v := range j.Violations {
		c.Violations = append(c.Violations, violationOf(v))
	}
	if o.explain && len(j.Violations) > 0 {
		if from := in.reopen(); from != nil {
			c.Explained = explain(history.New(from, how).Events(), spec, &j.Violations[0], o.strict)
		} else {
			c.Explained = &explained{Message: "an input of this size can be read only once: give it as a file to have it explained"}
		}
	}
	if o.html != "" {
		if from := in.reopen(); from != nil {
			c.drawn = o.draw(from, how, spec, j.Violations)
		}
	}
	if err != nil {
		c.Reason = err.Error()
		if j.Verdict != linear.Invalid { // a proof from the events read so far stays valid
			c.Verdict = verdictError
		}
	}
	return c, err
}

func violationOf(v linear.Violation) violation {
	w := violation{
		Rule: string(v.Rule), Certain: v.Certain, Key: v.Key, Lines: []int{},
		Clients: v.Clients, From: v.From, To: v.To, Message: v.Message,
	}
	for _, e := range v.Events {
		if e.Line > 0 {
			w.Lines = append(w.Lines, e.Line)
		}
	}
	slices.Sort(w.Lines)
	w.Lines = slices.Compact(w.Lines)
	return w
}

func (o *checkOptions) print(out io.Writer, list []checked) error {
	b := bufio.NewWriter(out)
	if o.format == kit.FormatJSON {
		encoder := json.NewEncoder(printable.NewJSONWriter(b))
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(list); err != nil {
			return err
		}
		return b.Flush()
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HISTORY\tVERDICT\tSPEC\tOPERATIONS\tUNKNOWN\tLOCKS")
	for _, c := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\n", c.File, c.Verdict, c.Spec, c.Operations, c.Unknown, c.locks())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range list {
		c.explain(b, o.skew)
	}
	return b.Flush()
}

// locks returns the number of locks in the history, with "about" if it is an estimate.
func (c *checked) locks() string {
	if c.Estimated {
		return "about " + strconv.Itoa(c.Keys)
	}
	return strconv.Itoa(c.Keys)
}

// onLocks returns the text of locks followed by its noun.
func (c *checked) onLocks() string {
	if c.Keys == 1 {
		return "1 lock"
	}
	return c.locks() + " locks"
}

// explain writes the details that do not fit into the table, after an empty line. explain writes
// nothing if no details exist.
func (c *checked) explain(w io.Writer, skew time.Duration) {
	var lines []string
	if c.SpecReason != "" {
		lines = append(lines, fmt.Sprintf("judged as --spec %s, since %s", c.Spec, c.SpecReason))
	}
	lines = append(lines, c.notes(skew)...)
	for _, v := range c.Violations {
		name := v.Rule
		if !v.Certain {
			name = "possible " + name
		}
		lines = append(lines, fmt.Sprintf("%s%s: %s", name, onLines(v.Lines), v.Message))
	}
	if c.Explained != nil {
		lines = append(lines, c.Explained.lines()...)
	}
	if c.Omitted > 0 {
		lines = append(lines, kit.Count(c.Omitted, "more violation is", "more violations are")+" not listed")
	}
	switch {
	case c.Reason == "" || c.Verdict == verdictError: // read errors were printed on standard error
	case c.Verdict == string(linear.Invalid):
		lines = append(lines, "the rest was not read: "+c.Reason)
	default:
		lines = append(lines, c.Verdict+": "+c.Reason)
	}
	if c.Skipped > 0 {
		lines = append(lines, fmt.Sprintf("%s left out, the first because: %s", kit.Count(c.Skipped, "line was", "lines were"), c.FirstSkip))
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", c.File)
	for _, line := range lines {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

func onLines(lines []int) string {
	switch len(lines) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(", line %d", lines[0])
	}
	texts, last := kit.Each(lines, strconv.Itoa), len(lines)-1
	return ", lines " + strings.Join(texts[:last], ", ") + " and " + texts[last]
}
