package checker

import (
	"fmt"
	"time"
)

// sprintf formats like [fmt.Sprintf]; it returns "" if messages are not needed.
func (f *index) sprintf(format string, args ...any) string {
	if f.terse {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// seconds is a time of the history that prints as in messages: "33.002s".
type seconds time.Duration

func (s seconds) String() string {
	ms, sign := time.Duration(s).Round(time.Millisecond).Milliseconds(), ""
	if ms < 0 {
		ms, sign = -ms, "-"
	}
	return fmt.Sprintf("%s%d.%03ds", sign, ms/1000, ms%1000)
}

// outcome returns how a call ended, to complete "A's acquire, called at 1s, …".
func (f *index) outcome(c *call) string {
	was := ""
	if c.cancelled {
		was = "was cancelled at " + seconds(c.gaveUp).String() + " and "
	}
	switch c.result {
	case OK:
		return was + "succeeded only at " + seconds(c.to).String()
	case Fail:
		return was + "failed at " + seconds(c.to).String()
	case "":
		return was + "had not come back when the run ended at " + seconds(c.to).String()
	default:
		return was + "ended with an unknown outcome at " + seconds(c.to).String()
	}
}
