package cli

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/lockfault/lockfault/internal/pool"
	"github.com/lockfault/lockfault/queue"
)

// shared plays jobs on other machines: it is to them what [pool.Run] is to processes.
type shared struct{ queue.Campaign }

// ahead is how many jobs of a command are on a queue at a time at most.
const ahead = 4096

// run is [pool.Run] by the workers of the queue, which have options of their own.
func (s *shared) run(ctx context.Context, _ pool.Options, jobs iter.Seq[job], done func(job, pool.Result[played]) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	by := map[string]job{}             // those that are not answered yet
	sent := make(chan struct{}, ahead) // one for each
	go func() {
		defer close(sent)
		for j := range jobs {
			item, err := itemOf(j)
			if err != nil {
				cancel(err)
				return
			}
			mu.Lock()
			by[item.Name] = j
			mu.Unlock()
			select {
			case sent <- struct{}{}:
			case <-ctx.Done():
				return
			}
			if err := s.Put(ctx, item); err != nil {
				cancel(err)
				return
			}
		}
	}()
	for range sent {
		answer, err := s.Next(ctx)
		if err != nil {
			return err
		}
		mu.Lock()
		j := by[answer.Name]
		delete(by, answer.Name)
		mu.Unlock()
		result, err := take(j, answer)
		if err == nil {
			err = done(j, result)
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// itemOf returns the item that is a job. Its name tells all that is in it, so what was
// asked before has its answer.
func itemOf(j job) (queue.Item, error) {
	if j.History == "" {
		j.HistoryLink = ""
	}
	j.History, j.Place.Logs, j.Place.Temp = "", "", "" // its worker has directories of its own
	body, err := json.Marshal(j)
	return queue.Item{Kind: queue.Cell, Name: itemName(body, j.Strategy, j.Scenario, j.Place.World), Body: body}, err
}

// itemName returns a name for an item: some words, and a digest of what is in it.
func itemName(body []byte, words ...string) string {
	tame := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}
	const most = 40 // of a word
	name := ""
	for _, word := range words {
		word = strings.Map(tame, word)
		name += word[:min(len(word), most)] + "-"
	}
	sum := sha256.Sum256(body)
	return name + fmt.Sprintf("%x", sum[:12])
}

// take reads the answer to a job, and puts its files where they are to be.
func take(j job, answer queue.Answer) (result pool.Result[played], err error) {
	if err := json.Unmarshal(answer.Body, &result); err != nil {
		return result, fmt.Errorf("the answer to %s can't be read: %w", answer.Name, err)
	}
	for name, text := range answer.Files {
		path := filepath.Join(filepath.Dir(j.Place.Logs), filepath.FromSlash(name))
		switch {
		case name == j.HistoryLink:
			path = j.History
		case j.Place.Logs == "" || !filepath.IsLocal(filepath.FromSlash(name)):
			continue // nobody asked for it
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return result, err
		}
		if err := os.WriteFile(path, text, 0o666); err != nil {
			return result, err
		}
	}
	return result, nil
}
