// Package sweep finds the regions of a plane in which a lock is safe: it evaluates points of a
// lattice, and refines the lattice wherever results differ. A [Plan] and an [Ask] function come in,
// a [Map] goes out. Results are words without meaning to the package. A Map does not prove that the
// interior of a square is uniform.
package sweep

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
)

// A Point is a point of the lattice, counted from 0 along both axes.
type Point struct{ X, Y int }

// A Plan sets the resolution of a map. Each axis has Squares squares at first; each square is
// halved in both directions up to Halvings times. The zero value is not valid.
type Plan struct {
	Squares  int  // on each side
	Halvings int  // of squares with different results
	Line     bool // the map has one axis only
	Seed     uint64
}

// Steps returns the number of steps of the lattice along an axis.
func (p Plan) Steps() int { return p.Squares << p.Halvings }

// A Square is a part of the map, given by its lower left corner and its side. On a line a square
// has no height.
type Square struct {
	At   Point
	Side int
	// Answer is the result at the lower left corner. Mixed reports that another point of the square
	// has a different result, and that the square is too small to be halved.
	Answer string
	Mixed  bool
}

// A Map holds the results of a sweep.
type Map struct {
	Plan    Plan
	Answers map[Point]string
	Squares []Square // cover the whole map, from bottom to top and from left to right
	// Loose is the number of squares of the first size whose evaluated points all have the same
	// result, so that they were not refined.
	Loose int
}

// Ask returns the results of points, in the order of points.
type Ask func(ctx context.Context, points []Point) ([]string, error)

// Draw evaluates points until every square is uniform or has the smallest size. The same results
// give the same map. If ask returns an error, Draw returns that error and the map so far.
//
// A square is uniform if its corners, the points of its smaller neighbours on its sides, and, for a
// square of the first size, one random point inside have the same result. A deviation between these
// points is not detected.
func Draw(ctx context.Context, p Plan, ask Ask) (*Map, error) {
	m := &Map{Plan: p, Answers: map[Point]string{}}
	first := 1 << p.Halvings
	random := rand.New(rand.NewPCG(p.Seed, 0x6d6170))
	var points []Point
	for y := 0; y < p.Squares; y++ {
		for x := 0; x < p.Squares; x++ {
			s := Square{At: Point{x * first, y * first}, Side: first}
			m.Squares = append(m.Squares, s)
			points = append(points, m.corners(s)...)
			if first > 1 {
				inside := Point{s.At.X + 1 + random.IntN(first-1), s.At.Y}
				if !p.Line {
					inside.Y += 1 + random.IntN(first-1)
				}
				points = append(points, inside)
			}
		}
		if p.Line {
			break
		}
	}
	for {
		if err := m.ask(ctx, points, ask); err != nil {
			return m, err
		}
		points = points[:0]
		all := m.sorted()
		var squares []Square
		for _, s := range m.Squares {
			mixed := m.mixed(s, all)
			if !mixed || s.Side == 1 {
				s.Answer, s.Mixed = m.Answers[s.At], mixed
				squares = append(squares, s)
				continue
			}
			half := s.Side / 2
			for i := range 4 {
				part := Square{At: Point{s.At.X + i%2*half, s.At.Y + i/2*half}, Side: half}
				if p.Line && i > 1 {
					break
				}
				squares = append(squares, part)
				points = append(points, m.corners(part)...)
			}
		}
		m.Squares = squares
		if len(points) == 0 {
			break
		}
	}
	slices.SortFunc(m.Squares, func(a, b Square) int { return byPlace(a.At, b.At) })
	for _, s := range m.Squares {
		if s.Side == first && !s.Mixed {
			m.Loose++
		}
	}
	return m, nil
}

// byPlace orders points from bottom to top, and from left to right.
func byPlace(a, b Point) int { return cmp.Or(cmp.Compare(a.Y, b.Y), cmp.Compare(a.X, b.X)) }

func (m *Map) corners(s Square) []Point {
	list := []Point{s.At, {s.At.X + s.Side, s.At.Y}}
	if !m.Plan.Line {
		list = append(list, Point{s.At.X, s.At.Y + s.Side}, Point{s.At.X + s.Side, s.At.Y + s.Side})
	}
	return list
}

// ask evaluates the points that were not evaluated before.
func (m *Map) ask(ctx context.Context, points []Point, ask Ask) error {
	slices.SortFunc(points, byPlace)
	points = slices.DeleteFunc(slices.Compact(points), func(p Point) bool { _, ok := m.Answers[p]; return ok })
	answers, err := ask(ctx, points)
	if err != nil {
		return err
	}
	if len(answers) != len(points) {
		return fmt.Errorf("sweep: %d answers to %d points", len(answers), len(points))
	}
	for i, at := range points {
		m.Answers[at] = answers[i]
	}
	return nil
}

// sorted returns the x coordinates of the evaluated points by y coordinate, in ascending order.
func (m *Map) sorted() map[int][]int {
	rows := map[int][]int{}
	for at := range m.Answers {
		rows[at.Y] = append(rows[at.Y], at.X)
	}
	for _, row := range rows {
		slices.Sort(row)
	}
	return rows
}

// mixed reports whether points in a square, including its border, have different results.
func (m *Map) mixed(s Square, rows map[int][]int) bool {
	height := s.Side
	if m.Plan.Line {
		height = 0
	}
	answer := m.Answers[s.At]
	for y := s.At.Y; y <= s.At.Y+height; y++ {
		row := rows[y]
		i, _ := slices.BinarySearch(row, s.At.X)
		for ; i < len(row) && row[i] <= s.At.X+s.Side; i++ {
			if m.Answers[Point{row[i], y}] != answer {
				return true
			}
		}
	}
	return false
}

// A Run is a part of a row or column whose evaluated points have the same result. Both ends were
// evaluated.
type Run struct {
	From, To Point
	Answer   string
}

// Row returns the runs of a row, from left to right.
func (m *Map) Row(y int) []Run {
	return m.runs(func(at Point) bool { return at.Y == y })
}

// Column returns the runs of a column, from bottom to top.
func (m *Map) Column(x int) []Run {
	return m.runs(func(at Point) bool { return at.X == x })
}

func (m *Map) runs(of func(Point) bool) (list []Run) {
	var points []Point
	for at := range m.Answers {
		if of(at) {
			points = append(points, at)
		}
	}
	slices.SortFunc(points, byPlace)
	for _, at := range points {
		answer := m.Answers[at]
		if n := len(list); n > 0 && list[n-1].Answer == answer {
			list[n-1].To = at
			continue
		}
		list = append(list, Run{at, at, answer})
	}
	return list
}
