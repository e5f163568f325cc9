package checker

// An Anomaly names one way in which a lock failed its users.
type Anomaly string

// The anomalies, in the order in which reports list them. docs/anomalies.md
// defines each.
const (
	Overlap        Anomaly = "overlap"
	StaleWrite     Anomaly = "stale-write"
	RefusedWrite   Anomaly = "refused-write"
	TokenOrder     Anomaly = "token-order"
	ForeignRelease Anomaly = "foreign-release"
	ForeignExtend  Anomaly = "foreign-extend"
	LostLock       Anomaly = "lost-lock"
	Unreleasable   Anomaly = "unreleasable"
	StuckLock      Anomaly = "stuck-lock"
	Ghost          Anomaly = "ghost"
	SelfDeadlock   Anomaly = "self-deadlock"
	Starvation     Anomaly = "starvation"
	Unavailable    Anomaly = "unavailable"
)

// Anomalies returns all anomalies in the order in which reports list them.
func Anomalies() []Anomaly {
	return []Anomaly{
		Overlap, StaleWrite, RefusedWrite, TokenOrder, ForeignRelease, ForeignExtend, LostLock, Unreleasable,
		StuckLock, Ghost, SelfDeadlock, Starvation, Unavailable,
	}
}

// A Witness is the smallest part of a history that proves an anomaly.
type Witness struct {
	Anomaly Anomaly `json:"anomaly"`
	// Events are indices into the history, in ascending order.
	Events []int `json:"events"`
	// Message is the proof in one plain sentence.
	Message string `json:"says"`
}

// A Verdict is what [Check] found. The zero value is not a valid verdict.
type Verdict struct {
	// Witnesses holds one witness for each anomaly found, the earliest, in
	// the order of [Anomalies]. No witness: the lock held.
	Witnesses []Witness
	// Unjudged, if not nil, is why the anomalies of [ServerSide] were not looked
	// for: the keys don't tell whose the lock is.
	Unjudged *Ambiguity
}

// Anomalies returns the anomalies found, in the order of [Anomalies]; nil if
// the lock held.
func (v Verdict) Anomalies() []Anomaly {
	var found []Anomaly
	for _, w := range v.Witnesses {
		found = append(found, w.Anomaly)
	}
	return found
}
