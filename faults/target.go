package faults

// TargetClient returns the client whose process the fault targets; empty for other faults.
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

// TargetNode returns the node, or server, that the fault targets; empty for other faults. The name
// may be [Quorum].
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

// BetweenNodes reports whether the fault changes links between nodes. Such a fault is possible only
// if the nodes are members of a cluster.
func BetweenNodes(f Fault) bool {
	switch f.(type) {
	case PartitionNodes, HealNodes:
		return true
	}
	return false
}

// MaxRate is the maximum rate of a clock, as a multiple of true time.
const MaxRate = 1000
