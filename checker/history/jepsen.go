package history

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/lockfault/lockfault/checker/linear"
)

// jepsen parses operations as Jepsen writes them.
type jepsen struct {
	names   names
	op      operation
	scanned bool // op holds the next piece
	begun   bool
	timed   bool              // operations have a :time
	count   time.Duration     // number of operations; used as the time if operations have no :time
	index   int64             // the last :index
	keys    map[string]string // the lock of each process's operation under way, if it has a name
	crashed endedProcesses    // the processes that an :info ended
	ignored ignoredCounts     // events that are not lock operations
}

func newJepsen() *jepsen { return &jepsen{index: -1, keys: map[string]string{}} }

// scan reads the operation at the beginning of the text into op, for the next parse, and returns
// its length; 0 if the operation is incomplete or invalid.
func (p *jepsen) scan(text []byte) int {
	if len(text) == 0 || text[0] != '{' && text[0] != '#' {
		return 0
	}
	n, err := p.op.scan(text)
	if err != nil || clean(text[:n]) != nil {
		return 0
	}
	p.scanned = true
	return n
}

func (p *jepsen) parse(text []byte, line int, out *[2]record) (int, error) {
	if p.scanned {
		p.scanned = false
	} else if len(text) > 1 && text[0] == '#' && text[1] == '_' { // a discarded value
		return 0, nil
	} else if n, err := p.op.scan(text); err != nil {
		return 0, err
	} else if n < len(text) {
		return 0, fault("there is more behind it")
	}
	client, ours, err := p.process()
	if err != nil {
		return 0, err
	}
	at, err := p.time()
	if err != nil {
		return 0, err
	}
	if !ours {
		p.ignored.add(p.op.f, p.op.process)
		return 0, nil
	}
	e := linear.Event{Time: at, Client: client}
	if e.Phase, err = phaseOf(p.op.kind); err != nil {
		return 0, err
	}
	if was, ok := p.crashed.of(client); ok {
		return 0, fmt.Errorf("process %s goes on after its :info%s, but Jepsen gives it a new number then", client, was)
	}
	known := false
	if e.Op, known, err = lockOp(p.op.f); err != nil {
		return 0, err
	}
	n := 0
	if !known {
		p.ignored.add(p.op.f, nil)
	} else if n, err = p.operation(&e); err != nil {
		return 0, err
	}
	if n > 0 {
		out[0] = record{Event: e}
	}
	if e.Phase == linear.ReturnUnknown {
		// After an :info, the process does nothing more; its thread continues as another process.
		delete(p.keys, client)
		p.crashed.add(client, line)
		out[n] = record{Event: linear.Event{Time: at, Client: client, Phase: linear.Crash}}
		n++
	}
	return n, nil
}

// operation sets the fields of e from the :value, and returns the number of events: 0 or 1.
func (p *jepsen) operation(e *linear.Event) (int, error) {
	said, err := valueOf(p.op.value)
	if err != nil {
		return 0, err
	}
	if said.hasKey {
		e.Key = p.names.of(said.key)
	} else if e.Phase != linear.Invoke && len(p.keys) > 0 {
		e.Key = p.keys[e.Client]
	}
	e.Permits, e.Shared = said.permits, said.shared
	if e.Phase == linear.ReturnOK {
		e.Token, e.Lease = said.token, said.lease
	}
	if e.Op == linear.Use {
		e.Token = said.token
		if e.Phase != linear.ReturnOK && e.Phase != linear.ReturnFail {
			return 0, nil
		}
		return 1, nil
	}
	switch {
	case e.Phase == linear.Invoke && e.Key != "":
		p.keys[e.Client] = e.Key
	case len(p.keys) > 0:
		delete(p.keys, e.Client)
	}
	return 1, nil
}

// phases maps each :type to its phase.
var phases = map[string]linear.Phase{":invoke": linear.Invoke, ":ok": linear.ReturnOK, ":fail": linear.ReturnFail, ":info": linear.ReturnUnknown}

func phaseOf(kind []byte) (linear.Phase, error) {
	if phase, ok := phases[string(kind)]; ok { // does not allocate
		return phase, nil
	}
	if _, ok := ednKeyword(kind); !ok {
		return 0, errors.New("it has no :type: there are :invoke, :ok, :fail and :info")
	}
	return 0, fmt.Errorf("there is no :type %s: there are :invoke, :ok, :fail and :info", shown(kind))
}

// process returns the name of the process, and whether it is a client: Jepsen's nemesis writes into
// the same history.
func (p *jepsen) process() (string, bool, error) {
	text := p.op.process
	if ednNil(text) {
		return "", false, errors.New("it has no :process: give the number or the name of the client")
	}
	if _, ok := ednKeyword(text); ok {
		return "", false, nil
	}
	if name, ok := numberName(text); ok {
		return p.names.of(name), true, nil
	}
	if name, ok := ednText(text); ok {
		return p.names.of(name), true, nil
	}
	return "", false, fmt.Errorf("its :process is %s, neither a number nor a name", shown(text))
}

// time returns the time of the operation, and an error if the :index does not increase.
func (p *jepsen) time() (time.Duration, error) {
	if text := p.op.index; !ednNil(text) {
		index, ok := ednNumber(text)
		if !ok {
			return 0, fmt.Errorf("its :index is %s, which is no whole number", shown(text))
		}
		if index <= p.index {
			return 0, fmt.Errorf(":index %d comes after :index %d", index, p.index)
		}
		p.index = index
	}
	p.count++
	timed := !ednNil(p.op.time)
	if !p.begun {
		p.begun, p.timed = true, timed
	}
	switch {
	case p.timed && !timed:
		return 0, errors.New("it has no :time, though the operations before it have")
	case !p.timed && timed:
		return 0, errors.New("it has a :time, though the operations before it have none")
	case !timed:
		return p.count, nil
	}
	nanoseconds, ok := ednNumber(p.op.time)
	if !ok {
		return 0, fmt.Errorf("its :time is %s, which is no whole number of nanoseconds", shown(p.op.time))
	}
	return time.Duration(nanoseconds), nil
}

// shown returns a value for an error message: short, and on one line.
func shown(text []byte) string {
	if len(text) > 40 || bytes.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return fmt.Sprintf("%.40q", text)
	}
	return string(text)
}
