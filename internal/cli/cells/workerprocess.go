package cells

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/cellresult"
	"github.com/lockfault/lockfault/internal/cli/kit"
	"github.com/lockfault/lockfault/internal/cli/selection"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/harness"
	"github.com/lockfault/lockfault/internal/leases"
	"github.com/lockfault/lockfault/internal/soak"
	"github.com/lockfault/lockfault/internal/stdio"
	"github.com/lockfault/lockfault/internal/vtime"
	"github.com/lockfault/lockfault/internal/workerpool"
	"github.com/lockfault/lockfault/internal/worlds"
	"github.com/lockfault/lockfault/reports"
	"github.com/lockfault/lockfault/scenarios"
	"github.com/lockfault/lockfault/strategies"
)

// WorkerCommand is the name of the command for worker processes: of the parent process or, with
// --queue, of a queue.
const WorkerCommand = "worker"

// Job is the work that a worker process does at a time: a cell, or the trials of a search.
type Job struct {
	Number   int // position in the report
	Strategy string
	Scenario string
	File     string // path of a user's own script, whose text is Source
	Source   []byte
	Place    worlds.Place
	Seed     uint64
	TTL      time.Duration
	Base     time.Duration `json:",omitempty"` // TTL before reruns for lateness
	Limit    time.Duration // longest real time; 0 selects the default of the world
	Fixed    bool          // the cell requires this lease, so reruns keep it
	Nodes    int           // number of nodes of the strategy; 0 selects its own
	// Observed are tags of the strategy that it does not declare: see [Settings.Observe].
	Observed []string `json:",omitempty"`
	// Subject is the user's program that is added as a strategy, or nil.
	Subject *selection.Subject `json:",omitempty"`
	// Late holds the reason why the machine was too slow for each previous play of the cell. Twin
	// reports that the lease differs from that of the run, so that the cell is played in virtual
	// time too, as a reference.
	Late []string
	Twin bool
	// Isolated reports that a cell in virtual time must not share its process with other cells.
	Isolated bool
	// Trials are the scripts of a search, each to be played for the state at its end. They replace
	// the cell.
	Trials []explore.Trial `json:",omitempty"`
	Places []int           `json:"-"` // indexes of Trials in the caller's list
	// Count asks for the counts of a soak instead of the full cell.
	Count bool `json:",omitempty"`
	// Leave asks the worker to end the runs that it cached for earlier jobs.
	Leave bool `json:",omitempty"`
	// History is the path of the file for the history, and HistoryLink its path relative to the
	// report.
	History, HistoryLink string
}

// Played is the result of a job.
type Played struct {
	Cell reports.Cell
	// Late is the amount by which the machine was too slow, or 0. A late cell should be played
	// again on a less busy machine.
	Late time.Duration
	// Strain is the lateness as a fraction of the tolerated lateness.
	Strain float64
	// Rigid reports that the script states times in seconds, so that a longer lease would change
	// its meaning.
	Rigid bool
	// Outcomes holds the outcomes of the job's trials, encoded by [pack]. The list ends with the
	// first outcome that has an error.
	Outcomes []byte `json:",omitempty"`
	// Counts holds the counts of a job with Count that ended with a verdict.
	Counts *soak.Counts `json:",omitempty"`
	// Left describes an error at the end of cached runs.
	Left string `json:",omitempty"`
}

// StartWorker returns a function that creates the command of a worker process, which runs this
// executable.
func StartWorker() (func() *exec.Cmd, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's file, to start it as a worker: %w", err)
	}
	return commandOf(executable, WorkerCommand), nil
}

// Work serves jobs as a worker process until its input ends, and then exits the process. Work
// returns only errors from before the first job. Work replaces os.Stdin and calls vtime.Main, so
// nothing else should run in the process.
func Work(a *kit.App) error {
	in := stdio.Input(os.Stdin)
	out, err := stdio.Output()
	if err != nil {
		return err
	}
	// A strategy that reads standard input must not consume the next job.
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
		p := player{registry: a.Everything, services: a.Services, containers: a.Containers, executable: executable}
		if err := workerpool.Serve(in, out, func(j Job) (Played, bool) { return p.play(t, j) }, p.abandon); err != nil {
			fmt.Fprintf(os.Stderr, "lockfault worker: %v\n", err)
			t.Fail()
		}
		p.abandon()
	})
	return nil
}

// tune sets GOMAXPROCS to 1, unless the environment sets it, and the garbage collector's target.
// The workers share the cores, and the goroutines of a cell mostly wait for one another, so a
// second thread would only add switches.
func tune() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	CollectLess()
}

// CollectLess sets GOGC to 400, unless the environment sets it: the program has little live data
// and a lot of garbage. The limit of --memory still applies.
func CollectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// player plays jobs, one at a time.
type player struct {
	registry   strategies.Registry
	services   []worlds.Service
	containers worlds.Containers
	executable string
	scripts    map[source]*scenarios.Script // parsed scripts
	runs       explore.RunCache

	env atomic.Pointer[worlds.Env] // servers of the last cell in a real world, kept for the next
}

// source identifies a script: by file and text, or by a name of the library.
type source struct{ file, name, text string }

