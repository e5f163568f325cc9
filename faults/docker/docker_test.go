package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/docker"
	"github.com/lockfault/lockfault/faults/docker/dockertest"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/faults/real/proxy"
	"github.com/lockfault/lockfault/internal/rediscli"
)

const password = "s3cret \"of\" these#tests"

// What a process of this test does that isn't the test.
const (
	asWatchman = "LOCKFAULT_TEST_WATCHMAN"
	asParent   = "LOCKFAULT_TEST_PARENT_DIR"
	asNobody   = "LOCKFAULT_TEST_NO_ENGINE"
)

type quietLog struct{}

func (quietLog) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(quietLog{})
	var err error
	switch {
	case os.Getenv(asWatchman) != "":
		err = docker.Watch(os.Stdin)
	case os.Getenv(asParent) != "":
		err = parent(os.Getenv(asParent))
	case os.Getenv(asNobody) != "":
		_, err = docker.New(context.Background(), docker.Options{})
		var none *docker.EngineError
		fmt.Println(errors.As(err, &none), err)
		err = nil
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func watchman() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asWatchman+"=1", asParent+"=", "GORACE=atexit_sleep_ms=0") // or it takes a second to end
	return cmd
}

func start(t *testing.T, h real.Host, spec real.ServerSpec) real.ManagedServer {
	t.Helper()
	spec.Password = password
	s, err := h.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return s.(real.ManagedServer)
}

func connect(t *testing.T, addr string) *redis.Client {
	t.Helper()
	o := rediscli.Options(addr)
	o.Password = password
	c := redis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// eventually fails the test if the condition doesn't come true in a time that
// is far more than enough.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long: %s", what)
		}
	}
}

// engine returns a client of the engine itself.
func engine(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.FromEnv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ours returns what the engine has with the label.
func ours(t *testing.T, c *client.Client, label string) (containers, networks []string) {
	t.Helper()
	filter := make(client.Filters).Add("label", label)
	list, err := c.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: filter})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		containers = append(containers, item.ID)
	}
	nets, err := c.NetworkList(t.Context(), client.NetworkListOptions{Filters: filter})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range nets.Items {
		networks = append(networks, item.ID)
	}
	return containers, networks
}

// run returns the label of the run that the server at addr belongs to.
func run(t *testing.T, c *client.Client, addr string) (label, container string) {
	t.Helper()
	list, err := c.ContainerList(t.Context(), client.ContainerListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(addr)
	for _, item := range list.Items {
		for _, p := range item.Ports {
			if fmt.Sprint(p.PublicPort) == port {
				return "lockfault.run=" + item.Labels["lockfault.run"], item.ID
			}
		}
	}
	t.Fatalf("no container has port %s", port)
	return "", ""
}

// TestServerIsPrivateAndGoes checks that a server requires the password, that its container doesn't
// reveal the password, that the port is published only on loopback, and that Close removes
// container, network and directory.
func TestServerIsPrivateAndGoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, ok := dockertest.Host(t, docker.Options{Dir: dir, Watchman: watchman})
	if !ok {
		return
	}
	s := start(t, h, real.ServerSpec{Name: "n1-0", Node: "n1"})
	if err := connect(t, s.Addr()).Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	naked := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, Protocol: 2})
	defer naked.Close()
	if err := naked.Get(t.Context(), "k").Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without a password: %v", err)
	}
	c := engine(t)
	label, id := run(t, c, s.Addr())
	made, err := c.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(made.Container)
	if err != nil || strings.Contains(string(text), "s3cret") {
		t.Errorf("the container tells the password: %v", err)
	}
	for port, bindings := range made.Container.NetworkSettings.Ports {
		for _, b := range bindings {
			if !b.HostIP.IsLoopback() {
				t.Errorf("%s is published at %s", port, b.HostIP)
			}
		}
	}
	if _, err := h.Start(t.Context(), real.ServerSpec{Name: "n1-0", Password: password}); err == nil {
		t.Error("two servers have one name")
	}
	for _, spec := range []real.ServerSpec{{Name: "n2"}, {Name: "../n2", Password: password}, {Name: "n2", Password: "a\nb"}} {
		if _, err := h.Start(t.Context(), spec); err == nil {
			t.Errorf("started %+v", spec)
		}
	}
	for range 2 {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if containers, networks := ours(t, c, label); len(containers)+len(networks) > 0 {
		t.Errorf("left: containers %v, networks %v", containers, networks)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := h.Start(t.Context(), real.ServerSpec{Name: "n9", Password: password}); err == nil {
		t.Error("a closed host started a server")
	}
}

// TestInsist checks the retry of a change that an engine refuses because of a late event of the
// previous one.
func TestInsist(t *testing.T) {
	t.Parallel()
	late, over := fmt.Errorf("not paused: %w", errdefs.ErrConflict), errors.New("it has ended")
	refused, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name    string
		ctx     context.Context
		answers []error // the last of them is given again
		state   error
		asked   int
		want    error
	}{
		{"at once", t.Context(), []error{nil}, nil, 1, nil},
		{"the third time", t.Context(), []error{late, late, nil}, nil, 3, nil},
		{"another error", t.Context(), []error{late, os.ErrPermission}, nil, 2, os.ErrPermission},
		{"none runs", t.Context(), []error{late}, over, 1, over},
		{"never", refused, []error{late}, nil, 1, errdefs.ErrConflict},
	} {
		asked := 0
		err := docker.Insist(c.ctx, func() error {
			asked++
			return c.answers[min(asked, len(c.answers))-1]
		}, func(context.Context) error { return c.state })
		if !errors.Is(err, c.want) || asked != c.asked {
			t.Errorf("%s: asked %d times, %v", c.name, asked, err)
		}
	}
}

