package explore

import (
	"fmt"
	"strings"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/scenarios"
)

// names returns the names of the clients.
func (b Bound) names() []string {
	list := make([]string, b.Clients)
	for i := range list {
		list[i] = string(rune('A' + i))
	}
	return list
}

// trial returns the trial of a path.
func (b Bound) trial(t *path) Trial {
	lines, last := t.script()
	text := b.script(lines, nil)
	trial := Trial{Script: text, Mark: strings.Count(b.head(), "\n") + last + 1}
	if !b.afresh {
		trial.Moves = t.depth
	}
	return trial
}

// script returns a path as a script. Clients wait without a practical limit, because the search
// decides how time passes.
func (b Bound) script(lines []string, expect []checker.Anomaly) string {
	var s strings.Builder
	s.WriteString(b.head())
	for _, line := range lines {
		s.WriteString(line)
		s.WriteByte('\n')
	}
	words := []string{"none"}
	if len(expect) > 0 {
		words = words[:0]
		for _, a := range expect {
			words = append(words, string(a))
		}
	}
	fmt.Fprintf(&s, "\nexpect %s\n", strings.Join(words, " "))
	return s.String()
}

// head returns the lines with which every script begins.
func (b Bound) head() string {
	var s strings.Builder
	clients := strings.Join(b.names(), " ")
	if b.TTL != scenarios.Defaults().TTL {
		fmt.Fprintf(&s, "ttl %v\n", b.TTL)
	}
	fmt.Fprintf(&s, "clients %s\n", clients)
	if b.Nodes > 1 {
		fmt.Fprintf(&s, "nodes %d\n", b.Nodes)
	}
	if b.Replicas > 0 {
		fmt.Fprintf(&s, "replicas %d\n", b.Replicas)
	}
	if b.Retries > 0 {
		fmt.Fprintf(&s, "retries %d\n", b.Retries)
	}
	if b.OneThread {
		fmt.Fprintf(&s, "thread 1 %s\n", clients)
	}
	fmt.Fprintf(&s, "patience 20ttl\nread-timeout 10ttl\n\nlatency 0s\nhold %s before any or none\n", clients)
	return s.String()
}
