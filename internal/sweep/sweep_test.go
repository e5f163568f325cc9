package sweep_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockfault/lockfault/internal/sweep"
)

// asks returns an Ask that evaluates points with a function, and counts them.
func asks(of func(sweep.Point) string, asked *int) sweep.Ask {
	seen := map[sweep.Point]bool{}
	return func(_ context.Context, points []sweep.Point) ([]string, error) {
		var list []string
		for _, at := range points {
			if seen[at] {
				return nil, errors.New("asked twice")
			}
			seen[at] = true
			list = append(list, of(at))
		}
		*asked += len(points)
		return list, nil
	}
}

// TestBoundary checks that a boundary is found as exactly as with a full grid, with a fraction of
// the points.
func TestBoundary(t *testing.T) {
	plan := sweep.Plan{Squares: 16, Halvings: 3}
	of := func(at sweep.Point) string {
		if at.X*at.X+at.Y*at.Y < 90*90 {
			return "held"
		}
		return "broken"
	}
	asked := 0
	m, err := sweep.Draw(t.Context(), plan, asks(of, &asked))
	if err != nil {
		t.Fatal(err)
	}
	if full := (plan.Steps() + 1) * (plan.Steps() + 1); asked*8 > full {
		t.Errorf("%d of %d points were asked", asked, full)
	}
	for y := 0; y <= plan.Steps(); y += 8 {
		runs := m.Row(y)
		if len(runs) == 2 && runs[1].From.X-runs[0].To.X > 1 {
			t.Errorf("at %d it is held up to %d, and broken from %d", y, runs[0].To.X, runs[1].From.X)
		}
	}
}

// TestDraw checks, for arbitrary results, that the squares cover the map exactly once and match the
// results of their points, that an island as large as a square of the first size is found, and that
// the same results give the same map.
func TestDraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := sweep.Plan{Squares: rapid.IntRange(1, 6).Draw(t, "squares"), Halvings: rapid.IntRange(0, 3).Draw(t, "halvings"), Line: rapid.Bool().Draw(t, "line"), Seed: rapid.Uint64().Draw(t, "seed")}
		steps, first := plan.Steps(), 1<<plan.Halvings
		island := sweep.Point{X: rapid.IntRange(0, steps-first).Draw(t, "x"), Y: rapid.IntRange(0, steps-first).Draw(t, "y")}
		if plan.Line {
			island.Y = 0
		}
		of := func(at sweep.Point) string {
			if at.X >= island.X && at.X <= island.X+first && at.Y >= island.Y && at.Y <= island.Y+first {
				return "broken"
			}
			return "held"
		}
		asked := 0
		m, err := sweep.Draw(t.Context(), plan, asks(of, &asked))
		if err != nil {
			t.Fatal(err)
		}
		covered := map[sweep.Point]int{}
		found := false
		for at, answer := range m.Answers {
			found = found || answer == "broken"
			if of(at) != answer {
				t.Fatalf("%v is %s", at, answer)
			}
		}
		if !found {
			t.Errorf("the island at %v was not found", island)
		}
		for _, s := range m.Squares {
			for x := range s.Side {
				for y := range s.Side {
					covered[sweep.Point{X: s.At.X + x, Y: s.At.Y + y}]++
					if plan.Line {
						break
					}
				}
			}
			same := true
			for at, answer := range m.Answers {
				inside := at.X >= s.At.X && at.X <= s.At.X+s.Side && at.Y >= s.At.Y && (at.Y <= s.At.Y+s.Side && !plan.Line || at.Y == 0)
				same = same && (!inside || answer == s.Answer)
			}
			if same == s.Mixed || s.Mixed && s.Side > 1 {
				t.Errorf("%+v: alike %v", s, same)
			}
		}
		want := steps * steps
		if plan.Line {
			want = steps
		}
		if len(covered) != want {
			t.Errorf("%d of %d parts are covered", len(covered), want)
		}
		for at, n := range covered {
			if n != 1 {
				t.Errorf("%v is covered %d times", at, n)
			}
		}
	})
}

// TestInside checks that the random point finds a region that fills the inside of a single square.
// The map reports that all other squares were not refined.
func TestInside(t *testing.T) {
	for _, line := range []bool{false, true} {
		plan := sweep.Plan{Squares: 4, Halvings: 3, Line: line, Seed: 7}
		of := func(at sweep.Point) string {
			if at.X > 8 && at.X < 16 && (line || at.Y > 16 && at.Y < 24) {
				return "broken"
			}
			return "held"
		}
		asked := 0
		m, err := sweep.Draw(t.Context(), plan, asks(of, &asked))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, answer := range m.Answers {
			if answer == "broken" {
				found++
			}
		}
		all := 16
		if line {
			all = 4
		}
		if found < 2 || m.Loose != all-1 {
			t.Errorf("line %v: %d points of the island were asked, and %d of %d squares were looked at no closer", line, found, m.Loose, all)
		}
	}
	asked := 0
	m, err := sweep.Draw(t.Context(), sweep.Plan{Squares: 3}, asks(func(sweep.Point) string { return "held" }, &asked))
	if err != nil || m.Loose != 9 || asked != 16 {
		t.Errorf("without halvings: %d loose, %d asked, %v", m.Loose, asked, err)
	}
	m, err = sweep.Draw(t.Context(), sweep.Plan{Squares: 3}, asks(func(at sweep.Point) string {
		if at == (sweep.Point{}) {
			return "broken"
		}
		return "held"
	}, &asked))
	if err != nil || m.Loose != 8 {
		t.Errorf("without halvings, with a corner that is broken: %d loose, %v", m.Loose, err)
	}
}

// TestAskFails checks that an error of Ask ends the sweep.
func TestAskFails(t *testing.T) {
	none := errors.New("none")
	_, err := sweep.Draw(t.Context(), sweep.Plan{Squares: 2}, func(context.Context, []sweep.Point) ([]string, error) { return nil, none })
	if !errors.Is(err, none) {
		t.Error(err)
	}
}
