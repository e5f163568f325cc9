package cells

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	mathrand "math/rand/v2"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/atomicdir"
	"github.com/lockfault/lockfault/internal/below"
	"github.com/lockfault/lockfault/internal/cellresult"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/queue/item"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
)

// Remote plays jobs on other machines: its run replaces [workerpool.Run]. Remote trusts no answer:
// verdicts are derived again from the histories in the answers, and a sample of the answers without
// history is replayed on this machine.
type Remote struct {
	queue.Job
	Say    func(string)
	player player // decides which cells apply; it plays nothing
	Random *mathrand.Rand

	// here plays a job in a worker process of this machine.
	here   func(context.Context, workerpool.Options, Job) (workerpool.Result[Played], error)
	held   map[string][]claim        // answers that wait for a sample, by worker
	firsts map[string]map[string]int // first window that shows an anomaly, by strategy and anomaly
}

// newRemote returns a shared that uses a campaign. Samples are chosen by a secret random seed: a
// worker that could predict them could cheat in the other answers.
func newRemote(g queue.Job, a *kit.App, say func(string)) (*Remote, error) {
	var seed [32]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, err
	}
	return &Remote{
		Job: g, Say: say, player: player{registry: a.Everything, services: a.Services},
		Random: mathrand.New(mathrand.NewChaCha8(seed)), here: playHere, held: map[string][]claim{}, firsts: map[string]map[string]int{},
	}, nil
}

const (
	// ahead is the largest number of jobs of a command on a queue at a time.
	ahead = 4096
	// sampled is the number of answers of a worker among which one is replayed here. If the replay
	// agrees, all of them are accepted, otherwise none.
	sampled = 32
	// maxFiles is the largest size in bytes of the files of an answer. They are larger in JSON.
	maxFiles = queue.MaxAnswer / 2
	// maxBody is the largest size in bytes of an answer without its files. No worker process writes
	// a longer line.
	maxBody = 16 << 20
	// maxHeld is the size in bytes of unsettled answers of a worker at which they are settled.
	maxHeld = 64 << 20
)

// Names of the files of an answer.
const (
	historyFile = "history.jsonl"
	logsPrefix  = reports.LogsDir + "/"
)

// question is a job with its queue item.
type question struct {
	Job
	item queue.Item
	// own is the result of a job that does not apply, which is not put into the queue.
	own *workerpool.Result[Played]
	// replayed reports whether a replay gives the same result, so that the answer can be sampled.
	replayed bool
	history  bool
	meta     checker.Meta // the expected metadata of the history
}

// claim is an answer that passed all checks except a replay.
type claim struct {
	question
	answer queue.Answer
	result workerpool.Result[Played]
	size   int // of the body, in bytes
}

// ask returns the question for a job.
func (s *Remote) ask(j Job) (question, error) {
	strategy, err := s.player.strategy(j)
	if err != nil {
		return question{}, err
	}
	cell, err := s.player.cell(j, strategy)
	if err != nil {
		return question{}, err
	}
	if ok, why := cell.Applies(); !ok {
		own := cellresult.Cell(j.Place.World, cell, harness.Outcome{Status: harness.NotApplicable, Reason: why})
		own.Settle()
		return question{Job: j, own: &workerpool.Result[Played]{Value: Played{Cell: own}}}, nil
	}
	q := question{Job: j, meta: cell.Meta(), replayed: !j.Place.Real() && strategy.HistoryVaries == ""}
	q.history = j.History != "" || !q.replayed
	file := ""
	if j.File != "" {
		file = filepath.Base(j.File)
	}
	q.item, err = item.Cell{
		Strategy: j.Strategy, Nodes: j.Nodes, Observed: j.Observed, Scenario: j.Scenario, File: file, Script: string(j.Source),
		World: j.Place.World, Server: j.Place.RedisServer, Image: imageOf(j.Place), Sentinel: j.Place.Sentinel,
		Seed: j.Seed, Lease: j.TTL, Limit: j.Limit, Isolated: j.NeedsFresh(), Count: j.Count, History: q.history,
	}.Item()
	return q, err
}

