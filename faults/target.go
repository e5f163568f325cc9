package faults

// TargetClient returns the client whose process a fault is about; empty if it is
// about none.
func TargetClient(f Fault) string {
	switch f := f.(type) {
	case PauseClient:
		return f.Client
	case ResumeClient:
		return f.Client
	case CrashClient:
		return f.Client
	case RestartClient:
		return f.Client
	case CancelClient:
		return f.Client
	case ClientClock:
		return f.Client
	}
	return ""
}

// TargetNode returns the node that a fault is done to, which may be [Quorum]; empty
// if it is done to none.
func TargetNode(f Fault) string {
	switch f := f.(type) {
	case CrashNode:
		return f.Node
	case RestartNode:
		return f.Node
	case PauseNode:
		return f.Node
	case ResumeNode:
		return f.Node
	case Failover:
		return f.Node
	case Split:
		return f.Node
	case Join:
		return f.Node
	case NodeClock:
		return f.Node
	case NodeDrift:
		return f.Node
	case Flush:
		return f.Node
	case Evict:
		return f.Node
	case ScriptFlush:
		return f.Node
	case Replication:
		return f.Node
	}
	return ""
}

// BetweenNodes reports whether a fault is one of the links between nodes, and so can befall none but the
// members of a cluster.
func BetweenNodes(f Fault) bool {
	switch f.(type) {
	case PartitionNodes, HealNodes:
		return true
	}
	return false
}

// MaxRate is how many times too fast a clock can be made to run.
const MaxRate = 1000
