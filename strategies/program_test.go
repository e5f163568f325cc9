package strategies_test

import (
	"strings"
	"testing"

	"github.com/lockfault/lockfault/strategies"
)

// A strategy has a New or a program, and a program has a name.
func TestProgramInRegistry(t *testing.T) {
	program := &strategies.Program{Words: []string{"python3", "x.py"}}
	for name, c := range map[string]struct {
		s    strategies.Strategy
		want string
	}{
		"a program": {strategies.Strategy{Name: "x", Program: program}, ""},
		"both":      {strategies.Strategy{Name: "x", Program: program, New: func(strategies.Env) (strategies.Lock, error) { return nil, nil }}, "a New and a Program"},
		"neither":   {strategies.Strategy{Name: "x"}, "has no New"},
		"no words":  {strategies.Strategy{Name: "x", Program: &strategies.Program{}}, "it names no program"},
	} {
		_, err := strategies.Registry{}.With(c.s)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
