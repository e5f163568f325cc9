package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/scenarios"
)

type fmtOptions struct {
	write bool
	diff  bool
}

func newFmtCommand() *cobra.Command {
	var o fmtOptions
	cmd := &cobra.Command{
		Use:   "fmt FILE...",
		Short: "Format scripts",
		Long: `Print scripts in their canonical format. "-" means standard input.

With -w rewrite the files in place. With -d print the differences; the exit status is 1
if there are differences.`,
		Args: kit.SomeArgs("the file of a script"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	cmd.Flags().BoolVarP(&o.write, "write", "w", false, "rewrite files in place")
	cmd.Flags().BoolVarP(&o.diff, "diff", "d", false, "print the differences, and fail if there are any")
	return cmd
}

func (o *fmtOptions) run(cmd *cobra.Command, files []string) error {
	if o.write && o.diff {
		return kit.Usage("-w and -d exclude each other")
	}
	var differs error
	for _, file := range files {
		source, err := kit.ReadText(cmd.Context(), cmd.InOrStdin(), "script", file)
		if err != nil {
			return err
		}
		script, err := scenarios.Parse(file, source)
		if err != nil {
			return err
		}
		formatted := script.Format()
		// Canonical blanks can make a line or the file longer than a script may be.
		if _, err := scenarios.Parse(file, formatted); err != nil {
			return kit.Usage("can't format the script: its canonical format would be refused: %v: shorten the script", err)
		}
		changed := !bytes.Equal(source, formatted)
		switch {
		case o.diff:
			if changed {
				differs = kit.Exit(kit.ExitDiffers, nil)
				fmt.Fprintf(cmd.OutOrStdout(), "--- %s\n+++ %s formatted\n", file, file)
				if err := writeDiff(cmd.OutOrStdout(), source, formatted); err != nil {
					return err
				}
			}
		case o.write && file != "-":
			if changed {
				if err := atomicdir.File(file, formatted); err != nil {
					return kit.Usage("can't rewrite the script: %v", kit.PathErrorText(err))
				}
			}
		default:
			if _, err := cmd.OutOrStdout().Write(formatted); err != nil {
				return err
			}
		}
	}
	return differs
}

// writeDiff writes the lines in which a and b differ. Lines of a have "-" in front and lines of b
// "+", each with its line number in its own text. writeDiff uses the quadratic algorithm for the
// longest common subsequence, because scripts are short. The error is that of w.
func writeDiff(w io.Writer, a, b []byte) error {
	old, now := bytes.SplitAfter(a, []byte("\n")), bytes.SplitAfter(b, []byte("\n"))
	// common[i][j] is the length of the longest common subsequence of old[i:] and now[j:].
	common := make([][]int, len(old)+1)
	for i := range common {
		common[i] = make([]int, len(now)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			if bytes.Equal(old[i], now[j]) {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	out := bufio.NewWriter(w)
	line := func(sign byte, number int, text []byte) {
		if len(text) > 0 {
			fmt.Fprintf(out, "%c%d: %s\n", sign, number, bytes.TrimSuffix(text, []byte("\n")))
		}
	}
	for i, j := 0, 0; i < len(old) || j < len(now); {
		switch {
		case i < len(old) && j < len(now) && bytes.Equal(old[i], now[j]):
			i, j = i+1, j+1
		case j == len(now) || i < len(old) && common[i+1][j] >= common[i][j+1]:
			line('-', i+1, old[i])
			i++
		default:
			line('+', j+1, now[j])
			j++
		}
	}
	return out.Flush()
}
