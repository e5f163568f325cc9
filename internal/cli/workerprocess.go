package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfault/lockfault/internal/cellresult"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/soak"
	"github.com/lockfault/lockfault/internal/stdio"
	"github.com/lockfault/lockfault/internal/vtime"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// workerCommand is the name of the command that makes a process a worker: of its parent,
// unless --join names a queue.
const workerCommand = "worker"

// A job is one cell for a worker to play.
type job struct {
	Number   int // in the order of the report
	Strategy string
	Scenario string
	File     string // of a user's own script, with its Source
	Source   []byte
	Place    worlds.Place
	Seed     uint64
	TTL      time.Duration
	Base     time.Duration `json:",omitempty"` // what TTL was before the machine was too slow
	Limit    time.Duration // real time that it may take; 0 is what its world takes
	Fixed    bool          // the lease is what the cell is about, and stays
	Nodes    int           // of the strategy, if not its own number
	// Subject is a program of the user's that is a strategy too; nil if there is none.
	Subject *subject `json:",omitempty"`
	// Late is how the machine was too slow each time that the cell was played
	// before. Twin says that the lease is not that of the run, so that the cell
	// is played in virtual time, too.
	Late []string
	Twin bool
	// Isolated says that a cell of virtual time leaves nothing behind for others, nor
	// they for it.
	Isolated bool
	// Trials ask for how cells stand at their ends, as a search wants to know it; each has its
	// script.
	Trials []explore.Trial `json:",omitempty"`
	places []int           // of these, for who handed them out
	// Count asks for what is counted of the history, in place of all that a report says of it.
	Count bool `json:",omitempty"`
	// Leave asks for what the runs leave that were kept of former jobs.
	Leave bool `json:",omitempty"`
	// History is the file to write the history to, and HistoryLink what to
	// call it in the results.
	History, HistoryLink string
}

// played is what a worker answers.
type played struct {
	Cell reports.Cell
	// Late is by how much the machine was too slow, if it was: the cell should
	// be played again, when less is going on.
	Late time.Duration
	// Strain is how late it was in parts of what would be too much.
	Strain float64
	// Rigid says that the script tells time in seconds: a longer lease would
	// make another script of it.
	Rigid bool
	// Outcomes are how the cells of a job's trials stood at their ends; see [pack]. After one that ended in an error
	// there is none.
	Outcomes []byte `json:",omitempty"`
	// Counts are of a job that asks for them, if it came to its end.
	Counts *soak.Counts `json:",omitempty"`
	// Left is what was wrong with the end of runs that were kept.
	Left string `json:",omitempty"`
}

// startWorker returns the command of a worker process: this executable.
func startWorker() (func() *exec.Cmd, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's file, to start it as a worker: %w", err)
	}
	return func() *exec.Cmd {
		cmd := exec.Command(executable, workerCommand)
		cmd.Args[0] = os.Args[0] // for a program that goes by several names
		return cmd
	}, nil
}

// work is the life of a worker process. It does not return.
func work(a *app) error {
	in := stdio.Input(os.Stdin)
	out, err := stdio.Output()
	if err != nil {
		return err
	}
	// What a strategy reads is not meant to be the next job.
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	os.Stdin = null
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	tune()
	vtime.Main(func(t *testing.T) {
		p := player{registry: a.everything, services: a.services, executable: executable}
		if err := workerpool.Serve(in, out, func(j job) (played, bool) { return p.play(t, j) }, p.abandon); err != nil {
			fmt.Fprintf(os.Stderr, "lockfault worker: %v\n", err)
			t.Fail()
		}
		p.abandon()
	})
	return nil
}

// tune fits the runtime to a worker, unless its environment says otherwise. The
// workers share the cores among them, and the goroutines of one cell mostly
// wait for one another, so a second thread would only hand them to and fro.
func tune() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	collectLess()
}

// collectLess fits the garbage collector to this program, unless its environment says
// otherwise: what it keeps is small, but it makes a lot of garbage. What --memory sets is
// kept to all the same.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// A player plays jobs, one at a time.
type player struct {
	registry   strategies.Registry
	services   []worlds.Service
	executable string
	scripts    map[source]*scenarios.Script // that were parsed
	runs       explore.RunCache

	env atomic.Pointer[worlds.Env] // of the last cell on real servers; it has those still
}

// source is where a script is from: a file with its text, or the library.
type source struct{ file, name, text string }

// abandon ends the servers that there are, also those of a cell that is being
// played. Its clients' processes end with this one.
func (p *player) abandon() {
	if venue := p.env.Load(); venue != nil {
		_ = venue.Close() // nobody is left to be told
	}
}

