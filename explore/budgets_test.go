package explore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// What each budget of its own is good for, and what a sound lock shows of it.
func TestFindsWhatIsKnownByBudget(t *testing.T) {
	for _, c := range []struct {
		strategy string
		budget   Fault
		want     string
	}{
		// A lease runs out while its holder is stopped, be it one that is renewed.
		{"set-nx-px-lua", Pause, "overlap stale-write"},
		{"redisson", Pause, "overlap stale-write"},
		{"getset-timestamp", Pause, "foreign-release ghost overlap stale-write unreleasable"},
		// A request that never arrives leaves a key without a lease.
		{"setnx-expire", LoseRequest, "stuck-lock"},
		{"set-nx-px-lua", LoseRequest, ""},
		{"fenced", LoseRequest, ""},
		// A renewal that can't get through.
		{"redisson", Partition, "overlap stale-write"},
		{"set-nx-px-lua", Partition, "overlap stale-write"},
		// Who comes back finds a key that nobody will ever remove.
		{"setnx-expire", ClientRestart, "stuck-lock"},
		{"set-nx-px-lua", ClientRestart, ""},
		{"fenced", ClientRestart, ""},
	} {
		r := found(t, c.strategy, Bound{Clients: 2, Rounds: 1, Budget: map[Fault]int{c.budget: 1}})
		var got []string
		for _, a := range slices.Sorted(maps.Keys(anomalies(r))) {
			got = append(got, string(a))
		}
		if strings.Join(got, " ") != c.want || !r.Exhausted {
			t.Errorf("%s --%s 1: found %v, exhausted %t (%s, %v), want %q", c.strategy, c.budget, got, r.Exhausted, r.Cut, r.Failures, c.want)
		}
	}
}

// A client that comes back has a round more, and who is stopped or cut off is so until a move
// ends that.
func TestMisfortunesEnd(t *testing.T) {
	fenced, _ := strategies.Builtin().Lookup("fenced")
	for budget, c := range map[Fault]struct{ begins, ends string }{
		Pause:         {"A pause\nwait 1.1ttl\n", "A resume\n"},
		Partition:     {"partition A\nwait 1.1ttl\n", "heal A\n"},
		LoseRequest:   {"partition A\npass A once\nheal A\n", ""},
		ClientRestart: {"A crash\nA restart\n", "begin A try\n"},
	} {
		b := Bound{Clients: 1, Rounds: 1, Budget: map[Fault]int{budget: 1}, Nodes: 1, TTL: scenarios.Defaults().TTL}
		player := &reader{stage: stage{t: t, strategy: fenced}}
		r, err := Search(t.Context(), b, player, nil)
		if err != nil || !r.Exhausted {
			t.Fatal(budget, err, r.Cut, r.Failures)
		}
		befell, ended := 0, 0
		for _, script := range player.scripts {
			_, after, ok := strings.Cut(script, c.begins)
			if !ok {
				continue
			}
			befell++
			if strings.Contains(after, c.ends) {
				ended++
			}
			if strings.Contains(after, c.begins) {
				t.Errorf("--%s 1: it befalls A twice:\n%s", budget, script)
			}
			if strings.Contains(script, "acquire within") && !strings.Contains(after, c.ends) {
				t.Errorf("--%s 1: all are done, and it did not end:\n%s", budget, script)
			}
		}
		if befell == 0 || ended == 0 {
			t.Errorf("--%s 1: %d scripts have %q, %d go on with %q", budget, befell, c.begins, ended, c.ends)
		}
	}
}

// reader keeps the scripts.
type reader struct {
	stage
	scripts []string
}

func (r *reader) Play(ctx context.Context, scripts []string) ([]Look, error) {
	r.scripts = append(r.scripts, scripts...)
	return r.stage.Play(ctx, scripts)
}

// The faults are told apart by name, and each says what it does.
func TestEveryFaultIsTold(t *testing.T) {
	said := map[string]Fault{}
	for _, f := range Faults() {
		text := f.About()
		if other, ok := said[text]; ok || text == "" {
			t.Errorf("%s and %s say %q", f, other, text)
		}
		said[text] = f
	}
	if len(said) != len(Faults()) {
		t.Error(fmt.Sprint(Faults()))
	}
}
