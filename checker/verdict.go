package checker

// A Witness is the set of events that prove an anomaly.
type Witness struct {
	Anomaly Anomaly `json:"anomaly"`
	// Events are indices into the history, in ascending order.
	Events []int `json:"events"`
	// Message is the proof in one plain sentence.
	Message string `json:"says"`
}

// A Verdict is the result of [Check]. The zero value means that every anomaly was judged and none
// was found.
type Verdict struct {
	// Witnesses holds the earliest witness of each anomaly found, in the order of [Anomalies].
	// Empty means that no anomaly was found.
	Witnesses []Witness
	// Unjudged, if not nil, is the reason why the anomalies of [ServerSide] were not judged: the
	// keys do not identify the owner of the lock.
	Unjudged *Ambiguity
}

// Anomalies returns the anomalies found, in the order of [Anomalies]; nil if none was found.
func (v Verdict) Anomalies() []Anomaly {
	var found []Anomaly
	for _, w := range v.Witnesses {
		found = append(found, w.Anomaly)
	}
	return found
}
