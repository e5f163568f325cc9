package linear

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	mutate = flag.Bool("mutate", false, "plant bugs into a copy of the checker, and see that its tests catch each")
	some   = flag.Int("mutants", 0, "with -mutate: plant only so many, drawn; 0 plants all")
	draw   = flag.Uint64("draw", rand.Uint64N(1e9), "the seed of those that are drawn")
)

// mutants are bugs: in a file, a text that is there once becomes another.
var mutants = []struct{ name, file, from, to string }{
	{"an owner's nested holds are not limited", "rules.go", "if o.lo >= c.limit {", "if false {"},
	{"unknown acquires are dropped", "rules.go", "\tcase ReturnUnknown:\n\t\t\to.unsure++\n", "\tcase ReturnUnknown:\n"},
	{"unknown acquires count for ever", "rules.go", "\to.unsure--\n\tc.forget(o)", "\tc.forget(o)"},
	{"owners are ignored at release", "rules.go", "\tc.violate(Violation{Rule: NotHeld", "\treturn\n\tc.violate(Violation{Rule: NotHeld"},
	{"a hold ends at its release's return", "rules.go", "\t\t\to.lo--\n\t\t\tif o.lo == 0 {", "\t\t\tif o.lo == 0 {"},
	{"an unknown release does nothing", "rules.go", "\t\to.credit, o.retro = false, false\n\t\tc.confirm(o)\n", "\t\to.lo = o.loBefore\n\t\tc.confirm(o)\n"},
	{"a failed release frees", "rules.go", "\t\t\to.lo, o.hi = o.loBefore, max(o.hi, o.loBefore)\n\t\t\tc.resume(o)\n", ""},
	{"a failed release proves no overlap", "rules.go", "h.credit, h.retro = !c.late(h), h.loBefore", "h.credit, h.retro = !c.late(h), false && h.loBefore"},
	{"a release under way gives no credit", "rules.go", "h.credit, h.retro = !c.late(h), h.loBefore", "h.credit, h.retro = false, h.loBefore"},
	{"a lease includes its end", "rules.go", "now < o.until\n}", "now <= o.until\n}"},
	{"leases never end", "rules.go", "return o.lo > 0 && now < o.until", "return o.lo > 0"},
	{"a known lease is only believed", "rules.go", "return c.spec.expiry == Known", "return false && c.spec.expiry == Known"},
	{"an extend prolongs nothing", "rules.go", "\t\tmust := o.must(c.now)\n\t\to.until, o.loose, o.lo, o.hi = c.spec.lease(e),", "\t\tmust := o.must(c.now)\n\t\to.until, o.loose, o.lo, o.hi = o.until,"},
	{"a crash keeps the lock", "rules.go", "o.op, o.credit, o.retro = 0, false, false\n\t\tc.drop(o)", "o.op, o.credit, o.retro = 0, false, false"},
	{"a crash loses the acquire under way", "rules.go", "\t\tif o.op == Acquire || o.op == TryAcquire {\n\t\t\to.unsure++", "\t\tif false {\n\t\t\to.unsure++"},
	{"an instant in the past is not looked for", "rules.go", "if s.free > o.call.seq {", "if false {"},
	{"an instant before the call will do", "rules.go", "if s.free > o.call.seq {", "if s.free > 0 {"},
	{"unknown releases outlive the next acquire", "rules.go", "o.hi = c.limit - 1", "o.hi = c.limit"},
	{"only the first key of several counts", "checker.go", "o.slots = append(o.slots, c.slot(key))\n", "o.slots = append(o.slots, c.slot(key))\n\t\t\tbreak\n"},
	{"other keys of a hold stay taken", "rules.go", "\t\tif other != rival.slot {\n", "\t\tif false {\n"},
	{"busy is always explained", "trylock.go", "if call > s.busy.ret {", "if false {"},
	{"busy is explained by a hold that evidence puts later", "rules.go", "if s.busy.answered {", "if false {"},
	{"a list of keys is compared as text", "checker.go", "	if key == e.Key {", "	if key == e.Key || true {"},
	{"tokens may repeat", "fenced.go", "e.Token <= before.Token:", "e.Token < before.Token:"},
	{"tokens of concurrent acquires may repeat", "fenced.go", "earlier, again := t.recent[e.Token]", "earlier, again := t.recent[-e.Token]"},
	{"tokens are compared with those returned during the acquire", "fenced.go", "c.issue(o, e, &o.tokens.called.Event)", "c.issue(o, e, &t.largest)"},
	{"accepted tokens may go back", "fenced.go", "e.Token < t.accepted.Token {", "false {"},
	{"an accepted token must grow", "fenced.go", "e.Token < t.accepted.Token {", "e.Token <= t.accepted.Token {"},
	{"an unknown acquire cannot have given a token", "fenced.go", "i := len(u) - 1", "i := -1"},
	{"one permit too many", "overlap.go", "permitsOf(set) > int64(c.limit)", "permitsOf(set) > int64(c.limit)+1"},
	{"permits come one by one", "semaphore.go", "c.semSet(o, add32(o.lo, o.permits), add32(o.hi, o.permits))", "c.semSet(o, add32(o.lo, 1), add32(o.hi, 1))"},
	{"permits under way are not out", "semaphore.go", "if s.permit.hi+s.permit.open > int64(c.limit) {", "if s.permit.hi >= int64(c.limit) {"},
	{"permits under way are out too soon", "semaphore.go", "if s.permit.hi+s.permit.open > int64(c.limit) {", "if s.permit.hi+s.permit.open >= int64(c.limit) {"},
	{"a semaphore's unknown release may be undone", "semaphore.go", "c.semSet(h, h.lo, h.lo)", "_ = h"},
	{"the end of the history is not judged", "result.go", "\tso.finish()\n", ""},
	{"what is possible hides what is certain", "result.go", "if v.Certain && !c.opts.All {", "if !c.opts.All {"},
	{"the resource's clock is its client's", "fenced.go", "Certain: c.opts.Skew == 0, Message: sayTokenNotIssued(e)", "Certain: true, Message: sayTokenNotIssued(e)"},
	{"the skew counts once", "overlap.go", "return end - 2*c.opts.Skew", "return end - c.opts.Skew"},
	{"a history that is not understood is valid", "result.go", "case so.failed != nil:", "case false:"},
	{"a descent takes an unknown acquire twice", "symmetry.go", "sp.open(s.pos) <= st.uses(reserve) ||", "sp.open(s.pos) <= 0 ||"},
	{"a descent finds busy what is free", "search.go", "busy := has(st.seen, op)", "busy := true"},
	{"a descent ends what a crashed client held", "step.go", "st = st.taking(nobody, reading, h.count, h.grant)", "_ = nobody"},
	{"a descent lets nobody read beside writing", "models.go", "if h.actor == o.actor && !h.reading || ", "if h.actor == o.actor && !h.reading && !o.reading || "},
	{"a descent lets readers write", "models.go", "h.reading && (o.reading || writes)", "h.reading && (o.reading || writes || true)"},
	{"a descent gives unknown acquires the next token alone", "symmetry.go", "for _, t := range used[first:] {", "for _, t := range used[first:first] {"},
	{"a descent names the event at which it found out", "buffer.go", "low, high := from, len(events)-1", "low, high := from, from"},
	{"busy is explained by what may not have been", "trylock.go", "if s.busy.blurred {", "if false {"},
	{"busy about one of several keys is explained as that of one", "trylock.go", "if c.tied {", "if false {"},
	{"a crash leaves no permits", "semaphore.go", " || s.busy.blurred:", ":"},
	{"tokens and leases are two orders", "fenced.go", "if t.turned && t.leased {", "if false {"},
	{"what the rules say needs no confirmation", "result.go", "} else if !c.buffer.confirms(v.Key, c.ending) {", "} else if false {"},
	{"a descent has no room to spare", "models.go", "+out(holds) <= m.n", "+out(holds) < m.n"},
	{"a descent locks only the same list of keys", "models.go", "\t\tcase c == 0:\n\t\t\treturn true\n", "\t\tcase c == 0:\n\t\t\treturn len(m.actors[h.actor].keys) == len(m.actors[o.actor].keys)\n"},
	{"a descent lets an unknown release wait for ever", "compile.go", "c.reserves[at.op].end = int32(len(c.points))", "_ = at"},
	{"a descent keeps a lease past its end", "compile.go", "c.spec.expiry == Known && !c.loose[g]", "false"},
	{"a descent ends a lease whose extend is unknown", "compile.go", "c.loose[g] = true", "_ = g"},
	{"a descent loses what a crash interrupts", "compile.go", "case back == nil || back.Phase == ReturnUnknown:", "case back == nil && ret == -1:\n\t\to.outcome = failed\n\tcase back == nil || back.Phase == ReturnUnknown:"},
	{"a descent forgets what may return yet", "successors.go", "return sp.yet && st.last", "return false && st.last"},
	{"a search that gave up is a proof", "checker.go", "\tif lost {\n", "\tif lost && false {\n"},
	{"a descent ends a server's lease before what is under way", "serverexpiry.go", "if doing >= 0 && !has(st.done, doing) {", "if false {"},
	{"a descent goes on holding what the server has ended", "serverexpiry.go", "if i, ok := st.held(p, false); ok {", "if i, ok := st.held(p, false); ok && false {"},
	{"a reader may begin to write", "successors.go", "return o.reading && !like.reading && like.actor == o.actor", "return false"},
	{"a stretch begins with nothing held", "segment.go", "n := min(s.acquired, p.limit) + s.unsure", "n := s.unsure"},
	{"what may be acquired yet is not before a stretch", "segment.go", "n := min(s.acquired, p.limit) + s.unsure", "n := min(s.acquired, p.limit)"},
	{"a stretch loses what may be released yet", "segment.go", "for _, e := range s.gives {", "for _, e := range s.gives[:0] {"},
	{"a stretch asks for the return of what was under way", "segment.go", "case e.Phase != Invoke && e.Phase != Expired && under[at] != nil:", "case e.Phase == ReturnFail && under[at] != nil:"},
	{"what may be written once more is enough", "symmetry.go", "return u < 0 || !s.rewrites", "return true || !s.rewrites"},
	{"who reads is thought able to write later", "memo.go", "left-- // who reads", "left += 0 // who reads"},
	{"nobody gives back one by one what a crash left", "successors.go", "return true // nobody may give", "return false // nobody may give"},
	{"an explanation leaves out who explains that somebody was told busy", "reduce.go", "c.tries = append(c.tries, span{o.at, i})", "_ = i"},
	{"an explanation leaves out the token that is used", "reduce.go", "c.tokens && c.presented(place{o.e.Client, o.e.Key}, o.at)", "false"},
	{"an overlap's set has one client", "overlap.go", "for _, h := range set {\n\t\tv.Clients", "for _, h := range set[:1] {\n\t\tv.Clients"},
}

