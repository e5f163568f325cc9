// Package mapping finds where in a plane a lock is safe: it asks at points of a lattice, and
// then ever closer wherever answers differ. It knows nothing of locks; what an answer is, is
// a word.
package sweep

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
)

// A Point is one of the lattice, counted from 0 along both axes.
type Point struct{ X, Y int }

// A Plan says how close a map is looked at. Its axes have Squares squares at first, each of
// which is halved in both directions up to Halvings times. The zero value is of no use.
type Plan struct {
	Squares  int  // on a side
	Halvings int  // of what is not alike
	Line     bool // there is one axis only
	Seed     uint64
}

// Steps is how many steps of the lattice an axis has.
func (p Plan) Steps() int { return p.Squares << p.Halvings }

// A Square is a part of the map with its lower corner, and as wide and high as Side; on a
// line it has no height.
type Square struct {
	At   Point
	Side int
	// Answer is what its lower corner was answered, and Mixed that another of its points was
	// answered something else, and it is too small to be halved.
	Answer string
	Mixed  bool
}

// A Map is what was found.
type Map struct {
	Plan    Plan
	Answers map[Point]string
	Squares []Square // which cover all of it, from below, and from left to right
	// Loose is how many squares of the first size are alike at all points that were asked, and
	// so were looked at no closer.
	Loose int
}

// Ask answers points, in their order. It is called with those that are asked at a time.
type Ask func(ctx context.Context, points []Point) ([]string, error)

// Draw asks until all squares are alike, or as small as they get. The same answers make the
// same map. It returns an error of ask, and the map so far.
//
// A square is alike if its corners, the points of its smaller neighbours on its sides, and if
// it is of the first size one point at random inside of it are answered alike: what lies
// between those stays unseen.
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

// byPlace orders points from below, and from left to right.
func byPlace(a, b Point) int { return cmp.Or(cmp.Compare(a.Y, b.Y), cmp.Compare(a.X, b.X)) }

func (m *Map) corners(s Square) []Point {
	list := []Point{s.At, {s.At.X + s.Side, s.At.Y}}
	if !m.Plan.Line {
		list = append(list, Point{s.At.X, s.At.Y + s.Side}, Point{s.At.X + s.Side, s.At.Y + s.Side})
	}
	return list
}

// ask asks those that were not asked before.
func (m *Map) ask(ctx context.Context, points []Point, ask Ask) error {
	slices.SortFunc(points, byPlace)
	points = slices.DeleteFunc(slices.Compact(points), func(p Point) bool { _, ok := m.Answers[p]; return ok })
	answers, err := ask(ctx, points)
	if err != nil {
		return err
	}
	if len(answers) != len(points) {
		return fmt.Errorf("mapping: %d answers to %d points", len(answers), len(points))
	}
	for i, at := range points {
		m.Answers[at] = answers[i]
	}
	return nil
}

// sorted returns the points that were asked, from left to right within each row.
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

// mixed reports whether points in a square, its border included, were answered differently.
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

// A Run is a part of a row whose points were answered alike: from the first of them to the
// last, both of which were asked.
type Run struct {
	From, To Point
	Answer   string
}

// Row returns what was answered along a row, from left to right.
func (m *Map) Row(y int) []Run {
	return m.runs(func(at Point) bool { return at.Y == y })
}

// Column returns what was answered along a column, from below.
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
