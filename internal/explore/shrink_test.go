package explore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/scenarios"
)

// shrunk shrinks a scenario of the library.
func shrunk(t *testing.T, strategy, scenario string, a checker.Anomaly) (ShrinkResult, string) {
	t.Helper()
	player, _ := staged(t, strategy, 0, Bound{})
	script, err := scenarios.Lookup(scenario)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Shrink(t.Context(), player, scenario, script.Format(), a)
	if err != nil || !got.Minimal || got.Anomaly != a || !slices.Contains(got.Anomalies, a) {
		t.Fatalf("%s, %s: %v, %+v", strategy, scenario, err, got)
	}
	script, err = scenarios.Parse("small.txt", []byte(got.Script))
	if err != nil || string(script.Format()) != got.Script {
		t.Fatalf("%v:\n%s", err, got.Script)
	}
	// The result shows the anomaly, and no step of it can be removed.
	d, err := draftOfScript("small.txt", []byte(got.Script))
	if err != nil || len(d.units) != got.Units {
		t.Fatalf("%v; %d steps, want %d", err, len(d.units), got.Units)
	}
	s := newShrinker(player, a, d)
	original, _ := player.PlayAlone(t.Context(), Trial{Script: string(mustFormat(t, scenario))})
	s.limits(&original)
	for out, unit := range d.units {
		d := d.without(func(i int) bool { return i == out })
		text, err := d.text("", nil)
		if err != nil {
			continue
		}
		if look, _ := player.PlayAlone(t.Context(), Trial{Script: text}); s.does(d, &look) {
			t.Errorf("%s shows without %q:\n%s", a, unit, text)
		}
	}
	return got, steps(got.Script)
}

func mustFormat(t *testing.T, scenario string) []byte {
	t.Helper()
	script, err := scenarios.Lookup(scenario)
	if err != nil {
		t.Fatal(err)
	}
	return script.Format()
}

// steps returns the lines of a script between its settings and its expect line, separated by
// commas.
func steps(script string) string {
	parts := strings.Split(strings.TrimSpace(script), "\n\n")
	return strings.ReplaceAll(parts[len(parts)-2], "\n", ", ")
}

// TestShrinks checks that units that are not needed are removed, and needed ones kept.
func TestShrinks(t *testing.T) {
	racetest.Skip(t)
	for _, c := range []struct {
		strategy, scenario string
		anomaly            checker.Anomaly
		want               string
	}{
		{"set-nx-px-del", "release-twice", checker.ForeignRelease, "A acquire, A release, B acquire within 0.2ttl, A release"},
		{"set-nx-px-del", "gc-pause-holding", checker.Overlap, "A acquire, B acquire"},
		{"set-nx-px-lua", "flush", checker.LostLock, "A acquire, n1 flush"},
		{"fenced", "reentrant-acquire", checker.SelfDeadlock, "A acquire, A acquire within 0.5ttl"},
		{"setnx-expire", "crash-mid-acquire", checker.StuckLock, ""},
	} {
		got, is := shrunk(t, c.strategy, c.scenario, c.anomaly)
		if c.want != "" && is != c.want {
			t.Errorf("%s, %s: shrunk to %s, want %s", c.strategy, c.scenario, is, c.want)
		}
		again, _ := shrunk(t, c.strategy, c.scenario, c.anomaly)
		if again.Script != got.Script || again.Plays != got.Plays {
			t.Errorf("another time it is\n%s\nand not\n%s", again.Script, got.Script)
		}
		t.Logf("%s, %s: %d of %d steps, %d plays: %s", c.strategy, c.scenario, got.Units, got.From, got.Plays, is)
	}
}

// A pretender does not play scripts, but defines what each shows.
type pretender struct {
	shows  func(*scenarios.Script) bool
	plays  int
	cancel func() // called after some plays
	print  func(plays int) string
}

func (p *pretender) Play(ctx context.Context, trials []Trial) ([]Outcome, error) {
	looks := make([]Outcome, len(trials))
	for i, trial := range trials {
		if p.plays++; p.plays == 10 && p.cancel != nil {
			p.cancel()
		}
		script, err := scenarios.Parse("found.txt", []byte(trial.Script))
		if err != nil {
			return nil, err
		}
		looks[i].Meta = checker.Meta{TTL: script.TTL, Strategy: "none"}
		looks[i].View.Clients = []harness.ClientView{}
		if p.print != nil {
			looks[i].Print = p.print(p.plays)
		}
		if p.shows(script) {
			looks[i].Anomalies = []checker.Anomaly{checker.Overlap}
		}
	}
	return looks, ctx.Err()
}

func (p *pretender) PlayAlone(ctx context.Context, trial Trial) (Outcome, error) {
	looks, err := p.Play(ctx, []Trial{trial})
	if err != nil {
		return Outcome{}, err
	}
	return looks[0], nil
}

const long = `# A script with everything.
clients M B C
thread 7 M C

M B C acquire within 2ttl  # at once
hold M before SET or none
begin M acquire
await M held within 1ttl
M pause
wait 40s
M resume
pass M
measure it
C rounds 9 work 0.5ttl
n1 clock -1.5ttl
stop it

expect none
`

// lines counts the steps of a script that contain a word.
func lines(s *scenarios.Script, word string) (n int) {
	for _, step := range s.Steps {
		if slices.Contains(strings.Fields(step.Do.String()), word) {
			n++
		}
	}
	return n
}

