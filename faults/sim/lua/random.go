package lua

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// Random is the state of a server's random numbers for scripts. As in Redis it is a generator like
// lrand48(3), so every server draws the same sequence. The zero value is at the start of the
// sequence. A Random is not safe for concurrent use.
type Random struct {
	state uint64 // 48 bits
	begun bool
}

func (r *Random) seed(n int32) { *r = Random{state: uint64(uint32(n))<<16 | 0x330e, begun: true} }

// draw returns the next number, from 0 up to but not including 1.
func (r *Random) draw() float64 {
	if !r.begun {
		*r = Random{state: 0x1234abcd330e, begun: true}
	}
	r.state = (r.state*0x5deece66d + 0xb) & (1<<48 - 1)
	return float64(r.state>>17%math.MaxInt32) / math.MaxInt32
}

func (m *Machine) random(l *lua.LState) int {
	drawn := m.call.Random.draw()
	low, high := 1, 0
	switch l.GetTop() {
	case 0:
		l.Push(lua.LNumber(drawn))
		return 1
	case 1:
		high = l.CheckInt(1)
	case 2:
		low, high = l.CheckInt(1), l.CheckInt(2)
	default:
		l.RaiseError("wrong number of arguments")
	}
	if low > high {
		l.ArgError(l.GetTop(), "interval is empty")
	}
	l.Push(lua.LNumber(math.Floor(drawn*float64(high-low+1)) + float64(low)))
	return 1
}

func (m *Machine) randomSeed(l *lua.LState) int {
	m.call.Random.seed(int32(l.CheckInt(1)))
	return 0
}
