package harness_test

import (
	"fmt"

	"github.com/lockfault/lockfault/checker"
)

// differing says where two histories begin to differ; it is empty if they don't.
func differing(a, b checker.History) string {
	for i := range max(len(a.Events), len(b.Events)) {
		switch {
		case i == len(a.Events) || i == len(b.Events):
			return fmt.Sprintf("one has %d events, one %d", len(a.Events), len(b.Events))
		case a.Events[i] != b.Events[i]:
			return fmt.Sprintf("event %d is %+v and %+v", i, a.Events[i], b.Events[i])
		}
	}
	return ""
}
