package explore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/strategies"
)

// subject is the subject of the searches in this file.
var subject = Subject{Strategy: "set-nx-px-del", Seed: 1, TTL: 30 * time.Second, Version: "v1", Build: "abcd"}

// bound is the bound of a search that needs about a hundred runs and has findings.
var bound = Bound{Clients: 2, Rounds: 1, Nodes: 1, TTL: 30 * time.Second, Budget: map[BudgetKind]int{Advance: 1}}

// A memory plays scripts by looking up recorded outcomes, and counts them.
type memory struct {
	looks  map[string]Outcome
	played map[string]int
	// dies is the number of the call of Play in which the process is killed, from 1; 0 means never.
	dies int
}

var errKilled = errors.New("killed")

func (m *memory) Play(_ context.Context, trials []Trial) ([]Outcome, error) {
	if m.dies--; m.dies == 0 {
		return make([]Outcome, len(trials)), errKilled
	}
	looks := make([]Outcome, len(trials))
	for i, trial := range trials {
		looks[i] = m.looks[trial.Script]
		m.played[trial.Script]++
	}
	return looks, nil
}

func (m *memory) PlayAlone(_ context.Context, trial Trial) (Outcome, error) {
	return m.looks["again: "+trial.Script], nil
}

// A remembering records the outcomes of the scripts that are played.
type remembering struct {
	stage
	looks map[string]Outcome
}

func (r *remembering) Play(ctx context.Context, trials []Trial) ([]Outcome, error) {
	looks, err := r.stage.Play(ctx, trials)
	for i, trial := range trials {
		r.looks[trial.Script] = looks[i]
	}
	return looks, err
}

func (r *remembering) PlayAlone(ctx context.Context, trial Trial) (Outcome, error) {
	look, err := r.stage.PlayAlone(ctx, trial)
	r.looks["again: "+trial.Script] = look
	return look, err
}

// whole is the result of the search without a journal, computed once.
var whole struct {
	result Result
	looks  map[string]Outcome
}

// undisturbed searches without a journal, and returns the result and a player that has recorded all
// outcomes.
func undisturbed(t *testing.T) (Result, *memory) {
	t.Helper()
	if whole.looks != nil {
		return whole.result, &memory{looks: whole.looks, played: map[string]int{}}
	}
	strategy, _ := strategies.Builtin().Lookup(subject.Strategy)
	r := &remembering{stage{t: t, strategy: strategy}, map[string]Outcome{}}
	result, err := Search(t.Context(), bound, r, nil)
	if err != nil || !result.Exhausted || len(result.Findings) == 0 {
		t.Fatal(err, result.Cut, result.Failures, len(result.Findings))
	}
	whole.result, whole.looks = result, r.looks
	return result, &memory{looks: r.looks, played: map[string]int{}}
}

func open(t *testing.T, path string, player Player) *Journal {
	t.Helper()
	j, err := OpenJournal(path, subject, player)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return j
}

