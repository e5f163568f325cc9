package check

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// within is how long all that a test does with an engine may take.
const within = 5 * time.Minute

// window keeps each window of a soak far below the 20 s of real time that it may take, on a machine
// that runs other work.
const window = "--window=15m"

// own begins the names of what tests make in an engine; the rest is the process that made it.
const own = "lockfault-check-"

// An engine is that of Docker, with an image of the program and a name for what a test makes.
type engine struct {
	name string
	env  []string
}

// run runs a command, and returns what it printed to its standard output.
func (e engine) run(t *testing.T, ctx context.Context, args ...string) string {
	t.Helper()
	out, err := e.try(ctx, args...)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return out
}

func (e engine) try(ctx context.Context, args ...string) (string, error) {
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Dir = e.env, deploy
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, errs.String())
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// things are what an engine has of a kind: how to list their names, and how to remove them.
var things = []struct{ list, remove []string }{
	{[]string{"ps", "--all", "--format", "{{.Names}}"}, []string{"rm", "--force", "--volumes"}},
	{[]string{"network", "ls", "--format", "{{.Name}}"}, []string{"network", "rm"}},
	{[]string{"volume", "ls", "--format", "{{.Name}}"}, []string{"volume", "rm"}},
	{[]string{"images", "--format", "{{.Repository}}:{{.Tag}}"}, []string{"rmi", "--force"}},
}