// play plays a cell. Its process had better not be used again if goroutines
// may be left over from it.
func (p *player) play(t *testing.T, j job) (answer played, retire bool) {
	cell := &answer.Cell
	*cell = reports.Cell{World: j.Place.World, Strategy: j.Strategy, Scenario: j.Scenario, Verdict: reports.Error}
	defer func() { cell.Settle() }()
	strategy, err := p.strategy(j)
	if err != nil {
		cell.Reason = err.Error()
		return answer, false
	}
	if j.Leave {
		answer.Left = p.runs.End()
		return answer, answer.Left != ""
	}
	if len(j.Trials) > 0 {
		looks, retire := p.playTrials(t, j, strategy)
		if answer.Outcomes, err = pack(looks); err != nil {
			cell.Reason = err.Error()
		}
		return answer, retire
	}
	played, err := p.cell(j, strategy)
	if err != nil {
		cell.Reason = err.Error()
		return answer, false
	}
	outcome := harness.Play(t, played)
	if len(outcome.History.Events) > 0 && j.History != "" {
		// The directory of the attempt ends where the name in the results begins.
		dir := strings.TrimSuffix(j.History, filepath.FromSlash(j.HistoryLink))
		if err := reports.WriteHistory(dir, j.HistoryLink, outcome.History); err != nil {
			cell.Verdict, cell.Reason = reports.Error, err.Error()
			return answer, true
		}
	}
	if j.Count {
		cell.Verdict, cell.Reason, cell.Lease = reports.Verdict(outcome.Status), outcome.Reason, outcome.History.Meta.TTL
		cell.Late, cell.Reruns = j.Late, len(j.Late)
		answer.Late, answer.Strain = outcome.Late, outcome.Strain
		if cell.Verdict == reports.Held || cell.Verdict == reports.Violated {
			counts := soak.Count(outcome.History, outcome.Verdict)
			answer.Counts = &counts
		}
		return answer, outcome.Status == harness.Error
	}
	*cell = cellresult.Cell(j.Place.World, played, outcome)
	if len(outcome.History.Events) > 0 && j.History != "" {
		cell.History = j.HistoryLink
	}
	cell.Late, cell.Reruns = j.Late, len(j.Late)
	answer.Late, answer.Strain, answer.Rigid = outcome.Late, outcome.Strain, played.Script.Rigid()
	if j.Twin && (cell.Verdict == reports.Held || cell.Verdict == reports.Violated) {
		played.Place = nil
		twin := harness.Play(t, played)
		cell.Twin = &reports.ReferenceCell{Verdict: reports.Verdict(twin.Status), Anomalies: twin.Verdict.Anomalies()}
	}
	return answer, outcome.Status == harness.Error
}

// strategy returns the job's strategy, on as many nodes as the job asks for.
func (p *player) strategy(j job) (strategies.Strategy, error) {
	registry, err := j.Subject.with(p.registry)
	if err != nil {
		return strategies.Strategy{}, err
	}
	strategy, ok := registry.Lookup(j.Strategy)
	switch {
	case !ok:
		return strategy, fmt.Errorf("the worker process knows no strategy %q: does its main function give cli.Main the same registry each time?", j.Strategy)
	case j.Nodes > 0:
		return strategy.On(j.Nodes)
	}
	return strategy, nil
}

// cell returns the job's cell with that strategy. It starts nothing.
func (p *player) cell(j job, strategy strategies.Strategy) (harness.Cell, error) {
	script, err := p.load(j)
	if err != nil {
		return harness.Cell{}, err
	}
	place, err := p.place(j)
	return harness.Cell{Strategy: strategy, Script: script, Place: place, Seed: j.Seed, TTL: j.TTL}, err
}

// playTrials plays trials, until one of them ends in an error.
func (p *player) playTrials(t *testing.T, j job, strategy strategies.Strategy) (looks []explore.Outcome, retire bool) {
	for _, trial := range j.Trials {
		var look explore.Outcome
		if script, err := scenarios.Parse("found.txt", []byte(trial.Script)); err != nil {
			look.Err = err.Error()
		} else {
			look = p.runs.Play(t, harness.Cell{Strategy: strategy, Script: script, Seed: j.Seed}, trial)
		}
		if looks = append(looks, look); look.Err != "" {
			return looks, true
		}
	}
	return looks, false
}

// place returns where the job's cell is to be played. Clients' processes and
// watchmen are this executable too.
func (p *player) place(j job) (harness.Place, error) {
	if !j.Place.Real() {
		return nil, nil // in virtual time
	}
	if venue := p.env.Load(); venue != nil {
		if venue.Is(j.Place) {
			return venue, nil
		}
		if err := venue.Close(); err != nil {
			return nil, err
		}
	}
	venue, err := worlds.NewVenue(j.Place, worlds.Programs{Client: bare(p.commandOf(clientCommand)), Watchman: p.commandOf(watchmanCommand), Services: p.services})
	if err != nil {
		return nil, err
	}
	p.env.Store(venue)
	return venue, nil
}

// mostScripts is how many scripts a worker keeps: soaks and maps have one for each job.
const mostScripts = 64

// load returns the job's script.
func (p *player) load(j job) (*scenarios.Script, error) {
	of := source{j.File, j.Scenario, string(j.Source)}
	if script := p.scripts[of]; script != nil {
		return script, nil
	}
	var script *scenarios.Script
	var err error
	if j.File != "" {
		script, err = scenarios.Parse(j.File, j.Source)
	} else {
		script, err = scenarios.Lookup(j.Scenario)
	}
	if err != nil {
		return nil, err
	}
	if len(p.scripts) >= mostScripts || p.scripts == nil {
		p.scripts = map[source]*scenarios.Script{}
	}
	p.scripts[of] = script
	return script, nil
}
