package checker

import "slices"

// An Anomaly names one way in which a lock fails its users. docs/anomalies.md defines each.
type Anomaly string

// A Class says what an anomaly costs.
type Class string

// The classes, the worst first.
const (
	Safety   Class = "safety"   // more holds at once than the lock admits, or a step towards that
	Damage   Class = "damage"   // the resource took a write that it should not have taken
	Liveness Class = "liveness" // a client cannot get or use a lock that should be free for it
	Hygiene  Class = "hygiene"  // something is left behind on the servers
)

// A Description is an entry of the table of anomalies. Every list of anomalies is derived from the
// table. To add an anomaly, write its file, with its constant, its Description and its finder, and
// add the Description to the table in this file; package internal/oracle has its naive definition.
type Description struct {
	Name    Anomaly
	Letter  string // its mark in narrow tables; a letter of the name
	Short   string // its name in tables; at most 9 characters
	Meaning string // one sentence without a full stop
	Class   Class
	// ServerSide reports that the anomaly is judged by the lock's key on the servers. Check judges it
	// only if the key identifies the owner of the lock.
	ServerSide bool
	// Lasting reports that the anomaly is final only when no operation is in progress that could
	// end it.
	Lasting bool

	// find yields a witness of each occurrence of the anomaly, the earliest first, until yield
	// returns false.
	find func(_ *index, yield func(*Witness) bool)
}

// table holds the anomalies in the order in which reports list them.
var table = []Description{
	overlapEntry,
	staleWriteEntry,
	refusedWriteEntry,
	tokenOrderEntry,
	foreignReleaseEntry,
	foreignExtendEntry,
	lostLockEntry,
	keylessEntry,
	unreleasableEntry,
	stuckLockEntry,
	notReleasedEntry,
	ghostEntry,
	idleTrafficEntry,
	selfDeadlockEntry,
	deadlockEntry,
	starvationEntry,
	unavailableEntry,
}

// Descriptions returns the table of anomalies in the order in which reports list them.
func Descriptions() []Description { return slices.Clone(table) }

// Describe returns the description of an anomaly, and whether there is such an anomaly.
func Describe(a Anomaly) (Description, bool) {
	for _, d := range table {
		if d.Name == a {
			return d, true
		}
	}
	return Description{}, false
}

// Anomalies returns all anomalies in the order in which reports list them.
func Anomalies() []Anomaly {
	return anomaliesWhere(func(Description) bool { return true })
}

// ServerSide returns the anomalies that are judged by the lock's key on the servers. Check judges
// them only if the key identifies the owner of the lock.
func ServerSide() []Anomaly {
	return anomaliesWhere(func(d Description) bool { return d.ServerSide })
}

func anomaliesWhere(is func(Description) bool) (list []Anomaly) {
	for _, d := range table {
		if is(d) {
			list = append(list, d.Name)
		}
	}
	return list
}