func TestPauseAndKill(t *testing.T) {
	t.Parallel()
	h, ok := dockertest.Host(t, docker.Options{})
	if !ok {
		return
	}
	s := start(t, h, real.ServerSpec{Name: "n1"})
	c := connect(t, s.Addr())
	for range 5 {
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		answered := make(chan error, 1)
		go func() { answered <- c.Incr(context.WithoutCancel(t.Context()), "n").Err() }()
		select {
		case err := <-answered:
			t.Fatalf("a paused server answers: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Restart(t.Context(), true); err == nil || !strings.Contains(err.Error(), "kill it first") {
		t.Errorf("a running server was restarted: %v", err)
	}
	for _, do := range []func() error{s.Resume, s.Pause, s.Pause, s.Kill, s.Kill} {
		if err := do(); err != nil {
			t.Error(err)
		}
	}
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("a killed server answers")
	}
	if err := s.Pause(); err == nil {
		t.Error("a server that has ended was paused")
	}
	if err := s.Resume(); err == nil {
		t.Error("a server that has ended was resumed")
	}
	if err := s.Restart(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if n, err := connect(t, s.Addr()).Get(t.Context(), "n").Int(); err != nil || n != 5 {
		t.Errorf("n is %d, %v", n, err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if n, err := connect(t, s.Addr()).DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("%d keys, %v", n, err)
	}
	// The log goes on over all three lives, and has what a server said before it answered.
	logs := t.TempDir()
	lives := func(want int) {
		t.Helper()
		if err := h.CopyLogs(logs); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(logs + "/n1.log")
		if n := strings.Count(string(text), "Ready to accept connections"); err != nil || n != want {
			t.Errorf("%d lives in the log, want %d, %v:\n%s", n, want, err, text)
		}
	}
	lives(3)
	h.NewPage()
	lives(0)
	if err := errors.Join(s.Kill(), s.Restart(t.Context(), false), s.Pause()); err != nil {
		t.Fatal(err)
	}
	lives(1)
}

// A replica reaches its primary through a link of this process, and a killed
// primary comes back as a replica.
func TestReplicaFollowsThroughALink(t *testing.T) {
	t.Parallel()
	h, ok := dockertest.Host(t, docker.Options{})
	if !ok {
		return
	}
	ctx := t.Context()
	gateway, err := h.Gateway(ctx, "n1")
	if err != nil {
		t.Fatal(err)
	}
	links := proxy.New(nil)
	defer links.Close()
	primary := start(t, h, real.ServerSpec{Name: "n1-0", Node: "n1"})
	link, err := links.OpenAt(gateway, "replication", primary.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	replica := start(t, h, real.ServerSpec{Name: "n1-1", Node: "n1"})
	if err := connect(t, primary.Addr()).Set(ctx, "k", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	r := connect(t, replica.Addr())
	host, port, _ := net.SplitHostPort(link.Addr())
	if err := r.ReplicaOf(ctx, host, port).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica has the key", func() bool { return r.Get(ctx, "k").Val() == "1" })

	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.Set(ctx, "k", "2", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := link.Redirect(replica.Addr()); err != nil {
		t.Fatal(err)
	}
	if err := primary.Restart(ctx, false); err != nil {
		t.Fatal(err)
	}
	p := connect(t, primary.Addr())
	if err := p.ReplicaOf(ctx, host, port).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the old primary follows", func() bool { return p.Get(ctx, "k").Val() == "2" })
}

func TestClock(t *testing.T) {
	t.Parallel()
	h, ok := dockertest.Host(t, docker.Options{})
	if !ok {
		return
	}
	started, err := h.Start(t.Context(), real.ServerSpec{Name: "n1", Password: password, Clock: true})
	if errors.Is(err, real.ErrNoClock) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := started.(real.ManagedServer)
	for _, offset := range []time.Duration{time.Hour, -2 * time.Minute, 0} {
		if err := s.SetClock(offset, 1); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		at, err := connect(t, s.Addr()).Time(t.Context()).Result()
		after := time.Now()
		if err != nil || at.Before(before.Add(offset-time.Millisecond)) || at.After(after.Add(offset+time.Millisecond)) {
			t.Errorf("with %v it is %v, %v; here between %v and %v", offset, at, err, before, after)
		}
	}
	// A new container has the clock as it was set.
	if err := errors.Join(s.SetClock(time.Hour, 1), s.Kill(), s.Restart(t.Context(), true)); err != nil {
		t.Fatal(err)
	}
	at, err := connect(t, s.Addr()).Time(t.Context()).Result()
	if ahead := time.Until(at); err != nil || ahead < 59*time.Minute {
		t.Errorf("after a restart it is %v ahead, %v", ahead, err)
	}
	plain := start(t, h, real.ServerSpec{Name: "n2"})
	if err := plain.SetClock(time.Hour, 1); err == nil {
		t.Error("a clock was moved that is the system's")
	}
}

// TestReasons checks that every error gives a reason, in one line.
func TestReasons(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	const nowhere = "unix:///nowhere/docker.sock"
	cmd.Env = append(os.Environ(), asNobody+"=1", "DOCKER_HOST="+nowhere)
	out, err := cmd.CombinedOutput()
	if text := string(out); err != nil || strings.Count(text, "\n") != 1 ||
		!strings.HasPrefix(text, "true docker: no Docker engine answers at "+nowhere+": start it, or play in --world process") {
		t.Errorf("without an engine: %v\n%s", err, text)
	}
	if !dockertest.Ready(t) {
		return
	}
	_, err = docker.New(t.Context(), docker.Options{Image: "lockfault.invalid/no/such:image", Dir: t.TempDir()})
	if none := (*docker.ImageError)(nil); !errors.As(err, &none) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "make image") {
		t.Errorf("without the image: %v", err)
	}
	// One whose data was destroyed, which it says in its log.
	h, _ := dockertest.Host(t, docker.Options{})
	s := start(t, h, real.ServerSpec{Name: "n1"})
	c := engine(t)
	_, container := run(t, c, s.Addr())
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	var destroyed bytes.Buffer
	archive := tar.NewWriter(&destroyed)
	const text = "no manifest"
	err = archive.WriteHeader(&tar.Header{Name: "appendonlydir/appendonly-0.aof.manifest", Mode: 0o666, Size: int64(len(text))})
	if err == nil {
		_, err = archive.Write([]byte(text))
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CopyToContainer(t.Context(), container, client.CopyToContainerOptions{DestinationPath: "/data", Content: &destroyed}); err != nil {
		t.Fatal(err)
	}
	err = s.Restart(t.Context(), false)
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "it ended before it answered (exit status 1); the last line of its log: ") {
		t.Errorf("a server that doesn't start: %v", err)
	}
}

// parent starts two servers, says so and waits to be killed.
func parent(dir string) error {
	h, err := docker.New(context.Background(), docker.Options{Image: docker.LocalImage, Dir: dir, Watchman: watchman})
	if err != nil {
		return err
	}
	fmt.Println(h.Run())
	for _, name := range []string{"n1", "n2"} {
		s, err := h.Start(context.Background(), real.ServerSpec{Name: name, Password: password})
		if err != nil {
			return err
		}
		if name == "n2" {
			err = s.(real.ManagedServer).Pause()
		}
		if err != nil {
			return err
		}
		fmt.Println(s.Addr())
	}
	select {}
}
