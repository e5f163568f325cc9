//go:build !unix

package linear

import "time"

var begun = time.Now()

// spent is the time that has passed; of processor time nothing is known here.
func spent() time.Duration { return time.Since(begun) }
