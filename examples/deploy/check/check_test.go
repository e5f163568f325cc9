// Package check sees to it that what is in deploy/ can be deployed. It is a module of its own, so
// that nobody who uses lockfault has to have what it needs for that.
package check

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	image  = "lockfault/lockfault:local"
	deploy = ".."
)

// program is lockfault, as make tool-image builds it.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "lockfault-check-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "lockfault")
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./cmd/lockfault-full")
		build.Dir = filepath.Join(deploy, "..", "..")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// kinds are those that there may be in the files.
var kinds = sync.OnceValues(func() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	var errs []error
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, policyv1.AddToScheme} {
		errs = append(errs, add(scheme))
	}
	return scheme, errors.Join(errs...)
})

// decode reads the objects of a file as strictly as an API server that validates: a field that
// is unknown, or there twice, is an error.
func decode(text []byte) (list []runtime.Object, err error) {
	scheme, err := kinds()
	if err != nil {
		return nil, err
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	for documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		o, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
}

// manifests returns the text of the files, by name.
func manifests(t *testing.T) map[string][]byte {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(deploy, "kubernetes", "*.yaml"))
	if len(files) == 0 {
		t.Fatal("there are no manifests")
	}
	texts := map[string][]byte{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = text
	}
	return texts
}

// A pod is the only container of a template, and what is around it.
type pod struct {
	kind, name string
	meta       metav1.ObjectMeta
	spec       corev1.PodSpec
	claims     []string // templates of its own
	index      bool     // of a Job in which each pod has one
}

func (p pod) container() corev1.Container { return p.spec.Containers[0] }

// env returns what the container gets to see, as Kubernetes makes it of the manifest.
func (p pod) env(own string) map[string]string {
	env := map[string]string{}
	if p.index {
		env["JOB_COMPLETION_INDEX"] = own
	}
	for _, e := range p.container().Env {
		switch {
		case e.ValueFrom == nil:
			env[e.Name] = expand(e.Value, env)
		case e.ValueFrom.SecretKeyRef != nil:
			env[e.Name] = password
		case e.ValueFrom.FieldRef != nil && e.ValueFrom.FieldRef.FieldPath == "metadata.name":
			env[e.Name] = own
		}
	}
	return env
}

func (p pod) args(own string) (args []string) {
	env := p.env(own)
	for _, a := range p.container().Args {
		args = append(args, expand(a, env))
	}
	return args
}

var reference = regexp.MustCompile(`\$\(([A-Z_]+)\)`)

// expand does what Kubernetes does with args and with values of variables: what it doesn't know
// stays as it is.
func expand(text string, env map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if value, ok := env[found[2:len(found)-1]]; ok {
			return value
		}
		return found
	})
}

const password = "p4ssw0rd" // of the tests' queues

// credentials is the content of a file for --queue-creds with this password.
const credentials = "lockfault:" + password + "\n"

// inAddress matches the user or the password of an address.
var inAddress = regexp.MustCompile(`[a-z]+://[^/\s"]*@`)

// A cluster is all that the manifests make.
type cluster struct {
	pods     map[string]pod
	services map[string]*corev1.Service
	configs  map[string]*corev1.ConfigMap
	claims   []string
	budgets  []*policyv1.PodDisruptionBudget
	set      *appsv1.StatefulSet
	shards   *batchv1.Job
}

func load(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{pods: map[string]pod{}, services: map[string]*corev1.Service{}, configs: map[string]*corev1.ConfigMap{}}
	add := func(kind, name string, template corev1.PodTemplateSpec, selector *metav1.LabelSelector) pod {
		p := pod{kind: kind, name: name, meta: template.ObjectMeta, spec: template.Spec}
		if len(p.spec.Containers) != 1 || len(p.spec.InitContainers) != 0 {
			t.Fatalf("%s has more than one container: this test looks at one", name)
		}
		if _, there := c.pods[name]; there {
			t.Errorf("there are two of the name %s", name)
		}
		if selector != nil && !matches(selector, p.meta.Labels) {
			t.Errorf("%s does not select its own pods", name)
		}
		c.pods[name] = p
		return p
	}
	for file, text := range manifests(t) {
		list, err := decode(text)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, o := range list {
			switch o := o.(type) {
			case *corev1.ConfigMap:
				c.configs[o.Name] = o
			case *corev1.Service:
				c.services[o.Name] = o
			case *corev1.PersistentVolumeClaim:
				c.claims = append(c.claims, o.Name)
			case *policyv1.PodDisruptionBudget:
				c.budgets = append(c.budgets, o)
			case *appsv1.Deployment:
				add("Deployment", o.Name, o.Spec.Template, o.Spec.Selector)
			case *appsv1.StatefulSet:
				p := add("StatefulSet", o.Name, o.Spec.Template, o.Spec.Selector)
				for _, claim := range o.Spec.VolumeClaimTemplates {
					p.claims = append(p.claims, claim.Name)
				}
				c.pods[o.Name], c.set = p, o
			case *batchv1.Job:
				p := add("Job", o.Name, o.Spec.Template, nil)
				if p.index = o.Spec.CompletionMode != nil && *o.Spec.CompletionMode == batchv1.IndexedCompletion; p.index {
					c.shards = o
				}
				c.pods[o.Name] = p
			default:
				t.Errorf("%s has a %T, which this test doesn't know", file, o)
			}
		}
	}
	if c.set == nil || c.shards == nil {
		t.Fatal("there is no StatefulSet, or no Indexed Job")
	}
	return c
}

