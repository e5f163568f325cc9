package explore

import (
	"runtime"
	"slices"
	"sync"

	"github.com/lockfault/lockfault/checker"
)

// judge runs the checker on the assembled histories of all nodes without an outcome. Nearby nodes
// share most of their paths, so each judge gets a contiguous part of the list.
func (s *search) judge(list []*searchNode) {
	workers := min(runtime.GOMAXPROCS(0), 1+len(list)/64)
	for len(s.judges) < workers {
		s.judges = append(s.judges, &pathChecker{})
	}
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			for _, q := range list[len(list)*w/workers : len(list)*(w+1)/workers] {
				switch {
				case q.outcome != nil:
				case q.trail.mute():
					q.outcome = s.judges[w].showing(q.shows)
				default:
					found, unjudged := s.judges[w].judged(q.trail, s.meta)
					q.outcome, q.unjudged = s.judges[w].showing(found), unjudged
				}
			}
		})
	}
	wait.Wait()
	if s.bound.judged != nil {
		for _, q := range list {
			s.bound.judged(q, s.meta)
		}
	}
}

// A pathChecker judges the assembled histories of paths. The common beginning of two paths is
// judged only once if the paths are judged in succession. The zero value is ready for use, by one
// goroutine at a time.
type pathChecker struct {
	judge     *checker.Incremental
	at        []*path          // the current path, from its beginning
	histories []historyBuilder // the assembled history after each transition of the path
	last      historyBuilder
	outcomes  []*Outcome // outcomes returned before, with anomalies only
}

// showing returns an outcome with the given anomalies. Outcomes are shared: there are many nodes
// and few distinct outcomes.
func (f *pathChecker) showing(all []checker.Anomaly) *Outcome {
	for _, look := range f.outcomes {
		if slices.Equal(look.Anomalies, all) {
			return look
		}
	}
	look := &Outcome{Anomalies: all}
	f.outcomes = append(f.outcomes, look)
	return look
}

// judged returns the anomalies of a path whose transitions all have known effects, and reports
// whether servers were not judged.
func (f *pathChecker) judged(t *path, meta checker.Meta) (found []checker.Anomaly, unjudged bool) {
	if f.judge == nil {
		f.judge = checker.NewJudge(meta)
	}
	f.follow(t.before)
	place := f.judge.Checkpoint()
	f.last.addMove(f.soFar(), t)
	f.judge.Add(f.last.events...)
	f.judge.Add(checker.Event{Time: f.last.now, Kind: checker.End})
	defer f.judge.Rollback(place)
	return f.judge.Anomalies()
}

// follow moves to the end of a path, from the point where the path leaves the current one.
func (f *pathChecker) follow(t *path) {
	var todo []*path
	for ; t != nil && (t.depth >= len(f.at) || f.at[t.depth] != t); t = t.before {
		todo = append(todo, t)
	}
	common := 0
	if t != nil {
		common = t.depth + 1
	}
	if common < len(f.at) {
		f.judge.Rollback(1 + common)
		f.at, f.histories = f.at[:common], f.histories[:common]
	}
	for i := len(todo) - 1; i >= 0; i-- {
		before := f.soFar()
		f.judge.Checkpoint()
		f.at = append(f.at, todo[i])
		if n := len(f.histories); n < cap(f.histories) {
			f.histories = f.histories[:n+1]
		} else {
			f.histories = append(f.histories, historyBuilder{})
		}
		w := &f.histories[len(f.histories)-1]
		w.addMove(before, todo[i])
		f.judge.Add(w.events...)
	}
}

// soFar returns the history assembled for the current path.
func (f *pathChecker) soFar() historyBuilder {
	if len(f.histories) == 0 {
		return historyBuilder{}
	}
	return f.histories[len(f.histories)-1]
}

// addMove assembles the verdict-relevant events of a transition after the history before. It reuses
// the builder's memory.
func (w *historyBuilder) addMove(before historyBuilder, t *path) {
	events, held := w.events, w.held
	*w = before
	w.events, w.held, w.short = events[:0], append(held[:0], before.held...), true
	w.add(t.relevant(), t.parts[0].Took)
}
