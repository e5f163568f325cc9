package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lockfault/lockfault/checker/history"
)

// timeUnits are the values of --time-unit.
func timeUnits() []string {
	names := []string{inputAuto}
	for _, unit := range history.TimeUnits() {
		names = append(names, string(unit))
	}
	return names
}

// An otherEvent counts events of a history that are no operation of a lock.
type otherEvent struct {
	Name   string `json:"name,omitempty"` // empty for all beyond the first few
	By     string `json:"by,omitempty"`   // who is no client
	Events int    `json:"events"`
}

// found is what a reader took a history for, beyond its format.
type found struct {
	Separator   string       `json:"separator,omitempty"` // of columns, if it is no comma
	TimeUnit    string       `json:"time_unit,omitempty"` // of times of CSV that are plain numbers
	Since1970   bool         `json:"since_1970,omitempty"`
	UnitBecause string       `json:"time_unit_because,omitempty"` // if nobody asked for the unit
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

// planText returns a line for each thing that was guessed and that a user may know
// better, or that was left out. A unit matters to what is said of dates, and to the
// skew; otherwise it makes no difference to the verdict.
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
			what = count(other.Events, "event", "events")
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