// imageOf returns the image of a place, or "" outside the world docker.
func imageOf(p worlds.Place) string {
	if p.World != worlds.Docker {
		return ""
	}
	return p.Image
}

// run does the work of [workerpool.Run] with the workers of the queue. The options apply to the
// local process that replays samples; remote workers have their own.
func (s *Remote) run(ctx context.Context, options workerpool.Options, jobs iter.Seq[Job], done func(Job, workerpool.Result[Played]) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	by := map[string]question{}         // unanswered questions by item name
	asked := make(chan question, ahead) // each question once
	go func() {
		defer close(asked)
		for j := range jobs {
			q, err := s.ask(j)
			if err != nil {
				cancel(err)
				return
			}
			if q.own == nil {
				mu.Lock()
				by[q.item.Name] = q
				mu.Unlock()
			}
			select {
			case asked <- q:
			case <-ctx.Done():
				return
			}
			if q.own != nil {
				continue
			}
			if err := s.Put(ctx, q.item); err != nil {
				cancel(err)
				return
			}
		}
	}()
	// next takes n answers, plus one for each item that they cause to be put again.
	next := func(n int) error {
		for ; n > 0; n-- {
			answer, err := s.Next(ctx)
			if err != nil {
				return err
			}
			mu.Lock()
			q := by[answer.Name]
			mu.Unlock()
			anew, err := s.take(ctx, options, q, answer, done)
			if err != nil {
				return err
			}
			n += anew
		}
		return nil
	}
	for q := range asked {
		err := error(nil)
		if q.own != nil {
			err = done(q.Job, *q.own)
		} else {
			err = next(1)
		}
		if err != nil {
			return err
		}
	}
	for len(s.held) > 0 && ctx.Err() == nil {
		anew := 0
		for worker := range s.held {
			n, err := s.settle(ctx, options, worker, done)
			if err != nil {
				return err
			}
			anew += n
		}
		if err := next(anew); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// take accepts, holds or refuses an answer. take returns the number of items put into the queue
// again.
func (s *Remote) take(ctx context.Context, options workerpool.Options, q question, answer queue.Answer, done func(Job, workerpool.Result[Played]) error) (anew int, err error) {
	if answer.Err != nil {
		return 0, done(q.Job, workerpool.Result[Played]{Failure: &workerpool.Failure{Reason: answer.Err.Error()}})
	}
	result, err := s.read(q, answer)
	var wrong *WrongAnswer
	if errors.As(err, &wrong) {
		return s.exclude(ctx, []claim{{question: q, answer: answer}}, wrong.Error())
	}
	if err != nil {
		return 0, err
	}
	c := claim{q, answer, result, len(answer.Body)}
	c.answer.Body, c.answer.Files = nil, nil
	if q.Twin && q.Place.Real() && decided(result) {
		if err := s.twin(ctx, options, &c); err != nil {
			return 0, err
		}
	}
	if !q.replayed {
		return 0, done(q.Job, c.result)
	}
	s.held[answer.Worker] = append(s.held[answer.Worker], c)
	switch {
	case s.incident(c):
		return s.settleBy(ctx, options, answer.Worker, len(s.held[answer.Worker])-1, done)
	case len(s.held[answer.Worker]) >= sampled || sizeOf(s.held[answer.Worker]) >= maxHeld:
		return s.settle(ctx, options, answer.Worker, done)
	}
	return 0, nil
}

func sizeOf(claims []claim) (n int) {
	for _, c := range claims {
		n += c.size
	}
	return n
}

// settle replays one of a worker's held answers, an outlier or a random one, and accepts all of
// them if the replay agrees.
func (s *Remote) settle(ctx context.Context, options workerpool.Options, worker string, done func(Job, workerpool.Result[Played]) error) (anew int, err error) {
	held := s.held[worker]
	drawn := s.Random.IntN(len(held))
	if i := outlier(held); i >= 0 {
		drawn = i
	}
	return s.settleBy(ctx, options, worker, drawn, done)
}

// outlier returns the index of the answer with the most acquires, or -1. The answer is an outlier
// if it has more than twice the median of all answers with counts.
func outlier(claims []claim) int {
	most := -1
	var all []int
	for i, c := range claims {
		counts := c.result.Value.Counts
		if counts == nil {
			continue
		}
		all = append(all, counts.Acquired)
		if most < 0 || counts.Acquired > claims[most].result.Value.Counts.Acquired {
			most = i
		}
	}
	slices.Sort(all)
	if most < 0 || claims[most].result.Value.Counts.Acquired <= 2*all[len(all)/2] {
		return -1
	}
	return most
}

// settleBy is settle with the answer at index i as the sample.
func (s *Remote) settleBy(ctx context.Context, options workerpool.Options, worker string, i int, done func(Job, workerpool.Result[Played]) error) (anew int, err error) {
	held := s.held[worker]
	delete(s.held, worker)
	here, err := s.replay(ctx, options, held[i].Job)
	if err != nil {
		return 0, err
	}
	if why := unlike(held[i], here); why != "" {
		return s.exclude(ctx, held, fmt.Sprintf("its answer to %s under %s is not what this machine finds: %s", held[i].Strategy, held[i].Scenario, why))
	}
	for _, c := range held {
		if err := done(c.Job, c.result); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// exclude refuses all further answers of the worker that gave these claims. The items of the
// claims, which are wrong or doubtful, and of its held answers are put into the queue again.
func (s *Remote) exclude(ctx context.Context, claims []claim, why string) (anew int, err error) {
	worker := claims[0].answer.Worker
	claims = append(claims, s.held[worker]...)
	delete(s.held, worker)
	s.Say(fmt.Sprintf("worker %s is excluded: %s: %s asked anew", queue.Short(worker), why, kit.Count(len(claims), "answer of it is", "answers of it are")))
	for _, c := range claims {
		if err := s.Refuse(ctx, c.item, c.answer, true); err != nil {
			return 0, err
		}
	}
	return len(claims), nil
}

// incident reports whether an answer counts an anomaly in an earlier window than all previous
// answers. The first window of each anomaly appears in the report of a soak, so it is always
// replayed here.
func (s *Remote) incident(c claim) bool {
	counts := c.result.Value.Counts
	if counts == nil {
		return false
	}
	first := s.firsts[c.Strategy]
	if first == nil {
		first = map[string]int{}
		s.firsts[c.Strategy] = first
	}
	found := false
	for a := range counts.First {
		if n, ok := first[string(a)]; !ok || c.Number <= n {
			first[string(a)], found = c.Number, true
		}
	}
	return found
}

// replay plays a job on this machine, without a history.
func (s *Remote) replay(ctx context.Context, options workerpool.Options, j Job) (workerpool.Result[Played], error) {
	j.History, j.HistoryLink, j.Twin = "", "", false
	return s.here(ctx, options, j)
}

// playHere plays a job in a worker process of this machine.
func playHere(ctx context.Context, options workerpool.Options, j Job) (here workerpool.Result[Played], err error) {
	options.Workers = 1
	err = workerpool.Run(ctx, options, slices.Values([]Job{j}), func(_ Job, r workerpool.Result[Played]) error {
		here = r
		return nil
	})
	return here, err
}

// twin plays in virtual time a cell that was played in real time with another lease than the run's.
func (s *Remote) twin(ctx context.Context, options workerpool.Options, c *claim) error {
	j := c.Job
	j.Place = worlds.Place{World: worlds.Sim}
	here, err := s.replay(ctx, options, j)
	if err == nil {
		c.result.Value.Cell.Twin = &reports.ReferenceCell{Verdict: here.Value.Cell.Verdict, Anomalies: here.Value.Cell.Anomalies}
	}
	return err
}

func decided(r workerpool.Result[Played]) bool {
	return r.Failure == nil && (r.Value.Cell.Verdict == reports.Held || r.Value.Cell.Verdict == reports.Violated)
}

// unlike returns how an answer differs from the replay, or "" if they agree or either has no
// verdict.
func unlike(c claim, here workerpool.Result[Played]) string {
	if !decided(c.result) || !decided(here) {
		return ""
	}
	there, is := c.result.Value, here.Value
	switch {
	case there.Cell.Verdict != is.Cell.Verdict:
		return fmt.Sprintf("it says %s, and this machine finds %s", there.Cell.Verdict, is.Cell.Verdict)
	case !slices.Equal(there.Cell.Anomalies, is.Cell.Anomalies):
		return fmt.Sprintf("it says %v, and this machine finds %v", there.Cell.Anomalies, is.Cell.Anomalies)
	case !reflect.DeepEqual(settled(there), settled(is)):
		return "its figures differ"
	}
	return ""
}

// settled returns a result without the fields that vary between runs, as decoded JSON.
func settled(p Played) (is any) {
	p.Cell.Elapsed, p.Cell.History, p.Cell.Late, p.Cell.Reruns, p.Strain = 0, "", nil, 0, 0
	text, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(text, &is)
	}
	if err != nil {
		return err
	}
	return is
}

// WrongAnswer is the error of a signed answer that cannot be correct.
type WrongAnswer struct{ why string }

func (w *WrongAnswer) Error() string { return w.why }

func Wrongly(format string, args ...any) error { return &WrongAnswer{fmt.Sprintf(format, args...)} }

// read decodes an answer and stores its files. read derives the verdict from the history again, and
// drops everything that the question did not ask for. The error is a *WrongAnswer if no worker of
// this build would give the answer.
func (s *Remote) read(q question, answer queue.Answer) (result workerpool.Result[Played], err error) {
	if len(answer.Body) > maxBody {
		return result, Wrongly("its answer to %s has %d bytes without its files, more than the limit of %d", answer.Name, len(answer.Body), maxBody)
	}
	if err := json.Unmarshal(answer.Body, &result); err != nil {
		return result, Wrongly("its answer to %s can't be read: %v", answer.Name, err)
	}
	if f := result.Failure; f != nil {
		if f.Reason == "" {
			return result, Wrongly("its answer to %s is a failure without a reason", answer.Name)
		}
		result.Value = Played{}
		return result, nil
	}
	v, cell := &result.Value, &result.Value.Cell
	*v = Played{Cell: *cell, Late: v.Late, Strain: v.Strain, Rigid: v.Rigid, Counts: v.Counts}
	*cell = reports.Cell{
		World: q.Place.World, Strategy: q.Strategy, Scenario: q.Scenario, Verdict: cell.Verdict, Reason: cell.Reason,
		Anomalies: cell.Anomalies, Virtual: cell.Virtual, Elapsed: cell.Elapsed, RoundTrips: cell.RoundTrips, Measures: cell.Measures,
		MetNothing: cell.MetNothing, Lease: cell.Lease, Late: q.Late, Reruns: len(q.Late),
		// Fields that a history determines, for cells that come without one.
		Witnesses: cell.Witnesses, Findings: cell.Findings, Class: cell.Class, Unjudged: cell.Unjudged, Linearizable: cell.Linearizable, Conflict: cell.Conflict,
		Commands: cell.Commands, Nodes: cell.Nodes, Validity: cell.Validity, Tokens: cell.Tokens, Together: cell.Together, FreeWaits: cell.FreeWaits, Acquires: cell.Acquires, Leak: cell.Leak,
	}
	switch is := decided(result); {
	case !is && cell.Verdict == reports.NotApplicable && !q.Place.Real():
		return result, Wrongly("its answer to %s says that there is nothing to play, and there is", answer.Name)
	case !is && !slices.Contains([]reports.Verdict{reports.Unknown, reports.Error, reports.NotApplicable}, cell.Verdict):
		return result, Wrongly("its answer to %s has the verdict %q", answer.Name, cell.Verdict)
	case !is && cell.Reason == "":
		return result, Wrongly("its answer to %s is %s without a reason", answer.Name, cell.Verdict)
	case is && q.Count != (v.Counts != nil):
		return result, Wrongly("its answer to %s counts what nobody asked for, or does not count", answer.Name)
	case !q.Place.Real() && v.Late != 0, v.Late < 0, cell.Lease < 0, cell.Lease > item.MaxLease:
		return result, Wrongly("its answer to %s is late by %v with a lease of %v", answer.Name, v.Late, cell.Lease)
	case !is:
		v.Counts = nil
	}
	if q.history {
		if err := s.derive(q, answer, v); err != nil {
			return result, err
		}
	}
	cell.Settle()
	return result, keepLogs(q.Job, answer)
}

// derive replaces the verdict and details of an answer by the results that its history shows, and
// writes the history to its place.
func (s *Remote) derive(q question, answer queue.Answer, v *Played) error {
	text, ok := answer.Files[historyFile]
	is := decided(workerpool.Result[Played]{Value: *v})
	switch {
	case !ok && is:
		return Wrongly("its answer to %s has a verdict and no history", answer.Name)
	case !ok:
		return nil
	}
	h, err := checker.Decode(bytes.NewReader(text))
	if err != nil {
		return Wrongly("its answer to %s has a history that can't be read: %v", answer.Name, err)
	}
	meta := q.meta
	meta.Fenced = h.Meta.Fenced // learnt only during play
	if !reflect.DeepEqual(h.Meta, meta) {
		return Wrongly("its answer to %s has the history of something else", answer.Name)
	}
	cell := &v.Cell
	if is {
		was, anomalies := cell.Verdict, cell.Anomalies
		verdict := checker.Check(h)
		cell.Verdict = reports.Held
		if len(verdict.Witnesses) > 0 {
			cell.Verdict = reports.Violated
		}
		strategy, err := s.player.strategy(q.Job)
		if err != nil {
			return err
		}
		if q.Count {
			counts := count(h, verdict, strategy)
			v.Counts, cell.Lease = &counts, h.Meta.TTL
		} else {
			cell.Derive(verdict, h, leases.LockOf(strategy))
			cell.Settle()
		}
		if cell.Verdict != was || !q.Count && !slices.Equal(cell.Anomalies, anomalies) {
			return Wrongly("its answer to %s says %s, and its history is %s", answer.Name, was, cell.Verdict)
		}
	}
	if q.History == "" || q.Count {
		return nil
	}
	cell.History = q.HistoryLink
	return reports.WriteHistory(strings.TrimSuffix(q.History, filepath.FromSlash(q.HistoryLink)), q.HistoryLink, h)
}

// keepLogs writes the logs of an answer into the log directory, if one is set. keepLogs skips files
// outside the cell's own directory.
func keepLogs(j Job, answer queue.Answer) error {
	if j.Place.Logs == "" {
		return nil
	}
	var names []string
	for name := range answer.Files {
		if rest, ok := strings.CutPrefix(name, logsPrefix); ok && filepath.IsLocal(filepath.FromSlash(rest)) && path.Clean(rest) == rest {
			names = append(names, rest)
		}
	}
	if len(names) == 0 {
		return nil
	}
	in, err := below.Make(j.Place.Logs, 0o755)
	if err != nil {
		return err
	}
	defer in.Close()
	own := path.Join(j.Place.World, j.Strategy, j.Scenario) // directory of the cell's logs
	for _, name := range names {
		if path.Dir(name) != own {
			continue
		}
		file := filepath.FromSlash(name)
		err := in.MkdirAll(filepath.Dir(file), 0o755)
		if err == nil {
			err = atomicdir.InUnsynced(in, file, func(w io.Writer) error {
				_, err := w.Write(answer.Files[logsPrefix+name])
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("write the log %s: %w", name, err)
		}
	}
	return nil
}

// MaxDeaths is the number of times a job must end its process before the job is taken to be the cause.
// Before that, the cause may be a shutdown of the machine or a lack of memory.
const MaxDeaths = 3
