package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/strategies"
)

func TestProgram(t *testing.T) {
	for _, c := range []struct{ typed, want string }{
		{"mylock", "mylock"},
		{"./bin/mylock", "./bin/mylock"},
		{"/tmp/go-build1/b001/exe/mylock", "mylock"},
		{"/opt/my lock", kit.Product},
		{"./my lock", kit.Product},
		{"", kit.Product},
	} {
		if got := program([]string{c.typed, "run"}); got != c.want {
			t.Errorf("%q goes by %q, want %q", c.typed, got, c.want)
		}
	}
	if got := program(nil); got != kit.Product {
		t.Errorf("without arguments it goes by %q", got)
	}
}

// What a user's own program says to type is to type for that.
func TestHintsNameTheProgram(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"run", "--help"}, {"quux"}, {"trace", "--qqq"}, {"list"}, {"trace", "gc-pause-holding", "mine"}, {"run", "--expect", "none.expect"}} {
		registry, err := strategies.Registry{}.With(strategies.Strategy{Name: "mine", Summary: "s", Source: "s", Tags: []string{strategies.TagSingle}, New: func(strategies.Env) (strategies.Lock, error) { return nil, nil }})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		run(context.Background(), newApp(registry, "./mylock", nil), args, strings.NewReader(""), &out, &out)
		text := out.String()
		if !strings.Contains(text, "./mylock") {
			t.Errorf("%q says\n%s", args, text)
		}
		for _, command := range []string{"run", "trace", "list", "help"} {
			if strings.Contains(text, "lockfault "+command+" ") {
				t.Errorf("%q speaks of another program:\n%s", args, text)
			}
		}
	}
}
