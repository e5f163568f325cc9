package explore

import (
	"runtime"
	"slices"
	"sync"

	"github.com/lockfault/lockfault/checker"
)

// judge asks the checker what is wrong with those histories that were put together. Positions that stand next to
// each other have most of their paths in common, so each judge has a part of the list that hangs together.
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

// A pathChecker follows paths and judges what they add to a history: what two paths have in common only once, if
// one is followed after the other. The zero value has followed none.
type pathChecker struct {
	judge     *checker.Incremental
	at        []*path          // the path that it follows, from its beginning
	histories []historyBuilder // what was put together behind each move
	last      historyBuilder
	outcomes  []*Outcome // that there were, of nothing but anomalies
}

// showing returns a look that shows these anomalies. There are many positions, and few different ones.
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

// judged returns what a path shows, of whose moves it is known what they did, and whether servers were not judged.
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

// follow goes to the end of a path, from where it leads away from the one that was followed before.
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

// soFar returns how far histories are put together on the path that it follows.
func (f *pathChecker) soFar() historyBuilder {
	if len(f.histories) == 0 {
		return historyBuilder{}
	}
	return f.histories[len(f.histories)-1]
}

// progress puts together what a move tells that follows another, in the same memory each time.
func (w *historyBuilder) addMove(before historyBuilder, t *path) {
	events, held := w.events, w.held
	*w = before
	w.events, w.held, w.short = events[:0], append(held[:0], before.held...), true
	w.add(t.relevant(), t.parts[0].Took)
}
