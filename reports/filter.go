package reports

import (
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
)

// A View says how much of a story is told. The zero value tells all of it, with
// what repeats itself in one line.
type View struct {
	// All tells each event on a line of its own.
	All bool
	// Around, unless it is nil, tells the neighbourhood of an event, each on a
	// line of its own.
	Around *Neighbourhood
	// Only names clients, nodes and servers: what happened to or between others is
	// left out, but for what the script did. Where no client is named all are
	// meant, and where no node or server is named all of those.
	Only []string
}

// A Neighbourhood is an event, by its index in the history, with so many lines before
// and behind it; fewer than none are none. Without such an event it is everything.
type Neighbourhood struct{ Event, Lines int }

// excerpt reports whether parts of the story are left out.
func (v View) excerpt() bool { return v.Around != nil || len(v.Only) > 0 }

// shows reports whether the view tells of an event in a history of these clients.
func (v View) shows(e checker.Event, clients []string) bool {
	switch e.Kind {
	case checker.Step, checker.Fault, checker.Measure, checker.End, checker.Pause, checker.Resume, checker.Crash, checker.Restart, checker.Cancel:
		return true
	}
	if len(v.Only) == 0 {
		return true
	}
	named := func(name string) bool { return slices.Contains(v.Only, name) }
	some := slices.ContainsFunc(clients, named)
	places := slices.DeleteFunc(slices.Clone(v.Only), func(name string) bool { return slices.Contains(clients, name) })
	at := func(place string) bool {
		node, _, server := strings.Cut(place, "/")
		// A reply without its request doesn't say from which server of the node.
		return place == e.Node || place == e.Server || server && e.Server == "" && node == e.Node
	}
	return (e.Client == "" || !some || named(e.Client)) &&
		(e.Node == "" || len(places) == 0 || slices.ContainsFunc(places, at))
}

// cut leaves of the rows those around the event.
func (n Neighbourhood) cut(rows []Row) []Row {
	at := slices.IndexFunc(rows, func(r Row) bool { return slices.Contains(r.Events, n.Event) })
	if at < 0 {
		return rows
	}
	lines := min(max(0, n.Lines), len(rows))
	from, to := max(0, at-lines), min(len(rows), at+1+lines)
	var list []Row
	if from > 0 {
		list = append(list, Row{What: "… " + count(from, "line") + " before"})
	}
	list = append(list, rows[from:to]...)
	if left := len(rows) - to; left > 0 {
		list = append(list, Row{What: "… " + count(left, "line") + " behind"})
	}
	return list
}
