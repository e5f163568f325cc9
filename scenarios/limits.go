package scenarios

import "time"

// MaxFile is how many bytes a script may have.
const MaxFile = 1 << 20

// MaxNodes is how many nodes a script may have.
const MaxNodes = 9

// The other limits of a script. docs/script.md states them too.
const (
	maxLine     = 10_000 // bytes
	maxClients  = 26
	maxReplicas = 3
	maxCount    = 1000 // of rounds, retries, replies and times

	// A span in TTLs and the TTL itself are bounded so that their product
	// still is a time.Duration.
	maxTime = 1000 * time.Hour
	maxTTLs = 1000
	minTTLs = 1e-6

	minDrift, maxDrift = 0.01, 100

	maxBytes = 1_000_000_000 // of a rate
)