// sweep removes what tests have made whose process is gone.
func (e engine) sweep(t *testing.T, gone func(pid int) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's may be over
	defer cancel()
	for _, kind := range things {
		names, err := e.try(ctx, append([]string{"docker"}, kind.list...)...)
		if err != nil {
			t.Error(err)
		}
		for _, name := range strings.Fields(names) {
			rest, ours := strings.CutPrefix(name, own)
			digits, _, _ := strings.Cut(strings.ReplaceAll(rest, ":", "_"), "_")
			if pid, err := strconv.Atoi(digits); ours && err == nil && gone(pid) {
				if _, err := e.try(ctx, slices.Concat([]string{"docker"}, kind.remove, []string{name})...); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// start finds an engine, and builds an image for it, as make tool-image does. Nothing is left of it
// when the test ends; what a test left that was killed, the next one removes.
func start(t *testing.T) (engine, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	me := os.Getpid()
	e := engine{name: own + strconv.Itoa(me)}
	tag := e.name + ":local"
	e.env = append(os.Environ(), "LOCKFAULT_IMAGE="+tag, "LOCKFAULT_QUEUE_PORT=0", "COMPOSE_PROJECT_NAME="+e.name)
	if _, err := e.try(ctx, "docker", "version"); err != nil {
		t.Skipf("no Docker engine answers: %v", err)
	}
	e.sweep(t, func(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
	t.Cleanup(func() { e.sweep(t, func(pid int) bool { return pid == me }) })
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join(deploy, "Dockerfile"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "Dockerfile"), text, 0o600)
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "empty"), 0o755)
	}
	if err == nil {
		err = os.Link(program, filepath.Join(dir, "lockfault"))
	}
	if err != nil {
		t.Fatal(err)
	}
	e.run(t, ctx, "docker", "build", "--quiet", "--tag", tag, dir)
	return e, ctx
}

// here is what a soak prints on this machine.
func here(t *testing.T, ctx context.Context, args []string) string {
	t.Helper()
	want, stderr, status := lockfault(ctx, nil, args...)
	if status != 0 || !json.Valid([]byte(want)) {
		t.Fatalf("status %d: %s%s", status, want, stderr)
	}
	return strings.TrimRight(want, "\n")
}

// What workers in containers count is what this machine counts by itself, to the byte.
func TestCompose(t *testing.T) {
	e, ctx := start(t)
	tool := []string{"docker", "compose"}
	if _, err := e.try(ctx, "docker", "compose", "version"); err != nil {
		if _, err := exec.LookPath("docker-compose"); err != nil {
			t.Skip("there is an engine, but neither docker compose nor docker-compose")
		}
		tool = []string{"docker-compose"}
	}
	args := strings.Fields("soak redlock,fenced --for 8h " + window + " --nemesis pause,partition --seed 7 --format json")
	want := here(t, ctx, args)
	e.env = append(e.env, "LOCKFAULT_ASK="+strings.Join(args, " "))
	on := func(args ...string) []string { return slices.Concat(tool, []string{"--file", composeFile}, args) }

	// A worker that starts before the server is restarted until there are credentials.
	e.run(t, ctx, on("up", "--detach", "--no-deps", "worker")...)
	early := e.run(t, ctx, on("ps", "--quiet", "worker")...)
	e.until(t, ctx, "the worker without a server is restarted", func() bool {
		return e.run(t, ctx, "docker", "inspect", "--format", "{{.RestartCount}}", early) != "0"
	})

	e.run(t, ctx, on("up", "--detach", "--scale", "worker=2")...)
	server := e.run(t, ctx, on("ps", "--quiet", "queue")...)
	key := filepath.Join(t.TempDir(), "queue.key")
	e.until(t, ctx, "the server writes its credentials", func() bool {
		_, err := e.try(ctx, "docker", "cp", server+":/credentials/queue.key", key)
		text, _ := os.ReadFile(key)
		return err == nil && len(text) > 0
	})
	if about, err := os.Stat(key); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("the credentials are %v, %v: want the mode 0600", about, err)
	}
	if got := e.run(t, ctx, on("run", "--rm", "-T", "ask")...); got != want {
		t.Errorf("by the queue:\n%s\nhere:\n%s", got, want)
	}
	// A requester outside gets the same with the program of the image and the credentials, and is
	// refused without them.
	at := e.run(t, ctx, on("port", "queue", "4222")...)
	if !strings.HasPrefix(at, "127.0.0.1:") {
		t.Fatalf("the queue is published on %s", at)
	}
	got, stderr, status := lockfault(ctx, nil, append(args, "--queue", "nats://"+at, "--queue-creds", key)...)
	if strings.TrimRight(got, "\n") != want || status != 0 {
		t.Errorf("by the queue, from outside: status %d: %s\n%s\nhere:\n%s", status, stderr, got, want)
	}
	user := filepath.Join(t.TempDir(), "user.creds")
	if err := os.WriteFile(user, []byte(credentials), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, refused := range []struct {
		about, says string
		on          []string
	}{
		{"no key", "does not let us in", []string{"nats://" + at}},
		{"the key of another queue", "does not accept the credentials", []string{"nats://" + at, "--queue-creds", otherKey(t, ctx)}},
		{"a user and a password", "does not accept the credentials", []string{"nats://" + at, "--queue-creds", user}},
		{"a password in the address", "write USER:PASSWORD to a file", []string{"nats://lockfault:" + password + "@" + at}},
	} {
		_, stderr, status := lockfault(ctx, nil, slices.Concat(args, []string{"--queue"}, refused.on)...)
		if status != 2 || !strings.Contains(stderr, refused.says) || strings.Contains(stderr, password) {
			t.Errorf("%s is not refused: status %d: %s", refused.about, status, stderr)
		}
	}
	// All containers end when asked to, before Docker kills them. What Docker shows of them does
	// not have the key.
	e.run(t, ctx, on("stop")...)
	seed, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	containers := strings.Fields(e.run(t, ctx, "docker", "ps", "--all", "--quiet", "--filter", "name="+e.name))
	for _, id := range containers {
		line := e.run(t, ctx, "docker", "inspect", "--format", `{{index .Config.Labels "com.docker.compose.service"}} {{.State.ExitCode}} {{.RestartCount}}`, id)
		logs := e.run(t, ctx, "sh", "-c", "docker logs "+id+" 2>&1")
		// Each restart is of a worker that found no credentials.
		if line != "queue 0 0" && line != fmt.Sprintf("worker 130 %d", strings.Count(logs, "/credentials/queue.key")) {
			t.Errorf("a container ended, with its exit status and number of restarts: %s\n%s", line, logs)
		}
		if strings.Contains(logs+e.run(t, ctx, "docker", "inspect", id), strings.TrimSpace(string(seed))) {
			t.Errorf("the container %s shows the key", line)
		}
	}
	if len(containers) != 3 {
		t.Errorf("there were %d containers", len(containers))
	}
	e.run(t, ctx, on("down", "--volumes")...)
}

// until waits until something is done.
func (e engine) until(t *testing.T, ctx context.Context, what string, done func() bool) {
	t.Helper()
	for began := time.Now(); !done(); time.Sleep(200 * time.Millisecond) {
		if time.Since(began) > time.Minute || ctx.Err() != nil {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// otherKey returns the file of the key that another server generates.
func otherKey(t *testing.T, ctx context.Context) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "queue.key")
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan string)
	go func() {
		_, stderr, _ := lockfault(ctx, nil, "queue", "--listen", "127.0.0.1:0", "--dir", dir)
		ended <- stderr
	}()
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(50 * time.Millisecond) {
		if text, _ := os.ReadFile(file); len(text) > 0 {
			break
		}
	}
	cancel()
	stderr := <-ended
	if text, _ := os.ReadFile(file); len(text) == 0 {
		t.Fatalf("a server generates no key: %s", stderr)
	}
	return file
}

// secretVolume returns the name of a volume with a file of credentials, as Kubernetes lays out the
// volume of a Secret: a link to a file of root's and of the group fsGroup.
func (e engine) secretVolume(t *testing.T, ctx context.Context, p pod) string {
	t.Helper()
	name, dir, file := e.name+"_credentials", filepath.Dir(p.credentials()), filepath.Base(p.credentials())
	var mode int64
	for _, v := range p.spec.Volumes {
		if v.Secret != nil {
			mode = int64(*v.Secret.DefaultMode) | 0o040 // as Kubernetes does for fsGroup
		}
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, err := range []error{
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "..1/", Mode: 0o755}),
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "..1/" + file, Mode: mode, Gid: int(*p.spec.SecurityContext.FSGroup), Size: int64(len(credentials))}),
		func() error { _, err := w.Write([]byte(credentials)); return err }(),
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "..data", Linkname: "..1", Mode: 0o777}),
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: file, Linkname: "..data/" + file, Mode: 0o777}),
		w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	e.run(t, ctx, "docker", "create", "--name", name, "--volume", name+":"+dir, e.name+":local")
	cmd := exec.CommandContext(ctx, "docker", "cp", "-", name+":"+dir)
	cmd.Env, cmd.Stdin = e.env, &archive
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("docker cp: %v: %s", err, out)
	}
	return name
}