func matches(selector *metav1.LabelSelector, set map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && !s.Empty() && s.Matches(labels.Set(set))
}

// key is a field of a YAML file, and what comes before it.
var key = regexp.MustCompile(`(?m)^((?: *- )? *)([A-Za-z]+)(:(?: |$))`)

// A field that is misspelt is an error, whichever it is: otherwise what it says would be missing,
// and nobody would know.
func TestMisspeltManifests(t *testing.T) {
	// These are keys of maps, and what is within a text.
	free := []string{"http", "listen", "name", "password", "user", "routes", "cpu", "memory", "storage"}
	for file, text := range manifests(t) {
		if _, err := decode(text); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		tried := 0
		for _, at := range key.FindAllSubmatchIndex(text, -1) {
			if name := string(text[at[4]:at[5]]); !slices.Contains(free, name) {
				tried++
				if _, err := decode(slices.Concat(text[:at[5]], []byte("x"), text[at[5]:])); err == nil {
					t.Errorf("%s: %sx is taken", file, name)
				}
				line := text[at[4] : at[5]+1]
				twice := slices.Concat(text[:at[0]], bytes.Repeat([]byte(" "), at[3]-at[2]), line, []byte(" 1\n"), text[at[0]:])
				if _, err := decode(twice); err == nil && !bytes.Contains(text[at[2]:at[3]], []byte("-")) {
					t.Errorf("%s: %s is taken twice", file, name)
				}
			}
		}
		if tried < 10 {
			t.Errorf("%s: only %d fields were misspelt", file, tried)
		}
	}
}