// through searches with a journal.
func through(t *testing.T, path string, player Player) (Result, error) {
	t.Helper()
	j := open(t, path, player)
	defer j.Close()
	return Search(t.Context(), bound, j, nil)
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// put creates a file anew, because overwriting a file is slow on some systems.
func put(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestKilledSearchGoesOn checks that a search killed any number of times has the same result, and
// that recorded scripts are not played again.
func TestKilledSearchGoesOn(t *testing.T) {
	racetest.Skip(t)
	want, m := undisturbed(t)
	path := filepath.Join(t.TempDir(), "journal")
	for kills := 0; ; kills++ {
		m.dies = 3
		result, err := through(t, path, m)
		if err == nil {
			if !reflect.DeepEqual(result, want) {
				t.Errorf("it comes to %+v, want %+v", result, want)
			}
			if kills < 3 {
				t.Errorf("it was killed %d times", kills)
			}
			break
		}
		if !errors.Is(err, errKilled) || kills > want.Runs {
			t.Fatal(err)
		}
	}
	for script, n := range m.played {
		if n > 1 {
			t.Errorf("played %d times:\n%s", n, script)
		}
	}
	if len(m.played) != want.Runs {
		t.Errorf("%d scripts were played, there are %d", len(m.played), want.Runs)
	}
	// Once more, with the complete journal.
	m.dies = 1
	before := content(t, path)
	j := open(t, path, m)
	defer j.Close()
	if result, err := Search(t.Context(), bound, j, nil); err != nil || !reflect.DeepEqual(result, want) || j.Known() != want.Runs || j.Served() != want.Runs {
		t.Errorf("it comes to %+v, %v, with %d known and %d served, want %+v", result, err, j.Known(), j.Served(), want)
	}
	if !bytes.Equal(content(t, path), before) {
		t.Error("what was complete has changed")
	}
}

// TestTornJournal checks a journal truncated at any byte, as a kill may leave it.
func TestTornJournal(t *testing.T) {
	racetest.Skip(t)
	want, m := undisturbed(t)
	path := filepath.Join(t.TempDir(), "journal")
	if _, err := through(t, path, m); err != nil {
		t.Fatal(err)
	}
	j := open(t, path, m)
	ends, all := append(slices.Clone(j.blocks), j.end), j.Known()
	j.Close()
	complete := content(t, path)
	if int64(len(complete)) != ends[len(ends)-1] || len(ends) < 10 {
		t.Fatalf("%d bytes, and blocks that end at %d", len(complete), ends)
	}
	ends = ends[:6] // later blocks are long, and no different
	whole := complete[:ends[5]]
	last := ends[len(ends)-3] // where the last two blocks begin
	known := map[int64]int{}
	for n := range int64(len(whole)) + 1 {
		near := slices.ContainsFunc(ends, func(end int64) bool { return n == end-1 || n == end })
		if n < last && n > ends[0] && !near {
			continue
		}
		put(t, path, whole[:n])
		j := open(t, path, m)
		begins := ends[0]
		for _, end := range ends {
			if end <= n {
				begins = end
			}
		}
		if j.end != begins || j.Dropped() != max(0, n-begins) {
			t.Fatalf("with %d bytes it goes on at %d, want %d, and %d are dropped", n, j.end, begins, j.Dropped())
		}
		if info, err := os.Stat(path); err != nil || n >= ends[0] && info.Size() != begins {
			t.Fatalf("of %d bytes there are %d, %v, want %d", n, info.Size(), err, begins)
		}
		known[begins] = j.Known()
		m.played = map[string]int{}
		if n%150 == 0 || slices.Contains(ends, n) {
			if result, err := Search(t.Context(), bound, j, nil); err != nil || !reflect.DeepEqual(result, want) {
				t.Fatalf("with %d bytes it comes to %+v, %v, want %+v", n, result, err, want)
			}
			if len(m.played) != all-j.Known() {
				t.Fatalf("with %d bytes it knew %d and played %d of %d", n, j.Known(), len(m.played), all)
			}
			if !bytes.Equal(content(t, path), complete) {
				t.Fatalf("with %d bytes it wrote another file", n)
			}
		}
		j.Close()
	}
	if len(known) != len(ends) || known[ends[0]] != 0 || known[ends[5]] == 0 {
		t.Errorf("it knew %v of %d", known, all)
	}
}

// TestDamagedJournal checks that damaged blocks are not used.
func TestDamagedJournal(t *testing.T) {
	racetest.Skip(t)
	want, m := undisturbed(t)
	path := filepath.Join(t.TempDir(), "journal")
	if _, err := through(t, path, m); err != nil {
		t.Fatal(err)
	}
	j := open(t, path, m)
	begins := j.blocks[len(j.blocks)/2]
	j.Close()
	whole := content(t, path)
	for n := range int64(300) {
		spoiled := slices.Clone(whole)
		spoiled[begins+n] ^= 0x10
		put(t, path, spoiled)
		j := open(t, path, m)
		if j.end != begins || j.Dropped() != int64(len(whole))-begins {
			t.Fatalf("with byte %d spoiled it goes on at %d, want %d", begins+n, j.end, begins)
		}
		if n%50 == 0 {
			if result, err := Search(t.Context(), bound, j, nil); err != nil || !reflect.DeepEqual(result, want) {
				t.Fatalf("with byte %d spoiled it comes to %+v, %v, want %+v", n, result, err, want)
			}
		}
		j.Close()
	}
	// Blocks damaged while the journal is open are not used either.
	put(t, path, whole)
	j = open(t, path, m)
	if _, err := j.file.WriteAt([]byte{whole[len(whole)-1] ^ 1}, int64(len(whole)-1)); err != nil {
		t.Fatal(err)
	}
	if _, err := Search(t.Context(), bound, j, nil); err == nil || !strings.Contains(err.Error(), "read the checkpoint "+path+": it is damaged") {
		t.Error(err)
	}
}

// TestJournalOfAnother checks that only the same search of the same program continues a journal,
// and that no other file is changed.
func TestJournalOfAnother(t *testing.T) {
	_, m := undisturbed(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "journal")
	if _, err := through(t, path, m); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*Subject)
		says   string
	}{
		{func(s *Subject) { s.Strategy = "redlock" }, "is the checkpoint of another search: its strategy was set-nx-px-del and is redlock now"},
		{func(s *Subject) { s.Seed = 2 }, "is the checkpoint of another search: its seed was 1 and is 2 now"},
		{func(s *Subject) { s.TTL = time.Second }, "is the checkpoint of another search: its ttl was 30s and is 1s now"},
		{func(s *Subject) { s.Version = "v2" }, "is the checkpoint of another search: its version was v1 and is v2 now"},
		{func(s *Subject) { s.Build = "bcde" }, "is the checkpoint of another build of this program, whose locks may do something else"},
	} {
		before := content(t, path)
		other := subject
		c.change(&other)
		_, err := OpenJournal(path, other, m)
		if want := path + " " + c.says + ": name another file, or remove this one to begin anew"; fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
		if !bytes.Equal(content(t, path), before) {
			t.Errorf("%s: it has changed the file", c.says)
		}
	}
	line, _, _ := bytes.Cut(content(t, path), []byte("\n"))
	for _, text := range []string{
		"my thesis", "my thesis\n", "{}\n", "\n", "\x00", strings.Repeat("x", 1<<17), string(line[:40]) + "x",
		string(bytes.Replace(line, []byte(`"seed":1`), []byte(`"seed":2`), 1)),
	} {
		file := filepath.Join(dir, "mine")
		put(t, file, []byte(text))
		if _, err := OpenJournal(file, subject, m); fmt.Sprint(err) != file+" is not a checkpoint of a search: name another file, or remove this one to begin anew" {
			t.Errorf("%.20q: %v", text, err)
		}
		if got := content(t, file); string(got) != text {
			t.Errorf("%.20q is %.20q now", text, got)
		}
	}
	next := filepath.Join(dir, "next")
	put(t, next, append(bytes.Replace(line, []byte(`"format":1`), []byte(`"format":2`), 1), '\n'))
	if _, err := OpenJournal(next, subject, m); err == nil || !strings.Contains(err.Error(), "another version of lockfault wrote") {
		t.Error(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "no", "where"), os.DevNull} {
		if _, err := OpenJournal(path, subject, m); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestJournalOfTwo checks that two searches do not write to the same file.
func TestJournalOfTwo(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files are not kept from others there")
	}
	path := filepath.Join(t.TempDir(), "journal")
	first := open(t, path, &memory{})
	if _, err := OpenJournal(path, subject, &memory{}); fmt.Sprint(err) != "another search is writing to "+path+": wait for it, or name another file" {
		t.Error(err)
	}
	first.Close()
	open(t, path, &memory{})
}

// TestJournalThatCantBeWritten checks that a write error ends the search, and that everything
// written before stays.
func TestJournalThatCantBeWritten(t *testing.T) {
	want, m := undisturbed(t)
	path := filepath.Join(t.TempDir(), "journal")
	m.dies = 4
	if _, err := through(t, path, m); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	before := content(t, path)
	j := open(t, path, m)
	writes := j.file
	reads, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reads.Close()
	j.file = reads
	_, err = Search(t.Context(), bound, j, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "write the checkpoint: write "+path+": ") || !strings.HasSuffix(err.Error(), ": see to it, and start the search again to go on") {
		t.Error(err)
	}
	writes.Close()
	if !bytes.Equal(content(t, path), before) {
		t.Error("the file has changed")
	}
	if result, err := through(t, path, m); err != nil || !reflect.DeepEqual(result, want) {
		t.Errorf("it comes to %+v, %v, want %+v", result, err, want)
	}
}

// fill sets every field of a value to a value other than before.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.String:
		v.SetString("line\nand <another> €")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(-7)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	default:
		panic("fill " + v.Kind().String())
	}
}

