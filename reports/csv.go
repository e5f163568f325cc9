package reports

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/printable"
)

var formatCSV = Format{Name: "csv", Write: CSV}

// CSV writes a header and a row for each cell, for spreadsheets and scripts. Anomalies are separated
// by spaces, and outcomes has their judgements in the same order; message is the proof of the first anomaly or, for a cell without a verdict, the reason.
// virtual_seconds is the time that passed in the world. Spreadsheets evaluate a field that begins
// with a formula character, so such a field gets an apostrophe in front.
func CSV(w io.Writer, of Source) error {
	table := csv.NewWriter(printable.NewWriter(w))
	write := func(fields ...string) error {
		for i, field := range fields {
			if field != "" && strings.ContainsRune("=+-@", rune(field[0])) {
				field = "'" + field
			}
			fields[i] = printable.Line(clipTo(field, 1000))
		}
		return table.Write(fields)
	}
	if err := write("world", "strategy", "scenario", "verdict", "anomalies", "expected", "as_expected",
		"outcomes", "message", "linearizable", "virtual_seconds", "history", "leak"); err != nil {
		return err
	}
	if _, err := of.scan(func(c Cell) error {
		message, linearizable := c.Reason, ""
		var outcomes []leases.Outcome
		for _, f := range c.Findings {
			outcomes = append(outcomes, f.Outcome)
		}
		if len(c.Witnesses) > 0 {
			message = c.Witnesses[0].Message
		}
		if c.Verdict == Held || c.Verdict == Violated {
			linearizable = strconv.FormatBool(c.Linearizable)
		}
		return write(c.World, c.Strategy, c.Scenario, string(c.Verdict), spaced(c.Anomalies), spaced(c.Expected),
			strconv.FormatBool(c.AsExpected), spaced(outcomes), message, linearizable, fmt.Sprintf("%.3f", c.Virtual.Seconds()), c.History, c.Leak)
	}); err != nil {
		return err
	}
	table.Flush()
	return table.Error()
}
