// Package dockertest reports to tests whether an engine is available, and prepares an image for
// them. It is for tests only.
package dockertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/lockfault/lockfault/faults/docker"
)

// Host returns a host of containers that closes with the test. An empty image or directory in the
// options is filled in, and the local image is built if it is missing. Without an engine, ok is
// false: Host has checked the text of the engine error and logged it, and the test should return.
// No test is skipped: an available engine is always used.
func Host(t *testing.T, options docker.Options) (h *docker.Host, ok bool) {
	t.Helper()
	if !Ready(t) {
		return nil, false
	}
	if options.Image == "" {
		options.Image = docker.LocalImage
	}
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	h, err := docker.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h, true
}

// Ready makes sure that the image [docker.LocalImage] exists, or returns false without an engine,
// as Host does.
func Ready(t *testing.T) bool {
	t.Helper()
	var none *docker.EngineError
	err := docker.Prepare(t.Context(), docker.LocalImage)
	switch missing := (*docker.ImageError)(nil); {
	case errors.As(err, &missing):
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		err = docker.BuildImage(ctx, "")
	case errors.As(err, &none):
		if text := err.Error(); strings.Contains(text, "\n") || !strings.Contains(text, "start it") {
			t.Errorf("without an engine: %s", text)
		}
		t.Logf("played without containers: %v", err)
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// Left returns the containers and networks of hosts whose directories are under dir.
func Left(t *testing.T, dir string) (what []string) {
	t.Helper()
	engine, err := client.New(client.FromEnv)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	filter := make(client.Filters).Add("label", "lockfault.dir")
	containers, err := engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filter})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range containers.Items {
		if strings.HasPrefix(c.Labels["lockfault.dir"], dir) {
			what = append(what, "container "+c.ID)
		}
	}
	networks, err := engine.NetworkList(ctx, client.NetworkListOptions{Filters: filter})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range networks.Items {
		if strings.HasPrefix(n.Labels["lockfault.dir"], dir) {
			what = append(what, "network "+n.ID)
		}
	}
	return what
}
