package checkcmd

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker/history"
	"github.com/lockfault/lockfault/internal/cli/kit"
)

// timeUnits returns the values of --time-unit.
func timeUnits() []string {
	return append([]string{inputAuto}, kit.Words(history.TimeUnits())...)
}

// otherEvent counts events of a history that are not operations of a lock.
type otherEvent struct {
	Name   string `json:"name,omitempty"` // empty for the sum of all names after the first few
	By     string `json:"by,omitempty"`   // the process, if it is not a client
	Events int    `json:"events"`
}

// found holds what the reader detected in a history in addition to its format.
type found struct {
	Separator   string       `json:"separator,omitempty"` // of columns, if it is not a comma
	TimeUnit    string       `json:"time_unit,omitempty"` // of times of CSV that are plain numbers
	Since1970   bool         `json:"since_1970,omitempty"`
	UnitBecause string       `json:"time_unit_because,omitempty"` // the reason, if the unit was guessed
	OtherEvents []otherEvent `json:"others,omitempty"`
}

func foundBy(r *history.Reader) found {
	var f found
	if c := r.Separator(); c != 0 && c != ',' {
		f.Separator = string(c)
	}
	times := r.Times()
	f.TimeUnit, f.Since1970 = string(times.Unit), times.Since1970
	if times.Guessed {
		f.UnitBecause = fmt.Sprintf("line %d has %.40s", times.Line, times.First)
	}
	for _, other := range r.IgnoredEvents() {
		f.OtherEvents = append(f.OtherEvents, otherEvent(other))
	}
	return f
}

// notes returns a line for each guess that a user may want to correct, and for skipped events. The
// guessed time unit is listed only if the times are dates or skew is positive, because otherwise it
// does not affect the verdict.
func (f found) notes(skew time.Duration) []string {
	var lines []string
	switch f.Separator {
	case ";":
		lines = append(lines, "columns are separated by semicolons")
	case "\t":
		lines = append(lines, "columns are separated by tabs")
	}
	if f.UnitBecause != "" && (f.Since1970 || skew > 0) {
		since := ""
		if f.Since1970 {
			since = " since 1970"
		}
		lines = append(lines, fmt.Sprintf("times were read as %s%s, since %s: if they are something else, say --time-unit", history.TimeUnit(f.TimeUnit), since, f.UnitBecause))
	}
	if len(f.OtherEvents) == 0 {
		return lines
	}
	var parts []string
	for i, other := range f.OtherEvents {
		what := strconv.Itoa(other.Events)
		if i == 0 {
			what = kit.Count(other.Events, "event", "events")
		}
		if other.Name == "" {
			what += " of others"
		} else {
			what += " of " + other.Name
		}
		if other.By != "" {
			what += " by " + other.By
		}
		parts = append(parts, what)
	}
	return append(lines, "skipped, since they are no operations of a lock: "+strings.Join(parts, ", "))
}