// TestMutants is the test of the tests. Without -mutate it only sees that each
// bug can still be planted, in one place.
func TestMutants(t *testing.T) {
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	drawn := rand.New(rand.NewPCG(*draw, 0)).Perm(len(mutants))
	if *mutate && 0 < *some && *some < len(mutants) {
		t.Logf("%d of %d bugs are planted: -mutants %d -draw %d", *some, len(mutants), *some, *draw)
		drawn = drawn[:*some]
	}
	for i, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			text, err := os.ReadFile(m.file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), m.from); n != 1 {
				t.Fatalf("%s has %q %d times, not once", m.file, m.from, n)
			}
			if !*mutate || !slices.Contains(drawn, i) {
				return
			}
			temp := t.TempDir()
			changed := filepath.Join(temp, m.file)
			if err := os.WriteFile(changed, []byte(strings.Replace(string(text), m.from, m.to, 1)), 0o666); err != nil {
				t.Fatal(err)
			}
			overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(dir, m.file): changed}})
			if err != nil {
				t.Fatal(err)
			}
			list := filepath.Join(temp, "overlay.json")
			if err := os.WriteFile(list, overlay, 0o666); err != nil {
				t.Fatal(err)
			}
			// Without vet, which would find dead code first, and without the
			// random histories, which catch most, but not the same each time.
			out, err := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-failfast", "-overlay", list, ".", "-skip", "TestPorcupine|TestAll|TestSkew|TestEnumerate|TestRandom|TestLaws|TestExplain$|TestStretch$|TestSlowSweep").CombinedOutput()
			if err == nil {
				t.Fatal("no test failed")
			}
			if !strings.Contains(string(out), "--- FAIL") {
				t.Fatalf("it did not come to a test:\n%s", out)
			}
			for line := range strings.Lines(string(out)) {
				if strings.HasPrefix(line, "    --- FAIL") {
					t.Logf("caught by %s", strings.TrimSpace(strings.TrimPrefix(line, "    --- FAIL:")))
					break
				}
			}
		})
	}
}