// The pods of the manifests, each a container with the arguments, the environment and the rights
// that Kubernetes would give it, are a queue that goes on without one of its servers.
func TestCluster(t *testing.T) {
	e, ctx := start(t)
	c := load(t)
	e.run(t, ctx, "docker", "network", "create", e.name+"_net")
	config := filepath.Join(t.TempDir(), "config")
	if err := os.Mkdir(config, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range c.configs[c.set.Name].Data {
		if err := os.WriteFile(filepath.Join(config, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Somebody else than the owner reads it.
	for dir := config; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	secret := e.secretVolume(t, ctx, c.pods["lockfault-worker"])
	command := func(p pod, name string, more ...string) []string {
		line := []string{"docker", "run", "--name", e.name + "_" + name, "--network", e.name + "_net", "--network-alias", name, "--read-only", "--cap-drop", "ALL",
			"--security-opt", "no-new-privileges", "--user", fmt.Sprintf("%d:%d", *p.spec.SecurityContext.RunAsUser, *p.spec.SecurityContext.RunAsGroup)}
		for _, m := range p.container().VolumeMounts {
			switch m.Name {
			case "config":
				line = append(line, "--volume", config+":"+m.MountPath+":ro")
			case "credentials":
				line = append(line, "--volume", secret+":"+m.MountPath+":ro")
			default:
				line = append(line, "--tmpfs", fmt.Sprintf("%s:uid=%d", m.MountPath, *p.spec.SecurityContext.RunAsUser)) // fsGroup has it write there
			}
		}
		for key, value := range p.env(name) {
			line = append(line, "--env", key+"="+value)
		}
		line = append(line, more...)
		return slices.Concat(line, []string{e.name + ":local"}, p.args(name))
	}
	q, service := c.pods[c.set.Name], c.set.Spec.ServiceName
	server := func(i int) string { return fmt.Sprintf("%s-%d", c.set.Name, i) }
	for i := range int(*c.set.Spec.Replicas) {
		// What the headless service makes known: a name for each server, and one for all.
		e.run(t, ctx, command(q, server(i), "--detach", "--network-alias", server(i)+"."+service, "--network-alias", service)...)
	}
	for i := range int(*c.set.Spec.Replicas) {
		ip := e.run(t, ctx, "docker", "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", e.name+"_"+server(i))
		for path := range map[string]bool{q.container().StartupProbe.HTTPGet.Path: true, q.container().ReadinessProbe.HTTPGet.Path: true, q.container().LivenessProbe.HTTPGet.Path: true} {
			if err := healthy(ctx, "http://"+ip+":8222"+path); err != nil {
				t.Fatalf("%s: %v\n%s", server(i), err, e.run(t, ctx, "sh", "-c", "docker logs "+e.name+"_"+server(i)+" 2>&1"))
			}
		}
	}
	for _, name := range []string{"worker-a", "worker-b"} {
		e.run(t, ctx, command(c.pods["lockfault-worker"], name, "--detach")...)
	}
	soak := c.pods["lockfault-soak"]
	less := []string{"--for=8h", window, "--format=json"} // the last of a flag holds
	on := slices.Index(soak.container().Args, "--queue")
	want := here(t, ctx, slices.Concat(soak.args("")[:on], slices.DeleteFunc(soak.args("")[on+2:], func(arg string) bool { return strings.HasPrefix(arg, "--queue-creds=") }), less))
	ask := func(name string) string { return e.run(t, ctx, append(command(soak, name, "--rm"), less...)...) }
	if got := ask("before"); got != want {
		t.Errorf("by three servers:\n%s\nhere:\n%s", got, want)
	}
	e.run(t, ctx, "docker", "kill", e.name+"_"+server(1))
	if got := ask("after"); got != want {
		t.Errorf("by the two that are left:\n%s\nhere:\n%s", got, want)
	}
}

// healthy waits until a server says that it is.
func healthy(ctx context.Context, url string) error {
	client := http.Client{Timeout: 5 * time.Second}
	said := "nothing was said"
	for ctx, cancel := context.WithTimeout(ctx, time.Minute); ; {
		defer cancel()
		if r, err := client.Get(url); err != nil {
			said = err.Error()
		} else {
			text, _ := io.ReadAll(r.Body)
			r.Body.Close()
			if said = r.Status + ": " + string(text); r.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %s", url, said)
		}
	}
}
