package linear

import (
	"fmt"
	"maps"
	"slices"
)

// MaxViolations is the maximum number of violations that a [Result] lists.
const MaxViolations = 1000

// maxSize is the maximum total size of the listed violations, where a client's name counts as 1 and
// an event as eventSize.
const (
	maxSize   = 1 << 20
	eventSize = 10
)

// full reports whether the list of violations is full.
func (c *Checker) full() bool {
	return len(c.result.Violations) >= MaxViolations || c.size >= maxSize
}

// wants reports whether a violation is to be reported or listed. A violation that is only counted
// is counted by wants.
func (c *Checker) wants(certain bool) bool {
	switch {
	case !c.opts.All:
		return !c.found && (certain || len(c.result.Violations) == 0)
	case c.opts.Found != nil || !c.full() || certain && !c.certain:
		return true
	}
	c.result.Omitted++
	c.possible = c.possible || !certain
	return false
}

// violate records a violation of the rules. If the violation depends on an open question, a search
// must confirm it, or it is not certain.
func (c *Checker) violate(v Violation) {
	if c.depends(&v) {
		if c.buffer == nil {
			v.Certain = false
		} else if !c.buffer.confirms(v.Key, c.ending) {
			return
		}
	}
	if c.buffer != nil {
		c.buffer.refute(v.Key)
	}
	c.list(v)
}

// list adds a violation to the result. Without Options.All, one is kept: the first, replaced by the
// first certain one.
func (c *Checker) list(v Violation) {
	if !c.wants(v.Certain) {
		return
	}
	if c.opts.Found != nil {
		c.opts.Found(v)
	}
	switch {
	case !c.opts.All:
		c.result.Violations = []Violation{v}
	case !c.full():
		c.result.Violations = append(c.result.Violations, v)
		c.size += len(v.Clients) + eventSize*len(v.Events)
	default:
		c.result.Omitted++
		if v.Certain && !c.certain { // keep at least one certain violation in the list
			c.result.Violations[len(c.result.Violations)-1] = v
		}
	}
	c.certain, c.possible = c.certain || v.Certain, c.possible || !v.Certain
	if v.Certain && !c.opts.All {
		c.found, c.done = true, true
	}
}

// Result returns the verdict on the events so far, as if they were the whole history. Result does
// not change the Checker: it may be called repeatedly, and more events may be added.
func (c *Checker) Result() Result {
	r, _ := c.conclusion()
	return r
}

// conclusion returns the Result, and whether a search could decide more.
func (c *Checker) conclusion() (r Result, open bool) {
	so := *c // a copy: what the end of the history implies is not recorded in c
	so.opts.Found = nil
	so.result.Violations = slices.Clone(c.result.Violations)
	so.ending, so.opened = true, maps.Clone(c.opened)
	if so.buffer = nil; c.buffer != nil {
		so.buffer = c.buffer.fork()
	}
	so.finish()
	open = so.open != ""
	so.settle()
	r = so.result
	if r.Unsettled = so.open != "" && c.buffer == nil; r.Unsettled && !c.tied {
		r.Open = slices.Sorted(maps.Keys(so.opened))
	}
	r.Verdict = Valid
	switch {
	case so.certain:
		r.Verdict = Invalid
		return r, open
	case so.failed != nil:
		r.Reason = so.failed.Error()
	case so.open != "":
		r.Reason = so.open
	case so.doubt != "":
		r.Reason = so.doubt
	case so.possible:
		r.Reason = fmt.Sprintf("clocks that are wrong by up to %v can explain every violation", so.opts.Skew)
	default:
		return r, open
	}
	r.Verdict = Unknown
	return r, open
}

// finish judges what only the end of the history decides, key by key.
func (c *Checker) finish() {
	now := stamp{c.now, 2*c.seq + 1}
	judging := !c.done
	var keys []string
	for key, s := range c.slots {
		for _, h := range s.holds.list {
			c.notify(h, now.before(h.end()))
		}
		if s.permit.over {
			continue
		}
		if s.busy.ret != 0 || len(s.holds.list) > 1 || s.holds.crowded {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if c.found {
			return
		}
		c.conclude(c.slots[key], now)
		if s := c.slots[key]; judging && !c.found && s.busy.ret != 0 {
			c.unexplained(s) // no later hold explained the result
		}
	}
}