// abandon stops the servers of the player, also during a cell. The processes of its clients end
// with this process. abandon is safe to call while play runs.
func (p *player) abandon() {
	if venue := p.env.Load(); venue != nil {
		_ = venue.Close() // the process ends: the error cannot be reported
	}
}

// play plays a job. retire reports that the process should not be used again, because goroutines of
// the job may still run.
func (p *player) play(t *testing.T, j Job) (answer Played, retire bool) {
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
		// The directory of the report is History without HistoryLink.
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
			counts := count(outcome.History, outcome.Verdict, strategy)
			answer.Counts = &counts
		}
		return answer, outcome.Status == harness.Error || outcome.Leak != ""
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
	return answer, outcome.Status == harness.Error || outcome.Leak != ""
}

// count counts a window of a soak. Locks that are not built in are judged by their class.
func count(h checker.History, v checker.Verdict, s strategies.Strategy) soak.Counts {
	counts := soak.Count(h, v)
	if !s.Builtin() {
		counts.Judge(h, leases.LockOf(s))
	}
	return counts
}

// strategy returns the strategy of a job, with the job's number of nodes.
func (p *player) strategy(j Job) (strategies.Strategy, error) {
	registry, err := j.Subject.With(p.registry)
	if err != nil {
		return strategies.Strategy{}, err
	}
	strategy, ok := registry.Lookup(j.Strategy)
	switch {
	case !ok:
		return strategy, fmt.Errorf("the worker process knows no strategy %q: does its main function give cli.Main the same registry each time?", j.Strategy)
	case j.Nodes > 0:
		strategy, err = strategy.On(j.Nodes)
	}
	strategy.Tags = append(slices.Clip(strategy.Tags), j.Observed...)
	return strategy, err
}

// cell returns the cell of a job. cell starts no clients or servers.
func (p *player) cell(j Job, strategy strategies.Strategy) (harness.Cell, error) {
	script, err := p.load(j)
	if err != nil {
		return harness.Cell{}, err
	}
	place, err := p.place(j)
	return harness.Cell{Strategy: strategy, Script: script, Place: place, Seed: j.Seed, TTL: j.TTL}, err
}

// playTrials plays trials until one ends in an error.
func (p *player) playTrials(t *testing.T, j Job, strategy strategies.Strategy) (looks []explore.Outcome, retire bool) {
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
	return looks, p.runs.Worn()
}

// place returns the place in which a job is played, nil for virtual time. place keeps the servers
// of the previous job if they fit, and otherwise stops them. Processes of clients and the watchman
// run this executable.
func (p *player) place(j Job) (harness.Place, error) {
	if !j.Place.Real() {
		return nil, nil // virtual time
	}
	if venue := p.env.Load(); venue != nil {
		if venue.Is(j.Place) {
			return venue, nil
		}
		if err := venue.Close(); err != nil {
			return nil, err
		}
	}
	venue, err := worlds.NewVenue(j.Place, worlds.Programs{Client: bare(commandOf(p.executable, ClientCommand)), Watchman: commandOf(p.executable, WatchmanCommand), Services: p.services, Containers: p.containers})
	if err != nil {
		return nil, err
	}
	p.env.Store(venue)
	return venue, nil
}

// mostScripts is the largest number of cached scripts: soaks and maps have a new script for each
// job.
const mostScripts = 64

// load returns the parsed script of a job, from the cache if possible.
func (p *player) load(j Job) (*scenarios.Script, error) {
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

// ClientCommand is the name of the hidden command that runs a process as a client.
const ClientCommand = "client"

// The package testcontainers reads the list of all processes of the machine when a program starts.
// Reading the list takes half of the start time of a client, and more with many clients, although
// clients use no containers. Clients are therefore started with HOST_PROC set to a path that does
// not exist.
const (
	procVariable = "HOST_PROC"
	noProc       = "/nonexistent"
)

// bare returns a function that creates the command of a client, with HOST_PROC set to noProc. If
// the user has set HOST_PROC, bare returns command unchanged.
func bare(command func() *exec.Cmd) func() *exec.Cmd {
	if os.Getenv(procVariable) != "" {
		return command
	}
	return func() *exec.Cmd {
		cmd := command()
		cmd.Env = append(cmd.Environ(), procVariable+"="+noProc)
		return cmd
	}
}

// WatchmanCommand is the name of the hidden command that removes the containers of a killed parent
// process.
const WatchmanCommand = "watchman"

// commandOf returns a function that creates a command that runs an executable with the given
// subcommand.
func commandOf(executable, command string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(executable, command)
		cmd.Args[0] = os.Args[0] // for a program with several names
		return cmd
	}
}

// pack encodes outcomes with gob. Outcomes are most of the traffic between processes, and encoding
// them as JSON would take as long as playing many a script.
func pack(looks []explore.Outcome) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(looks)
	return b.Bytes(), err
}

// Unpack decodes the output of pack.
func Unpack(text []byte) (looks []explore.Outcome, err error) {
	err = gob.NewDecoder(bytes.NewReader(text)).Decode(&looks)
	return looks, err
}

// ShowProc undoes what bare did to the environment of a client, so that its lock does not see it.
func ShowProc() {
	if os.Getenv(procVariable) == noProc {
		os.Unsetenv(procVariable)
	}
}
