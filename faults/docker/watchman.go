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
	"syscall"
	"time"

	"github.com/moby/moby/client"
)

// dirPrefix is how the name of a host's directory begins.
const dirPrefix = "lockfault-containers-"

// orders are what a watchman is told, on a line of JSON.
type orders struct {
	Engine string `json:"engine"` // where it answers
	Run    string `json:"run"`    // the label's value
	Dir    string `json:"dir"`    // the host's directory
	// Dismissed, in a second line, says that nothing is left to remove.
	Dismissed bool `json:"dismissed,omitempty"`
}

// A watchman is a process that waits for our end, which it sees as the end of
// a pipe, and removes what we left.
type watchman struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
	told orders
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
	w := &watchman{cmd: cmd, pipe: pipe, told: told}
	if err := json.NewEncoder(pipe).Encode(told); err != nil {
		return nil, errors.Join(fmt.Errorf("tell the watchman: %w", err), pipe.Close(), cmd.Wait())
	}
	return w, nil
}

// close ends the watchman. If nothing is left he goes at once; else he tries.
func (w *watchman) close(clean bool) error {
	if clean {
		w.told.Dismissed = true
		// One who has gone already is not missed any more.
		_ = json.NewEncoder(w.pipe).Encode(w.told)
	}
	_ = w.pipe.Close()
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("docker: the watchman: %w", err)
	}
	return nil
}

// quiet is for how long nothing new must come: what an engine was asked for
// before its asker died it does nevertheless.
const quiet = 3 * time.Second

// Watch is the life of a watchman: it reads from in, which a [Host] of another
// process writes to, and when that ends removes the containers, networks and
// directory that the Host left. It blocks until then, and lets no signal
// interrupt it that can be ignored.
func Watch(in io.Reader) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	lines := json.NewDecoder(in)
	var told orders
	for {
		err := lines.Decode(&told)
		if told.Dismissed || errors.Is(err, io.EOF) && told.Run == "" {
			return nil
		}
		if err != nil {
			break // the end, in the middle of a line perhaps
		}
	}
	if told.Run == "" {
		return errors.New("docker: a watchman was told nothing")
	}
	if strings.HasPrefix(filepath.Base(told.Dir), dirPrefix) {
		defer os.RemoveAll(told.Dir)
	}
	engine, err := client.New(client.FromEnv, client.WithHost(told.Engine))
	if err != nil {
		return err
	}
	defer engine.Close()
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	for since := time.Now(); time.Since(since) < quiet; time.Sleep(quiet / 10) {
		n, err := sweepOnce(ctx, engine, told.Run)
		switch {
		case ctx.Err() != nil:
			return sweep(ctx, engine, told.Run)
		case n > 0 || err != nil:
			since = time.Now()
		}
	}
	return nil
}