// TestJournalKeepsLooks checks that a journal keeps every field of an outcome, records no outcome
// of a failed script, and compares the whole key of a script.
func TestJournalKeepsLooks(t *testing.T) {
	var full Outcome
	fill(reflect.ValueOf(&full).Elem())
	failed := full
	full.Err = ""
	m := &memory{looks: map[string]Outcome{"full": full, "empty": {}, "failed": failed, "like full": {Print: "1"}}, played: map[string]int{}}
	path := filepath.Join(t.TempDir(), "journal")
	scripts := slices.Sorted(maps.Keys(m.looks))
	var trials []Trial
	for _, script := range scripts {
		trials = append(trials, Trial{Script: script})
	}
	for i := range 3 {
		j := open(t, path, m)
		if _, err := j.Play(t.Context(), []Trial{{Script: "full"}}); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // as if their keys began alike
			j.index[keyOf(Trial{Script: "like full"}).half()] = j.index[keyOf(Trial{Script: "full"}).half()]
		}
		looks, err := j.Play(t.Context(), trials)
		if err != nil {
			t.Fatal(err)
		}
		for i, script := range scripts {
			if !reflect.DeepEqual(looks[i], m.looks[script]) {
				t.Errorf("%s is %+v, want %+v", script, looks[i], m.looks[script])
			}
		}
		j.Close()
	}
	if want := map[string]int{"full": 1, "empty": 1, "failed": 3, "like full": 1}; !maps.Equal(m.played, want) {
		t.Errorf("played %v, want %v", m.played, want)
	}
}

