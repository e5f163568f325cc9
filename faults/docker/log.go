package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
)

// A place is a position in a server's log. The zero value is the beginning.
type place struct {
	since  time.Time // start of the container's output
	logged int64     // start in the log file, in bytes
}

// newPage makes fullLog begin at the current end of the log.
func (s *server) newPage() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page = s.here(ctx)
}

// here returns the end of the log, or its beginning if the end can't be found: too much is better
// than too little. The caller holds mu.
func (s *server) here(ctx context.Context) place {
	if s.container == nil {
		return place{}
	}
	at := place{since: time.Now()}
	file, err := s.host.engine.ContainerStatPath(ctx, s.container.GetContainerID(), client.ContainerStatPathOptions{Path: logFile})
	if err == nil {
		at.logged = file.Stat.Size
	}
	return at
}

// fullLog returns what the server printed and logged since newPage, over all its starts. The result
// includes what a server logged before it answered or ended.
func (s *server) fullLog() ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	printed, logged, err := s.log(ctx, s.page)
	return append(printed, logged...), err
}

// log returns the container's output and the content of its log file since a place. The caller
// holds mu.
func (s *server) log(ctx context.Context, since place) (printed, logged []byte, err error) {
	if s.container == nil {
		return nil, nil, nil
	}
	if printed, err = s.output(ctx, since.since); err != nil {
		return nil, nil, err
	}
	logged, err = s.logged(ctx)
	return printed, logged[min(since.logged, int64(len(logged))):], err
}

func (s *server) output(ctx context.Context, since time.Time) ([]byte, error) {
	options := client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true}
	if !since.IsZero() {
		options.Since = since.Format(time.RFC3339Nano)
	}
	stream, err := s.host.engine.ContainerLogs(ctx, s.container.GetContainerID(), options)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var text bytes.Buffer
	_, err = stdcopy.StdCopy(&text, &text, stream)
	return text.Bytes(), err
}

// logged returns the content of the log file; empty if the server hasn't created it.
func (s *server) logged(ctx context.Context) ([]byte, error) {
	copied, err := s.host.engine.CopyFromContainer(ctx, s.container.GetContainerID(), client.CopyFromContainerOptions{SourcePath: logFile})
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer copied.Content.Close()
	archive := tar.NewReader(copied.Content)
	if _, err := archive.Next(); err != nil {
		return nil, err
	}
	return io.ReadAll(archive)
}
