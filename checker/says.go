package checker

import (
	"fmt"
	"time"
)

// seconds prints a time of the history as sentences do: "33.002s".
func seconds(t time.Duration) string {
	ms, sign := t.Round(time.Millisecond).Milliseconds(), ""
	if ms < 0 {
		ms, sign = -ms, "-"
	}
	return fmt.Sprintf("%s%d.%03ds", sign, ms/1000, ms%1000)
}

// outcome says how a call ended, for the end of "A's acquire, called at 1s, …".
func (f *facts) outcome(c *call) string {
	was := ""
	if c.cancelled {
		was = "was cancelled at " + seconds(c.gaveUp) + " and "
	}
	switch c.result {
	case OK:
		return was + "succeeded only at " + seconds(c.to)
	case Fail:
		return was + "failed at " + seconds(c.to)
	case "":
		return was + "had not come back when the run ended at " + seconds(c.to)
	default:
		return was + "ended without an answer at " + seconds(c.to)
	}
}
