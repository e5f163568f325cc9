package checkcmd

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/lockfault/lockfault/checker/history"
	"github.com/lockfault/lockfault/checker/linear"
	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/reports"
)

// mostDrawn is the largest number of violations drawn per history; larger pages are unreadable.
const mostDrawn = 20

// checkHTML returns a usage error if the page of --html could not be written, before hours of
// reading.
func (o *checkOptions) checkHTML(set bool, files []string) error {
	switch {
	case !set:
		return nil
	case o.html == "":
		return kit.Usage("--html is empty: name a file for the page")
	}
	if page, err := os.Stat(o.html); err == nil {
		for _, file := range files {
			if history, err := os.Stat(file); err == nil && os.SameFile(page, history) {
				return kit.Usage("--html %s is a history that is to be checked: name another file", o.html)
			}
		}
	}
	if err := atomicdir.CheckFile(o.html); err != nil {
		return kit.Usage("--html can't be written: %v", kit.PathErrorText(err))
	}
	return nil
}

// draw reads the history again and returns its violations with the events and holds of their locks.
// Without violations it returns the first lock of the history. At most mostDrawn violations are
// drawn.
func (o *checkOptions) draw(from io.Reader, how history.Options, spec linear.Spec, list []linear.Violation) []reports.Drawn {
	list = list[:min(len(list), mostDrawn)]
	held, about := around(history.New(from, how).Events(), spec, list, linear.Options{Strict: o.strict, Skew: o.skew, All: true})
	if len(list) == 0 {
		for key := range about {
			list = []linear.Violation{{Key: key}}
		}
	}
	drawn := make([]reports.Drawn, 0, len(list))
	for _, v := range list {
		d := reports.Drawn{Violation: v, Events: about[lockOf(spec, v.Key)]}
		for _, h := range held {
			if spec == linear.Multi() || h.Key == v.Key {
				d.Held = append(d.Held, h)
			}
		}
		drawn = append(drawn, d)
	}
	return drawn
}

// lockOf returns the key under which events are gathered: key, or "" for [linear.Multi], where one
// operation names several keys and all events count.
func lockOf(spec linear.Spec, key string) string {
	if spec == linear.Multi() {
		return ""
	}
	return key
}

// around returns the events of the locks of the violations, by key, and the holds that the checker
// derives. Without violations it uses the lock of the first event.
func around(events iter.Seq2[linear.Event, error], spec linear.Spec, list []linear.Violation, as linear.Options) (held []linear.Held, about map[string][]linear.Event) {
	about = map[string][]linear.Event{}
	for _, v := range list {
		about[lockOf(spec, v.Key)] = nil
	}
	first := len(list) == 0
	as.Held = func(h linear.Held) {
		if wanted(about, lockOf(spec, h.Key)) {
			held = append(held, h)
		}
	}
	c := linear.New(spec, as)
	for e, err := range events {
		if err != nil {
			break // the error was reported when the history was judged
		}
		if first && e.Phase != linear.Crash {
			first, about[lockOf(spec, e.Key)] = false, nil
		}
		if e.Phase == linear.Crash {
			for key := range about {
				about[key] = append(about[key], e)
			}
		} else if key := lockOf(spec, e.Key); wanted(about, key) {
			about[key] = append(about[key], e)
		}
		_ = c.Add(e) // its error was reported when the history was judged
	}
	c.Result()
	return held, about
}

func wanted(about map[string][]linear.Event, key string) bool {
	_, ok := about[key]
	return ok
}

// writeHTML writes the page of --html, or nothing if the flag is not set.
func (o *checkOptions) writeHTML(list []checked) error {
	if o.html == "" {
		return nil
	}
	var pages []reports.Checked
	for _, c := range list {
		p := reports.Checked{Name: c.File, Verdict: c.Verdict, Spec: c.Spec, Violations: c.drawn,
			Notes: []string{fmt.Sprintf("%s, %d of unknown outcome, on %s", kit.Count(c.Operations, "operation", "operations"), c.Unknown, c.onLocks())}}
		if c.SpecReason != "" {
			p.Notes = append(p.Notes, c.SpecReason)
		}
		p.Notes = append(p.Notes, c.notes(o.skew)...)
		if c.Reason != "" {
			p.Notes = append(p.Notes, c.Reason)
		}
		if n := len(c.Violations) + c.Omitted - mostDrawn; n > 0 {
			p.Notes = append(p.Notes, kit.Count(n, "more violation is", "more violations are")+" not drawn")
		}
		pages = append(pages, p)
	}
	var b bytes.Buffer
	if err := reports.WriteCheckPage(&b, pages); err != nil {
		return err
	}
	return atomicdir.File(o.html, b.Bytes())
}
