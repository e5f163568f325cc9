package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

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
