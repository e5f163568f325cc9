package real_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/worldtest"
)

// The stories that every world plays alike.
func TestStories(t *testing.T) {
	for _, story := range worldtest.Stories() {
		t.Run(story.Name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, real.Config{Nodes: story.Nodes, Replicas: story.Replicas, Clock: story.Clock}, "client")
			worldtest.Play(t, worldtest.World{
				World:  s.World,
				Dial:   s.dial,
				Events: func() []checker.Event { return slices.Clone(s.events) },
				Moment: 30 * time.Millisecond,
			}, story)
			if err := s.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}
