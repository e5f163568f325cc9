package strategies

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Tags of the built-in strategies. A user's own strategy may have these tags and any others;
// scripts select a group as "@" and the tag.
const (
	TagSingle    = "single"        // runs on one primary
	TagMulti     = "multi"         // runs on several independent nodes
	TagQuorum    = "quorum"        // needs a majority of its nodes
	TagRedisson  = "redisson"      // Redisson's hash, watchdog and pub/sub
	TagRenewing  = "renewing"      // extends its lease automatically while the lock is held
	TagAsync     = "async-release" // a release returns before its command is sent
	TagReaped    = "reaped"        // has no lease: others remove the key of a client that has died
	TagNotifying = "notifying"     // signals a loss to its holder before its lease can be over: the lock is a LossNotifier
	TagExtending = "extending"     // lets its user extend the lease: the lock is an Extender
	TagFenced    = "fenced"        // issues fencing tokens
	TagReplicas  = "replicas"      // is not relied on before replicas have confirmed: a class of docs/leases.md
	TagPlainDel  = "plain-del"     // releases with a DEL without a check
)

// Tags returns the tags of the built-in strategies.
func Tags() []string {
	return []string{TagSingle, TagMulti, TagQuorum, TagRedisson, TagRenewing, TagReaped, TagNotifying, TagAsync, TagExtending, TagFenced, TagReplicas, TagPlainDel}
}

// Registry is an ordered set of strategies with unique names. The zero value is an empty registry.
// A Registry is immutable, so it is safe for concurrent use.
type Registry struct {
	strategies []Strategy
}

// Builtin returns the registry of this package's own algorithms, in the order of the reports.
// Libraries by other authors are in package thirdparty.
func Builtin() Registry {
	return Registry{builtin([]Strategy{
		setnxExpire(),
		setnxExpireRepair(),
		getsetTimestamp(),
		setNXPXDel(),
		setNXPXGetDel(),
		setNXPXLua(),
		setNXPXLuaThreadID(),
		redisson(),
		redissonMultiLock(),
		redissonRedLock(),
		redlockStrategy(),
		setWait(),
		fenced(),
	})}
}

// builtin marks the strategies of the list as built-in.
func builtin(list []Strategy) []Strategy {
	for i := range list {
		list[i].builtin = true
	}
	return list
}

// With returns a registry with the strategies of r followed by the given strategies; r does not
// change. With returns an error for an invalid or duplicate strategy. Names must be unique; names
// and tags consist of lower-case letters, digits and dashes, without a dash at either end. A
// strategy needs either New or Program, and Nodes must not be negative. A Query needs a Service.
// Each entry of Nondeterministic needs a one-line reason and anomalies in Expected. An added
// strategy is not built-in, even if it is a copy of a built-in strategy.
func (r Registry) With(more ...Strategy) (Registry, error) {
	return r.with(false, more)
}

// WithBuiltin is like With, for strategies that belong to this module but to another package: see
// [Strategy.Builtin].
func (r Registry) WithBuiltin(more ...Strategy) (Registry, error) {
	return r.with(true, more)
}

func (r Registry) with(builtin bool, more []Strategy) (Registry, error) {
	all := slices.Clone(r.strategies)
	for _, s := range more {
		if err := s.check(); err != nil {
			return Registry{}, err
		}
		if (Registry{all}).index(s.Name) >= 0 {
			return Registry{}, fmt.Errorf("strategies: there are two strategies named %q: rename one of them", s.Name)
		}
		s.Tags, s.Expected, s.Nondeterministic = slices.Clone(s.Tags), maps.Clone(s.Expected), maps.Clone(s.Nondeterministic)
		for scenario, anomalies := range s.Expected {
			s.Expected[scenario] = slices.Clone(anomalies)
		}
		s.builtin = builtin
		all = append(all, s)
	}
	return Registry{all}, nil
}

// Of returns the registry of the strategies that run on one of the given services.
func (r Registry) Of(services ...string) (of Registry) {
	for _, s := range r.strategies {
		if slices.Contains(services, s.RunsOn()) {
			of.strategies = append(of.strategies, s)
		}
	}
	return of
}