// TestJournalEnds checks that nothing is played or looked up after the context is done.
func TestJournalEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	j := open(t, filepath.Join(t.TempDir(), "journal"), &memory{})
	if _, err := j.Play(ctx, []Trial{{Script: "a"}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// BenchmarkJournal measures the cost of a hundred thousand scripts: on disk, and in memory when the
// file is opened again.
func BenchmarkJournal(b *testing.B) {
	const scripts = 100_000
	look := func(i int) Outcome {
		hash := fmt.Sprintf("%x", keyOf(Trial{Script: fmt.Sprint(i)}))
		clients := []harness.ClientView{{Name: "A", Busy: true, Observed: hash}, {Name: "B", Observed: fmt.Sprintf("%x", keyOf(Trial{Script: fmt.Sprint(i / 3)}))}}
		server := faults.ServerView{Name: "n1/0", Up: true, Leads: true, Data: fmt.Sprintf("lock string %d B1\n", i%7*1000), Next: time.Duration(i % 7)}
		return Outcome{Print: fmt.Sprintf("%x", keyOf(Trial{Script: hash})), View: harness.Snapshot{
			Now: time.Duration(i % 11), Clients: clients,
			Snapshot: faults.Snapshot{Servers: []faults.ServerView{server}, Held: []faults.HeldView{{Client: "A", Node: "n1", Way: faults.Before, Command: "SET lock A1 NX PX 30000"}}},
		}}
	}
	list := make([]Trial, scripts)
	for i := range list {
		list[i].Script = fmt.Sprint("script ", i)
	}
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "journal")
		n := 0
		j, err := OpenJournal(path, subject, playerFunc(func(trials []Trial) (looks []Outcome) {
			for range trials {
				looks = append(looks, look(n))
				n++
			}
			return looks
		}))
		if err != nil {
			b.Fatal(err)
		}
		play := func(j *Journal) time.Duration {
			began := time.Now()
			for part := range slices.Chunk(list, chunk) {
				if _, err := j.Play(b.Context(), part); err != nil {
					b.Fatal(err)
				}
			}
			return time.Since(began)
		}
		wrote := play(j)
		b.ReportMetric(float64(j.end)/scripts, "B/script")
		j.Close()
		j = nil
		before := heap()
		began := time.Now()
		j, err = OpenJournal(path, subject, nil)
		if err != nil {
			b.Fatal(err)
		}
		opened := time.Since(began)
		b.ReportMetric(float64(heap()-before)/scripts, "B-memory/script")
		b.ReportMetric(float64(opened.Nanoseconds())/scripts, "ns-opened/script")
		b.ReportMetric(float64(wrote.Nanoseconds())/scripts, "ns-written/script")
		b.ReportMetric(float64(play(j).Nanoseconds())/scripts, "ns-read/script")
		if j.Served() != scripts {
			b.Errorf("%d of %d were known", j.Served(), scripts)
		}
		j.Close()
	}
}

// heap returns the memory in use, without garbage.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

type playerFunc func(trials []Trial) []Outcome

func (f playerFunc) Play(_ context.Context, trials []Trial) ([]Outcome, error) { return f(trials), nil }
func (f playerFunc) PlayAlone(context.Context, Trial) (Outcome, error)         { return Outcome{}, nil }
