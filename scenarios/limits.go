package scenarios

import "time"

// MaxFile is the maximum size of a script, in bytes.
const MaxFile = 1 << 20

// MaxNodes is the maximum number of nodes of a script.
const MaxNodes = 9

// Other limits of a script. docs/script.md lists them, too.
const (
	maxLine     = 10_000 // bytes
	maxClients  = 26
	maxReplicas = 3
	maxCount    = 1000 // of rounds, retries, replies and times

	// The limits of a span in TTLs and of the TTL ensure that their product fits into a
	// time.Duration.
	maxTime = 1000 * time.Hour
	maxTTLs = 1000
	minTTLs = 1e-6

	minDrift, maxDrift = 0.01, 100

	maxBytes = 1_000_000_000 // of a rate
)
