package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/strategies/all"
)

// partial runs a command line of a program with no optional part.
func partial(line string, options ...Option) (status int, stdout, stderr string) {
	var out, side strings.Builder
	status = run(context.Background(), newApp(all.Registry(), kit.Product, options), strings.Fields(line), strings.NewReader(""), &out, &side)
	return status, out.String(), side.String()
}

// TestParts checks which command lines need a part that a program lacks, what they need, and what
// such a program says.
func TestParts(t *testing.T) {
	for _, c := range []struct{ line, need, option string }{
		{"run --world docker", "--world docker", "withdocker"},
		{"run --world sim,docker --scenario -", "--world docker", "withdocker"},
		{"trace fenced contention --world docker", "--world docker", "withdocker"},
		{"explore fenced --world docker", "--world docker", "withdocker"},
		{"soak fenced --world docker", "--world docker", "withdocker"},
		{"watchman", "watchman", "withdocker"},
		{"run --queue nats://127.0.0.1:1", "--queue", "withqueue"},
		{"explore fenced --queue nats://127.0.0.1:1", "--queue", "withqueue"},
		{"worker --queue nats://127.0.0.1:1", "--queue", "withqueue"},
		{"queue --dir x", "the command queue", "withqueue"},
		{"run --service redis,etcd --world process", "--service etcd", ""},
		{"bench --service etcd", "--service etcd", ""},
		{"trace etcd-mutex contention", "--strategy etcd-mutex", ""},
		{"run --strategy fenced,etcd-*", "--strategy etcd-*", ""},
		{"list services", "list services", ""},
		{"play fenced contention", "the command play", ""},
	} {
		need := ""
		full := Full{Services: []string{"etcd"}, Strategies: []string{"etcd-mutex"}, Replace: func(_ context.Context, what string, _ io.Writer) (int, error) {
			need = what
			return 42, nil
		}}
		if status, stdout, stderr := partial(c.line, WithFull(full)); status != 42 || need != c.need || stdout+stderr != "" {
			t.Errorf("%s: status %d, needs %q, want 42 and %q\n%s%s", c.line, status, need, c.need, stdout, stderr)
		}
		if c.option == "" { // a program that knows no other one does not know its names
			continue
		}
		want := fmt.Sprintf("lockfault: %s: this program was built without this part: pass %s.Option() to lockfault.Main\n", c.need, c.option)
		if status, stdout, stderr := partial(c.line); status != ExitUsage || stdout+stderr != want {
			t.Errorf("%s: status %d, want %d\n%s%swant\n%s", c.line, status, ExitUsage, stdout, stderr, want)
		}
	}
}

// TestPartsNotNeeded checks that nothing else makes a program hand over.
func TestPartsNotNeeded(t *testing.T) {
	full := Full{Services: []string{"etcd"}, Strategies: []string{"etcd-mutex"}, Replace: func(context.Context, string, io.Writer) (int, error) {
		t.Error("the program hands over")
		return 0, nil
	}}
	for line, want := range map[string]int{
		"list scenarios":                 ExitOK,
		"list strategies":                ExitOK,
		"version":                        ExitOK,
		"help run":                       ExitOK,
		"run --strategy fencde":          ExitUsage,
		"run --service kafka":            ExitUsage,
		"run --world dokcer":             ExitUsage,
		"show getset-race":               ExitOK,
		"explore fenced --strategy none": ExitUsage,
	} {
		if status, _, stderr := partial(line, WithFull(full)); status != want {
			t.Errorf("%s: status %d, want %d\n%s", line, status, want, stderr)
		}
	}
}

// TestFullFails checks the exit statuses of a program that cannot hand over, and that --quiet hides
// messages about the wait, but not the error.
func TestFullFails(t *testing.T) {
	for _, c := range []struct {
		line   string
		err    error
		status int
		stderr string
	}{
		{"run --world docker", errors.New("no go"), ExitUndecided, "building\nlockfault: no go\n"},
		{"run --quiet --world docker", errors.New("no go"), ExitUndecided, "lockfault: no go\n"},
		{"run --quiet --world docker", context.Canceled, ExitInterrupted, "lockfault: interrupted\n"},
	} {
		full := Full{Replace: func(_ context.Context, _ string, stderr io.Writer) (int, error) {
			fmt.Fprintln(stderr, "building")
			return 0, c.err
		}}
		if status, stdout, stderr := partial(c.line, WithFull(full)); status != c.status || stdout != "" || stderr != c.stderr {
			t.Errorf("%s: status %d, want %d; stderr %q, want %q", c.line, status, c.status, stderr, c.stderr)
		}
	}
}
