package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/moby/moby/client"
)

// dirPrefix is how the name of a host's directory begins.
const dirPrefix = "lockfault-containers-"

// orders are what a watchman is told, on lines of JSON.
type orders struct {
	// On the first line: where the engine answers, the run label's value, and
	// the host's directory.
	Engine string `json:"engine,omitempty"`
	Run    string `json:"run,omitempty"`
	Dir    string `json:"dir,omitempty"`
	// What the engine is being asked to make, and what it has answered for.
	Making string `json:"making,omitempty"`
	Made   string `json:"made,omitempty"`
	// Nothing is left to remove.
	Dismissed bool `json:"dismissed,omitempty"`
}

// A watchman is a process that waits for our end, which it sees as the end of
// a pipe, and removes what we left. A nil one hears nothing. Safe for concurrent
// use.
type watchman struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	pipe io.WriteCloser
}

func startWatchman(cmd *exec.Cmd, told orders) (*watchman, error) {
	detach(cmd)
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start a watchman: %w", err)
	}
	w := &watchman{cmd: cmd, pipe: pipe}
	if err := w.tell(told); err != nil {
		return nil, errors.Join(err, pipe.Close(), cmd.Wait())
	}
	return w, nil
}

func (w *watchman) tell(o orders) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := json.NewEncoder(w.pipe).Encode(o); err != nil {
		return fmt.Errorf("tell the watchman: %w", err)
	}
	return nil
}

// close ends the watchman. If nothing is left he goes at once; else he tries.
func (w *watchman) close(clean bool) error {
	if clean {
		// One who has gone already is not missed any more.
		_ = w.tell(orders{Dismissed: true})
	}
	_ = w.pipe.Close()
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("docker: the watchman: %w", err)
	}
	return nil
}

// When nothing is in the making any more, nothing new must come for as long as
// quiet. A making that never comes is given up after the limit: the engine was
// not asked yet when its asker died.
const (
	quiet      = 2 * time.Second
	watchLimit = makeLimit + 30*time.Second
)

// Watch is the life of a watchman: it reads from in, which a [Host] of another
// process writes to, and when that ends removes the containers, networks and
// directory that the Host left. It blocks until then, and lets no signal
// interrupt it that can be ignored.
func Watch(in io.Reader) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	told, making, err := listen(in)
	if err != nil || told.Dismissed || told.Run == "" {
		return err
	}
	if strings.HasPrefix(filepath.Base(told.Dir), dirPrefix) {
		defer os.RemoveAll(told.Dir)
	}
	engine, err := client.New(client.FromEnv, client.WithHost(told.Engine))
	if err != nil {
		return err
	}
	defer engine.Close()
	ctx, cancel := context.WithTimeout(context.Background(), watchLimit)
	defer cancel()
	for since := time.Now(); len(making) > 0 || time.Since(since) < quiet; time.Sleep(quiet / 10) {
		n, err := sweepOnce(ctx, engine, told.Run, making)
		switch {
		case ctx.Err() != nil && n == 0:
			return nil
		case ctx.Err() != nil:
			return err
		case n > 0 || err != nil:
			since = time.Now()
		}
	}
	return nil
}

// listen hears the orders to their end: the first line, and what was in the
// making then. Nothing at all is no error.
func listen(in io.Reader) (told orders, making map[string]bool, err error) {
	making = map[string]bool{}
	lines := json.NewDecoder(in)
	for first := true; ; first = false {
		var line orders
		switch err := lines.Decode(&line); {
		case err == nil:
		case first && !errors.Is(err, io.EOF):
			return told, nil, fmt.Errorf("docker: a watchman was told no more than half of his orders: %w", err)
		default:
			return told, making, nil // the end, in the middle of a line perhaps
		}
		if first {
			told = line
		}
		told.Dismissed = line.Dismissed
		if line.Making != "" {
			making[line.Making] = true
		}
		delete(making, line.Made)
	}
}
