package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// writeDiff writes the lines in which b differs from a, those of a with "-" in
// front and those of b with "+", each with its number in its own text. Scripts are short, so the plain quadratic way will do.
// The error is w's.
func writeDiff(w io.Writer, a, b []byte) error {
	old, now := bytes.SplitAfter(a, []byte("\n")), bytes.SplitAfter(b, []byte("\n"))
	// common[i][j] is how many lines old[i:] and now[j:] share at most.
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