// Lookup returns the strategy with the given name, and whether the strategy exists.
func (r Registry) Lookup(name string) (Strategy, bool) {
	i := r.index(name)
	if i < 0 {
		return Strategy{}, false
	}
	return r.strategies[i], true
}

// Names returns the names of all strategies, in the registry's order.
func (r Registry) Names() []string {
	names := make([]string, 0, len(r.strategies))
	for _, s := range r.strategies {
		names = append(names, s.Name)
	}
	return names
}

// All returns all strategies, in the registry's order. The caller owns the slice.
func (r Registry) All() []Strategy {
	return slices.Clone(r.strategies)
}

// Select returns the strategies that match at least one of the selectors, in the registry's order.
// Without selectors, Select returns all strategies. A selector without a match is an error, since
// it is most likely a typing error.
func (r Registry) Select(selectors ...string) ([]Strategy, error) {
	if len(selectors) == 0 {
		return r.All(), nil
	}
	chosen := make([]bool, len(r.strategies))
	for _, selector := range selectors {
		found := false
		for i, s := range r.strategies {
			if s.Matches(selector) {
				found, chosen[i] = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("strategies: nothing matches %q; the strategies are %s",
				selector, strings.Join(r.Names(), ", "))
		}
	}
	var selected []Strategy
	for i, s := range r.strategies {
		if chosen[i] {
			selected = append(selected, s)
		}
	}
	return selected, nil
}

func (r Registry) index(name string) int {
	return slices.IndexFunc(r.strategies, func(s Strategy) bool { return s.Name == name })
}

// Matches reports whether the selector is the strategy's name, a name pattern such as
// "set-nx-px-*", or "@" and one of the strategy's tags.
func (s Strategy) Matches(selector string) bool {
	if tag, ok := strings.CutPrefix(selector, "@"); ok {
		return slices.Contains(s.Tags, tag)
	}
	matched, err := path.Match(selector, s.Name)
	return err == nil && matched
}

func (s Strategy) check() error {
	switch {
	case !isWord(s.Name):
		return fmt.Errorf("strategies: the name %q is not made of lower-case letters, digits and dashes", s.Name)
	case s.New == nil && s.Program == nil:
		return fmt.Errorf("strategies: %s has no New, the function that builds a client's lock", s.Name)
	case s.New != nil && s.Program != nil:
		return fmt.Errorf("strategies: %s has a New and a Program: only one of them can be its client", s.Name)
	case s.Nodes < 0:
		return fmt.Errorf("strategies: %s asks for %d nodes: 1 or more are possible, 0 means 1", s.Name, s.Nodes)
	}
	if s.Query != "" && s.RunsOn() == Redis {
		return fmt.Errorf("strategies: %s has a Query, but no Service that could be asked it: of Redis name the Keys", s.Name)
	}
	if s.Program != nil {
		if err := s.Program.check(); err != nil {
			return fmt.Errorf("strategies: the program of %s: %w", s.Name, err)
		}
	}
	for _, scenario := range slices.Sorted(maps.Keys(s.Nondeterministic)) {
		if why := s.Nondeterministic[scenario]; why == "" || strings.TrimSpace(why) != why || strings.ContainsAny(why, "\r\n") {
			return fmt.Errorf("strategies: %s leaves to chance what it shows under %s since %q: say why, in one line", s.Name, scenario, why)
		}
		if len(s.Expected[scenario]) == 0 {
			return fmt.Errorf("strategies: %s leaves to chance what it shows under %s, and its May names nothing that it might be", s.Name, scenario)
		}
	}
	for _, tag := range s.Tags {
		if !isWord(tag) {
			return fmt.Errorf("strategies: %s has the tag %q, which is not made of lower-case letters, digits and dashes", s.Name, tag)
		}
	}
	return nil
}

func isWord(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" &&
		!strings.HasPrefix(text, "-") && !strings.HasSuffix(text, "-")
}
