package docker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/signal"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockfault/lockfault/faults/docker"
)

// slowEngine shows the container that it was asked for so late that everybody
// must believe it doesn't come.
type slowEngine struct {
	mu      sync.Mutex
	shows   time.Time
	removed bool
}

func (e *slowEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w.Header().Set("Api-Version", "1.41")
	w.Header().Set("Content-Type", "application/json")
	list := []map[string]any{}
	switch {
	case r.Method == http.MethodDelete:
		e.removed = true
	case strings.HasSuffix(r.URL.Path, "/containers/json") && !e.removed && time.Now().After(e.shows):
		list = append(list, map[string]any{"Id": "c1", "Labels": map[string]string{"lockfault.item": "container n1 1"}})
	}
	if r.Method == http.MethodGet {
		_ = json.NewEncoder(w).Encode(list)
	}
}

func TestWatchmanWaitsForASlowEngine(t *testing.T) {
	t.Cleanup(func() { signal.Reset() }) // what a watchman ignores
	engine := &slowEngine{shows: time.Now().Add(5 * time.Second)}
	at := httptest.NewServer(engine)
	defer at.Close()
	orders := fmt.Sprintf(`{"engine":"tcp://%s","run":"r"}
{"making":"network of n1 0"}
{"made":"network of n1 0"}
{"making":"container n1 1"}
`, at.Listener.Addr())
	if err := docker.Watch(strings.NewReader(orders)); err != nil {
		t.Fatal(err)
	}
	if !engine.removed {
		t.Error("the container stays")
	}
	// Whoever is dismissed doesn't look.
	engine.removed = false
	if err := docker.Watch(strings.NewReader(orders + `{"dismissed":true}`)); err != nil || engine.removed {
		t.Errorf("dismissed, it removed: %v, %v", engine.removed, err)
	}
}