func TestPods(t *testing.T) {
	c := load(t)
	for name, p := range c.pods {
		at, s := p.container(), p.spec
		if at.Image != image {
			t.Errorf("%s runs the image %s, not %s", name, at.Image, image)
		}
		if own, all := at.SecurityContext, s.SecurityContext; own == nil || all == nil || all.RunAsNonRoot == nil || !*all.RunAsNonRoot || all.RunAsUser == nil || *all.RunAsUser == 0 ||
			all.SeccompProfile == nil || all.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
			own.AllowPrivilegeEscalation == nil || *own.AllowPrivilegeEscalation || own.ReadOnlyRootFilesystem == nil || !*own.ReadOnlyRootFilesystem ||
			own.Capabilities == nil || !slices.Equal(own.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(own.Capabilities.Add) > 0 {
			t.Errorf("%s may do more than it needs: %+v, %+v", name, all, own)
		}
		if s.AutomountServiceAccountToken == nil || *s.AutomountServiceAccountToken {
			t.Errorf("%s is given a token of the API", name)
		}
		if s.TerminationGracePeriodSeconds == nil || *s.TerminationGracePeriodSeconds < 30 {
			t.Errorf("%s has less than 30 s to end", name)
		}
		if at.Resources.Requests.Cpu().IsZero() || at.Resources.Requests.Memory().IsZero() || at.Resources.Limits.Memory().Cmp(*at.Resources.Requests.Memory()) < 0 {
			t.Errorf("%s has no sound resources: %v", name, at.Resources)
		}
		// What is mounted is there, and the other way about.
		var volumes, mounts, paths []string
		for _, v := range s.Volumes {
			volumes = append(volumes, v.Name)
			if m := v.ConfigMap; m != nil && c.configs[m.Name] == nil {
				t.Errorf("%s has a volume of the ConfigMap %s, which isn't there", name, m.Name)
			}
			if m := v.PersistentVolumeClaim; m != nil && !slices.Contains(c.claims, m.ClaimName) {
				t.Errorf("%s has a volume of the claim %s, which isn't there", name, m.ClaimName)
			}
		}
		volumes = append(volumes, p.claims...)
		for _, m := range at.VolumeMounts {
			mounts, paths = append(mounts, m.Name), append(paths, m.MountPath)
			for _, v := range s.Volumes {
				if v.Name == m.Name && v.Secret != nil && (!m.ReadOnly || m.SubPath != "") {
					t.Errorf("%s does not mount its volume %s read-only", name, m.Name)
				}
			}
		}
		slices.Sort(volumes)
		slices.Sort(mounts)
		if !slices.Equal(volumes, mounts) {
			t.Errorf("%s has the volumes %q and mounts %q", name, volumes, mounts)
		}
		if !slices.Contains(paths, "/tmp") {
			t.Errorf("%s has nowhere to put what is temporary", name)
		}
		for _, probe := range []*corev1.Probe{at.StartupProbe, at.ReadinessProbe, at.LivenessProbe} {
			if probe != nil && !slices.ContainsFunc(at.Ports, func(port corev1.ContainerPort) bool { return port.Name == probe.HTTPGet.Port.StrVal }) {
				t.Errorf("%s asks the port %s, which has no number", name, probe.HTTPGet.Port.StrVal)
			}
		}
		for _, arg := range p.args("0") {
			if strings.Contains(arg, "$(") {
				t.Errorf("%s: unknown variable in %s", name, arg)
			}
			if strings.Contains(arg, password) || inAddress.MatchString(arg) {
				t.Errorf("%s has a secret in its argument %s", name, arg)
			}
		}
		for _, f := range paths {
			if f != "/tmp" && !strings.Contains(strings.Join(p.args("0"), " "), f) {
				t.Errorf("%s: nothing is done with %s", name, f)
			}
		}
	}
}

// createSecret runs the commands of queue.yaml that create the Secret, with a kubectl and an openssl
// of its own. It returns the Secret's name and the content of each key.
func createSecret(t *testing.T) (name string, keys map[string]string) {
	t.Helper()
	var script strings.Builder
	for line := range strings.Lines(string(manifests(t)["queue.yaml"])) {
		if command, ok := strings.CutPrefix(line, "#   "); ok && !strings.HasPrefix(command, "kubectl apply ") {
			script.WriteString(command)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kubectl": "#!/bin/sh\nprintf '%s\\n' \"$@\" >arguments\n",
		"openssl": "#!/bin/sh\n[ \"$*\" = 'rand -hex 24' ] && echo 0123456789abcdef0123456789abcdef0123456789abcdef\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", script.String())
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s%v: %s", script.String(), err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "arguments"))
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Fields(string(text))
	if len(args) < 4 || !slices.Equal(args[:3], []string{"create", "secret", "generic"}) {
		t.Fatalf("the arguments of kubectl are %q", args)
	}
	keys = map[string]string{}
	for _, arg := range args[4:] {
		rest, ok := strings.CutPrefix(arg, "--from-file=")
		key, file, both := strings.Cut(rest, "=")
		if !ok || !both {
			t.Fatalf("kubectl %s: want only --from-file=KEY=FILE, which keeps secrets out of arguments", strings.Join(args, " "))
		}
		about, err := os.Stat(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if about.Mode().Perm() != 0o600 {
			t.Errorf("the file %s has the mode %#o, not 0600", file, about.Mode().Perm())
		}
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		keys[key] = string(text)
	}
	return args[3], keys
}

// The Secret has the password for the servers and the same password in a file of credentials for
// workers and requesters. No other pod than those of the servers gets the password.
func TestSecret(t *testing.T) {
	name, keys := createSecret(t)
	if len(keys) != 2 || !regexp.MustCompile(`^[a-z][a-z0-9]{40,}$`).MatchString(keys["password"]) || keys["credentials"] != "lockfault:"+keys["password"]+"\n" {
		t.Errorf("the commands of queue.yaml create the keys %q", keys)
	}
	for file, text := range manifests(t) {
		for _, address := range inAddress.FindAllString(string(text), -1) {
			if file != "queue.yaml" || address != "nats://lockfault:$(LOCKFAULT_QUEUE_PASSWORD)@" {
				t.Errorf("%s has an address with a user or a password: %s", file, address)
			}
		}
	}
	c := load(t)
	for owner, p := range c.pods {
		if len(p.container().EnvFrom) > 0 {
			t.Errorf("%s gets variables that this test does not see", owner)
		}
		for _, e := range p.container().Env {
			if e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil {
				continue
			}
			if ref := e.ValueFrom.SecretKeyRef; owner != c.set.Name || ref.Name != name || ref.Key != "password" || ref.Optional != nil && *ref.Optional {
				t.Errorf("%s: $%s is the key %s of the Secret %s: only the servers get a variable, with the password", owner, e.Name, ref.Key, ref.Name)
			}
		}
		file := p.credentials()
		if at := slices.Index(p.container().Args, "--queue-creds="+file); (file == "") != (at < 0) {
			t.Errorf("%s: the file of credentials is %q, and the arguments are %q", owner, file, p.container().Args)
		}
		for _, v := range p.spec.Volumes {
			if v.Projected != nil || v.HostPath != nil || v.CSI != nil {
				t.Errorf("%s has a volume that this test does not know: %s", owner, v.Name)
			}
			s := v.Secret
			if s == nil {
				continue
			}
			if s.SecretName != name || s.Optional != nil && *s.Optional || s.DefaultMode == nil || *s.DefaultMode != 0o400 && *s.DefaultMode != 0o440 ||
				len(s.Items) != 1 || s.Items[0].Key != "credentials" || s.Items[0].Mode != nil {
				t.Errorf("%s mounts more than the key credentials of the Secret %s, or other users can read it: %v", owner, name, s)
			}
		}
	}
}

// credentials returns the path of the file of credentials in the container, or "" if the pod mounts
// no Secret.
func (p pod) credentials() string {
	for _, v := range p.spec.Volumes {
		for _, m := range p.container().VolumeMounts {
			if v.Secret != nil && m.Name == v.Name && len(v.Secret.Items) > 0 {
				return m.MountPath + "/" + v.Secret.Items[0].Path
			}
		}
	}
	return ""
}

// The servers, the workers and the requester agree on names and ports.
func TestNamesOfTheQueue(t *testing.T) {
	c := load(t)
	set, service := c.set, c.services[c.set.Spec.ServiceName]
	if service == nil || service.Spec.ClusterIP != corev1.ClusterIPNone || !service.Spec.PublishNotReadyAddresses {
		t.Fatalf("the service %s isn't there, or doesn't name each server", set.Spec.ServiceName)
	}
	if !matches(&metav1.LabelSelector{MatchLabels: service.Spec.Selector}, set.Spec.Template.Labels) {
		t.Error("the service has no servers")
	}
	for _, b := range c.budgets {
		if !matches(b.Spec.Selector, set.Spec.Template.Labels) {
			t.Errorf("the budget %s protects nothing", b.Name)
		}
	}
	if len(c.budgets) != 1 || c.budgets[0].Spec.MaxUnavailable.IntVal != 1 || *set.Spec.Replicas != 3 {
		t.Error("no majority of the servers is protected")
	}
	q := c.pods[set.Name]
	config := c.configs[q.spec.Volumes[0].ConfigMap.Name].Data["nats.conf"]
	if args := q.args(""); !slices.Equal(args[:3], []string{"queue", "--config", "/etc/lockfault/nats.conf"}) {
		t.Errorf("the server reads another file than the ConfigMap has: %q", args)
	}
	for _, port := range q.container().Ports {
		if !strings.Contains(config, fmt.Sprintf(": 0.0.0.0:%d\n", port.ContainerPort)) {
			t.Errorf("the server doesn't listen on %d", port.ContainerPort)
		}
	}
	for _, name := range regexp.MustCompile(`\$([A-Z_]+)`).FindAllStringSubmatch(config, -1) {
		if q.env("x")[name[1]] == "" {
			t.Errorf("nobody tells the server $%s", name[1])
		}
	}
	routes := q.env("x")["LOCKFAULT_QUEUE_ROUTES"]
	for i := range int(*set.Spec.Replicas) {
		if want := fmt.Sprintf(`"nats://lockfault:%s@%s-%d.%s:6222"`, password, set.Name, i, service.Name); strings.Count(routes, want) != 1 {
			t.Errorf("the routes %s don't lead to %s", routes, want)
		}
	}
	if n := strings.Count(routes, "nats://"); n != int(*set.Spec.Replicas) {
		t.Errorf("there are %d routes", n)
	}
	come := 0
	for name, p := range c.pods {
		for _, arg := range p.args("0") {
			if strings.HasPrefix(arg, "nats://") {
				come++
				if want := fmt.Sprintf("nats://%s:4222", service.Name); arg != want {
					t.Errorf("%s connects to %s, not to %s", name, arg, want)
				}
				if p.credentials() == "" {
					t.Errorf("%s connects to the queue without credentials", name)
				}
			}
		}
	}
	if come != 2 {
		t.Errorf("%d connect to the queue: want the workers and the requester", come)
	}
}

// lockfault runs the program, and returns what it printed and how it ended.
func lockfault(ctx context.Context, env []string, args ...string) (stdout, stderr string, status int) {
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return "", err.Error(), -1
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// The program knows all flags of the pods, and what is given to them: it reads them before it
// does what --help asks for.
func TestArguments(t *testing.T) {
	for name, p := range load(t).pods {
		if _, stderr, status := lockfault(t.Context(), nil, append(p.args("0"), "--help")...); status != 0 {
			t.Errorf("%s: status %d: %s", name, status, stderr)
		}
		for i, arg := range p.args("0") {
			if flag, value, _ := strings.Cut(arg, "="); strings.HasPrefix(flag, "--") {
				args := slices.Clone(p.args("0"))
				args[i] = flag + "x=" + value
				if _, _, status := lockfault(t.Context(), nil, append(args, "--help")...); status != 2 {
					t.Errorf("%s: %s is taken: status %d", name, args[i], status)
				}
			}
		}
	}
}

// The servers do not start without a password.
func TestNoPassword(t *testing.T) {
	if os.Getenv("LOCKFAULT_QUEUE_PASSWORD") != "" {
		t.Fatal("LOCKFAULT_QUEUE_PASSWORD is set")
	}
	c := load(t)
	other := []string{"POD_NAME=x", "LOCKFAULT_QUEUE_ROUTES=[]"}
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(c.configs[c.set.Name].Data["nats.conf"]), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, env := range [][]string{nil, {"LOCKFAULT_QUEUE_PASSWORD="}, {"LOCKFAULT_QUEUE_PASSWORD=12345678"}} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // ends a server that starts
		_, stderr, status := lockfault(ctx, append(env, other...), "queue", "--config", file, "--dir", t.TempDir(), "--listen", "0.0.0.0:0")
		cancel()
		if status != 2 {
			t.Errorf("with %q: status %d: %s", env, status, stderr)
		}
	}
}

// What the parts of the Indexed Job write, the Job that comes after them joins, to what the whole
// search finds.
func TestShards(t *testing.T) {
	c := load(t)
	p, n := c.pods[c.shards.Name], int(*c.shards.Spec.Completions)
	if !slices.Contains(p.container().Args, fmt.Sprintf("--shard-index=$(JOB_COMPLETION_INDEX)/%d", n)) {
		t.Errorf("there are %d pods and another number of parts: %q", n, p.container().Args)
	}
	found := t.TempDir()
	there := func(args []string) (list []string) {
		for _, arg := range args {
			list = append(list, strings.Replace(arg, "/found", found, 1))
		}
		return list
	}
	// Less of it: the last of a flag holds.
	less := []string{"--advance=1", "--nodes=1", "--restart-empty=1", "--for=5m"}
	for i := range n {
		if _, stderr, status := lockfault(t.Context(), nil, append(there(p.args(strconv.Itoa(i))), less...)...); status != 0 && status != 1 {
			t.Fatalf("part %d: status %d: %s", i, status, stderr)
		}
	}
	_, stderr, joined := lockfault(t.Context(), nil, there(c.pods["lockfault-merge"].args("0"))...)
	whole := slices.DeleteFunc(there(p.args("whole")), func(arg string) bool { return strings.HasPrefix(arg, "--shard-index") })
	if _, _, status := lockfault(t.Context(), nil, append(whole, less...)...); status != joined || status > 1 {
		t.Fatalf("the parts come to status %d, the whole to %d: %s", joined, status, stderr)
	}
	scripts := func(dir string) map[string]string {
		files, _ := filepath.Glob(filepath.Join(found, dir, "*.txt"))
		all := map[string]string{}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(f)] = string(text)
		}
		return all
	}
	if got, want := scripts("merged"), scripts("whole"); !maps.Equal(got, want) || len(got) == 0 {
		t.Errorf("the parts found %q, the whole %q", got, want)
	}
}
