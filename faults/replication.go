package faults

// Replication stops, slows, breaks or restarts the stream from a node's primary to its replicas. Each
// Mode uses the fields that its description names and leaves the others zero.
type Replication struct {
	Node   string
	Mode   ReplicationMode
	Delay  Span
	Jitter Span
	Rate   Rate
	After  Span
}

// ReplicationMode selects what [Replication] does to the stream.
type ReplicationMode string

// The modes of [Replication].
const (
	ReplicationStop      ReplicationMode = "stop"      // nothing passes until start
	ReplicationStart     ReplicationMode = "start"     // ends stop, delay, bandwidth and timeout; the replicas catch up
	ReplicationDelay     ReplicationMode = "delay"     // each effect arrives Delay later, plus or minus up to Jitter
	ReplicationBandwidth ReplicationMode = "bandwidth" // the stream is limited to Rate
	ReplicationTimeout   ReplicationMode = "timeout"   // nothing passes until start, and each connection closes After its creation
	ReplicationReset     ReplicationMode = "reset"     // the connections are reset; the replicas reconnect and catch up
)

// Definition implements [Fault].
func (Replication) Definition() Definition {
	return Definition{
		Name: "replication", Word: "replication", Target: OnNode,
		Example: "n1 replication delay 200ms", Summary: "slow, stop, break or start the stream from n1's primary to its replicas",
		Requires: NeedsReplicas, Group: "replicas",
		Shown: &Shown{Appearance: ShownOdd, Ends: []string{"replication", "failover", "join"}},
		form: formOf[Replication](func(f *Replication) []Field {
			return []Field{target(&f.Node), {Value: ChoiceField{&f.Mode, []Option{
				{ReplicationStop, nil},
				{ReplicationStart, nil},
				{ReplicationDelay, []Field{spanOf(&f.Delay, PositiveSpan), jitterOf(&f.Jitter)}},
				{ReplicationBandwidth, []Field{{Value: RateField{To: &f.Rate}}}},
				{ReplicationTimeout, []Field{spanOf(&f.After, PositiveSpan)}},
				{ReplicationReset, nil},
			}}}}
		}),
	}
}

func (f Replication) String() string { return line(f) }

// EndsOthers reports whether the fault ends an earlier one.
func (f Replication) EndsOthers() bool { return f.Mode == ReplicationStart }
