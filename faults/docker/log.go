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

// A place is one in a server's log. The zero value is its beginning.
type place struct {
	since  time.Time // what the container printed since then
	logged int64     // what stands in its file from there on
}

// newPage has its log begin anew.
func (s *server) newPage() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page = s.here(ctx)
}

// here returns the end of its log. Where that can't be found out it is the
// beginning: rather too much than too little. The caller holds mu.
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

// fullLog returns what it printed and logged since newPage, over all its lives. What
// a server logged before it answered, or ended, is in it.
func (s *server) fullLog() ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	printed, logged, err := s.log(ctx, s.page)
	return append(printed, logged...), err
}

// log returns what its container printed since a place, and what stands in its file.
// The caller holds mu.
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

// logged returns its file; nothing if it hasn't come to making one.
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
