package reports

import (
	"slices"
	"strings"

	"github.com/lockfault/lockfault/checker"
)

// A View selects the part of a story to show. The zero value shows all events, with repeated rounds
// folded into a line.
type View struct {
	// All shows each event on its own line.
	All bool
	// Around restricts the story to the lines around an event, each event on its own line. Nil
	// means no restriction.
	Around *Neighbourhood
	// Only restricts the story to the named clients, nodes and servers, and to the actions of the
	// script. If it names no client, all clients are included; if it names no node or server, all
	// of them are.
	Only []string
}

// A Neighbourhood is an event, by its index in the history, with up to Lines lines before and after
// it. Negative Lines count as 0. If no row shows the event, all rows are shown.
type Neighbourhood struct{ Event, Lines int }

// excerpt reports whether the view omits parts of the story.
func (v View) excerpt() bool { return v.Around != nil || len(v.Only) > 0 }

// shows reports whether the view includes an event of a history with these clients.
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
		// A reply without its request does not name the server of the node.
		return place == e.Node || place == e.Server || server && e.Server == "" && node == e.Node
	}
	return (e.Client == "" || !some || named(e.Client)) &&
		(e.Node == "" || len(places) == 0 || slices.ContainsFunc(places, at))
}

// cut returns the rows around the event, with a row that counts the omitted lines at each end.
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
