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

	"github.com/lockfault/lockfault/internal/reaper"
)

// dirPrefix begins the name of a host's directory.
const dirPrefix = "lockfault-containers-"

// reaperMessage is a message to a watchman, one JSON object per line.
type reaperMessage struct {
	// On the first line: the engine's address, the run label's value, and the host's directory.
	Engine string `json:"engine,omitempty"`
	Run    string `json:"run,omitempty"`
	Dir    string `json:"dir,omitempty"`
	// The item that the engine is being asked to make, or whose request it has answered.
	Making string `json:"making,omitempty"`
	Made   string `json:"made,omitempty"`
	// Dismissed reports that nothing is left to remove.
	Dismissed bool `json:"dismissed,omitempty"`
}

// startWatchman starts a [Watch] in a separate process. A replacement process receives the first
// line again, and the items that are pending by then.
func startWatchman(command func() *exec.Cmd, told reaperMessage, making *pendingCreates) (*reaper.Reaper, error) {
	brief := func() (lines []string) {
		all := []reaperMessage{told}
		for item := range making.left() {
			all = append(all, reaperMessage{Making: item})
		}
		for _, o := range all {
			if line, err := json.Marshal(o); err == nil { // never fails for strings and a bool
				lines = append(lines, string(line))
			}
		}
		return lines
	}
	w, err := reaper.Start(command, brief)
	if err != nil {
		return nil, err
	}
	if err := send(w, told); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func send(w *reaper.Reaper, o reaperMessage) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return w.Send(string(line))
}

// After the last pending item, no new object may appear for the duration quiet. An item that never
// appears is given up after watchLimit: its requester died before it asked the engine.
const (
	quiet      = 2 * time.Second
	watchLimit = makeLimit + 30*time.Second
)

// Watch runs a watchman: it reads messages that a [Host] in another process writes to in. After the
// end of in, it removes the containers, networks and directory that the Host left. Watch blocks
// until then, and ignores interrupt, terminate and hangup signals.
func Watch(in io.Reader) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	told, making, err := listen(in)
	if err != nil || told.Dismissed || told.Run == "" {
		return err
	}
	defer removeDir(told.Dir)
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

// removeDir removes the directory of a dead host without following symbolic links. The directory
// may exist again after its own watchman removed it, because the engine recreates it for a
// container that was still being made.
func removeDir(dir string) {
	name := filepath.Base(dir)
	if !strings.HasPrefix(name, dirPrefix) {
		return
	}
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return // the directory is gone with its parent
	}
	defer parent.Close()
	_ = parent.RemoveAll(name) // no caller could handle an error
}

// listen reads messages to their end, and returns the first one and the items that are pending
// then. Empty input is no error.
func listen(in io.Reader) (told reaperMessage, making map[string]bool, err error) {
	making = map[string]bool{}
	lines := json.NewDecoder(in)
	for first := true; ; first = false {
		var line reaperMessage
		switch err := lines.Decode(&line); {
		case err == nil:
		case first && !errors.Is(err, io.EOF):
			return told, nil, fmt.Errorf("docker: a watchman was told no more than half of his orders: %w", err)
		default:
			return told, making, nil // the end, perhaps in the middle of a line
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
