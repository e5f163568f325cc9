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

// dirPrefix is how the name of a host's directory begins.
const dirPrefix = "lockfault-containers-"

// reaperMessage are what a watchman is told, on lines of JSON.
type reaperMessage struct {
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

// startWatchman starts a [Watch] in a process of its own. A replacement is told the first line again, and
// what is in the making then.
func startWatchman(command func() *exec.Cmd, told reaperMessage, making *pendingCreates) (*reaper.Reaper, error) {
	brief := func() (lines []string) {
		all := []reaperMessage{told}
		for item := range making.left() {
			all = append(all, reaperMessage{Making: item})
		}
		for _, o := range all {
			if line, err := json.Marshal(o); err == nil { // always: strings and a bool
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

// removeDir removes the directory of a dead host, which follows no symbolic link. The directory's own
// watchman may have removed the directory, and the engine has made it again for a container that it was
// still making.
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
	_ = parent.RemoveAll(name) // nobody reads an error
}

// listen hears the orders to their end: the first line, and what was in the
// making then. Nothing at all is no error.
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
