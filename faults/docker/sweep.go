package docker

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"github.com/lockfault/lockfault/internal/tempdir"
)

// sweep removes the containers of a run, whatever their state, and then its networks. It returns
// when none exist and every pending item has appeared and been removed. When ctx is done, it
// returns an error with the number of remaining objects and the last cause. Another process may run
// the same sweep.
func sweep(ctx context.Context, engine *client.Client, run string, making map[string]bool) error {
	for {
		n, err := sweepOnce(ctx, engine, run, making)
		if n == 0 && err == nil && len(making) == 0 {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("docker: %d containers and networks with the label %s=%s are still there, or yet to come: remove them by docker rm --force and docker network rm (%w)",
				n+len(making), runLabel, run, oneLine(fmt.Errorf("%w: %v", ctx.Err(), err)))
		}
	}
}

// sweepOnce tries once to remove all objects of a run. It returns the number of objects that it
// could not remove and the last cause, and deletes the objects that it saw from making.
func sweepOnce(ctx context.Context, engine *client.Client, run string, making map[string]bool) (left int, why error) {
	ours := make(client.Filters).Add("label", runLabel+"="+run)
	containers, err := engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		return 0, err
	}
	errs := make([]error, len(containers.Items))
	var removals sync.WaitGroup
	for i, c := range containers.Items {
		delete(making, c.Labels[itemLabel])
		removals.Go(func() {
			_, errs[i] = engine.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		})
	}
	removals.Wait()
	networks, err := engine.NetworkList(ctx, client.NetworkListOptions{Filters: ours})
	if err != nil {
		return 0, err
	}
	more := make([]error, len(networks.Items))
	for i, n := range networks.Items {
		delete(making, n.Labels[itemLabel])
		removals.Go(func() { _, more[i] = engine.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{}) })
	}
	removals.Wait()
	for _, err := range append(errs, more...) {
		if err != nil {
			left, why = left+1, err
		}
	}
	return left, why
}

// sweepDead removes the containers and networks of hosts whose processes and watchmen were killed
// and whose directories still exist in the parent directory. A missing directory proves nothing:
// its owner may be in another container. After an error they stay until the next host.
func sweepDead(ctx context.Context, engine *client.Client, parent string) {
	labelled := make(client.Filters).Add("label", dirLabel)
	runs := map[string]bool{}
	note := func(labels map[string]string) {
		if dir := labels[dirLabel]; filepath.Dir(dir) == parent && strings.HasPrefix(filepath.Base(dir), dirPrefix) && tempdir.Abandoned(dir) {
			runs[labels[runLabel]] = true
		}
	}
	containers, err := engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: labelled})
	if err != nil {
		return
	}
	for _, c := range containers.Items {
		note(c.Labels)
	}
	networks, err := engine.NetworkList(ctx, client.NetworkListOptions{Filters: labelled})
	if err != nil {
		return
	}
	for _, n := range networks.Items {
		note(n.Labels)
	}
	for run := range runs {
		_, _ = sweepOnce(ctx, engine, run, map[string]bool{})
	}
}
