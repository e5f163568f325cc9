package strategytest

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// command is one command that reached a node.
type command struct {
	at           time.Duration
	client, node string
	name         string
	args         []string
}

func (r *Fixture) record(node, client, name string, args []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wire = append(r.wire, command{time.Since(r.start), client, node, name, slices.Clone(args)})
}

// Forget clears the record and restarts its clock.
func (r *Fixture) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wire, r.start = nil, time.Now()
}

// Names returns the names of the commands that reached any node, in order.
func (r *Fixture) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, c := range r.wire {
		names = append(names, c.name)
	}
	return names
}

// take returns the record as lines and clears it. Simultaneous commands have no order in virtual
// time, so take sorts them by client and node.
func (r *Fixture) take(names *namer) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.wire, func(a, b command) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.client, b.client), cmp.Compare(a.node, b.node))
	})
	var lines []string
	for _, c := range r.wire {
		lines = append(lines, fmt.Sprintf("%8s  %s %s  %s", c.at.Round(time.Millisecond), c.client, c.node,
			strings.Join(append([]string{c.name}, names.args(c)...), " ")))
	}
	r.wire = nil
	return lines
}

// namer gives short names to owner values and scripts, in order of appearance.
type namer struct {
	short   map[string]string
	owned   map[string]int
	scripts map[string]string
}

func newNamer() *namer {
	return &namer{short: map[string]string{}, owned: map[string]int{}, scripts: map[string]string{}}
}

var (
	ownerValue = regexp.MustCompile(`^process-[A-Z]-[0-9a-f]{32}|^[A-Za-z0-9+/]{22}==$|^[A-Za-z0-9_-]{22}$`)
	calls      = regexp.MustCompile(`redis\.call\("(\w+)"`)
)

func (n *namer) args(c command) []string {
	args := slices.Clone(c.args)
	switch c.name {
	case "EVAL":
		sum := sha1.Sum([]byte(args[0]))
		sha := hex.EncodeToString(sum[:])
		n.scripts[sha] = "{" + strings.Join(verbs(args[0]), " ") + "}"
		args[0] = n.scripts[sha]
	case "EVALSHA":
		if known, ok := n.scripts[args[0]]; ok {
			args[0] = known
		}
	}
	for i, arg := range args {
		args[i] = ownerValue.ReplaceAllStringFunc(arg, func(value string) string {
			if n.short[value] == "" {
				n.owned[c.client]++
				n.short[value] = fmt.Sprintf("%s#%d", c.client, n.owned[c.client])
			}
			return n.short[value]
		})
	}
	return args
}

// verbs returns the commands that a script can call, in the order of its text.
func verbs(script string) []string {
	var names []string
	for _, call := range calls.FindAllStringSubmatch(script, -1) {
		names = append(names, strings.ToLower(call[1]))
	}
	return names
}