// TestShrinksToWhatIsNeeded checks that exactly the steps that an anomaly needs are left.
func TestShrinksToWhatIsNeeded(t *testing.T) {
	racetest.Skip(t)
	waits := func(s *scenarios.Script, least time.Duration) bool {
		for _, step := range s.Steps {
			if wait, ok := step.Do.(scenarios.Wait); ok && wait.For.Of(s.TTL) >= least {
				return true
			}
		}
		return false
	}
	for want, shows := range map[string]func(*scenarios.Script) bool{
		"A acquire within 2ttl":                              func(s *scenarios.Script) bool { return lines(s, "acquire") > 0 },
		"A B acquire within 2ttl":                            func(s *scenarios.Script) bool { return len(s.Clients) > 1 && lines(s, "acquire") > 0 },
		"A pause, A resume":                                  func(s *scenarios.Script) bool { return lines(s, "resume") > 0 },
		"measure it, stop it":                                func(s *scenarios.Script) bool { return lines(s, "measure") > 0 },
		"hold A before SET or none, begin A acquire, pass A": func(s *scenarios.Script) bool { return lines(s, "pass") > 0 && lines(s, "begin") > 0 },
		"wait 20.31s":                                        func(s *scenarios.Script) bool { return waits(s, 20*time.Second+100*time.Millisecond) },
		"n1 clock -0.007ttl":                                 func(s *scenarios.Script) bool { return lines(s, "n1") > 0 },
		"A rounds 4 work 0.007ttl": func(s *scenarios.Script) bool {
			for _, step := range s.Steps {
				if r, ok := step.Do.(scenarios.Rounds); ok && r.Times > 3 {
					return true
				}
			}
			return false
		},
	} {
		got, err := Shrink(t.Context(), &pretender{shows: shows}, "long.txt", []byte(long), "")
		if err != nil {
			t.Fatal(err)
		}
		if steps(got.Script) != want || !got.Minimal {
			t.Errorf("%v, %d plays: shrunk to %s, want %s", err, got.Plays, steps(got.Script), want)
		}
		if !strings.HasPrefix(got.Script, "# overlap of none, shrunk from long.txt.\n") {
			t.Errorf("it begins with %.50q", got.Script)
		}
	}
}

// TestRenames checks that the first client is renamed to A, in the header too, where the order has
// no meaning.
func TestRenames(t *testing.T) {
	const mine = "clients Z A B\nthread 7 A B\n\nhold B A before SET or none\nB acquire\nA acquire\n\nexpect none\n"
	d, err := draftOfScript("mine.txt", []byte(mine))
	if err != nil {
		t.Fatal(err)
	}
	text, err := d.withoutClient("Z").renamed().text("", nil)
	const want = "clients A B\nthread 7 A B\n\nhold A B before SET or none\nA acquire\nB acquire\n\nexpect none\n"
	if err != nil || text != want {
		t.Errorf("%v: it is\n%s", err, text)
	}
	if got, want := d.named("hold B A before A"), []string{"B", "A"}; !slices.Equal(got, want) {
		t.Errorf("named are %v, want %v", got, want)
	}
}

// TestShrinkingIsBounded checks that shrinking ends, whatever the lock shows, and reports if not
// everything was tried.
func TestShrinkingIsBounded(t *testing.T) {
	d, err := draftOfScript("long.txt", []byte(long))
	if err != nil {
		t.Fatal(err)
	}
	p := &pretender{shows: func(s *scenarios.Script) bool { return len(s.Steps) > 9 }}
	s := newShrinker(p, checker.Overlap, d)
	s.most = 9
	got, err := s.run(t.Context(), &Outcome{Anomalies: []checker.Anomaly{checker.Overlap}}, "")
	if err != nil || got.Minimal || got.Plays != 9 || p.plays != 9+2 || got.Units < 9 {
		t.Errorf("%v; minimal %t after %d plays, %d in all; %d steps", err, got.Minimal, got.Plays, p.plays, got.Units)
	}
}

// TestShrinkingFails checks that a script that cannot be shrunk is reported, and that an
// interrupted result is returned.
func TestShrinkingFails(t *testing.T) {
	yes, no := func(s *scenarios.Script) bool { return lines(s, "acquire") > 0 }, func(*scenarios.Script) bool { return false }
	var absent *NotShownError
	if _, err := Shrink(t.Context(), &pretender{shows: no}, "x", []byte(long), ""); !errors.As(err, &absent) {
		t.Error(err)
	}
	if _, err := Shrink(t.Context(), &pretender{shows: yes}, "x", []byte(long), checker.Ghost); !errors.As(err, &absent) || len(absent.Shows) != 1 {
		t.Error(err)
	}
	var syntax *scenarios.SyntaxError
	if _, err := Shrink(t.Context(), &pretender{shows: yes}, "x", []byte("clients"), ""); !errors.As(err, &syntax) {
		t.Error(err)
	}
	// From the first two plays on, and at the last play only.
	for _, from := range []int{2, 15} {
		var unsound *NotReproducibleError
		prints := func(plays int) string {
			if plays < from {
				return ""
			}
			return strings.Repeat("x", plays)
		}
		if _, err := Shrink(t.Context(), &pretender{shows: yes, print: prints}, "x", []byte(long), ""); !errors.As(err, &unsound) || unsound.Script == "" {
			t.Errorf("another each time from play %d on: %v", from, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	got, err := Shrink(ctx, &pretender{shows: func(s *scenarios.Script) bool { return len(s.Steps) > 4 }, cancel: cancel}, "x", []byte(long), "")
	if !errors.Is(err, context.Canceled) || got.Minimal || got.Script == "" || got.Units >= got.From {
		t.Errorf("%v, minimal %t, %d of %d steps", err, got.Minimal, got.Units, got.From)
	}
}
