package services_test

import (
	"testing"

	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/services"
)

// A lock that says how servers are asked whose it is runs on servers that can be asked.
func TestQueriesAreAsked(t *testing.T) {
	for _, service := range services.All() {
		for _, s := range service.Strategies() {
			if _, ok := service.(real.Queried); s.Query != "" && !ok {
				t.Errorf("%s has a Query, and servers of %s are not asked whose a lock is", s.Name, service.Name())
			}
		}
	}
}
