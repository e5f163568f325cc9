package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

const composeFile = "compose.yaml"

func compose(t *testing.T, text []byte) (*types.Project, error) {
	t.Helper()
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  deploy,
		ConfigFiles: []types.ConfigFile{{Filename: composeFile, Content: text}},
	}, func(o *loader.Options) {
		o.SetProjectName("lockfault", true)
		o.Profiles = []string{"*"}
	})
}

func TestComposeFile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deploy, composeFile))
	if err != nil {
		t.Fatal(err)
	}
	p, err := compose(t, text)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"queue", "worker", "ask"} {
		s, err := p.GetService(name)
		if err != nil {
			t.Fatal(err)
		}
		if s.Image != image || s.User == "" || s.User[0] == '0' || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 || s.Privileged || len(s.Tmpfs) != 1 || s.StopGracePeriod == nil {
			t.Errorf("%s runs another image, or may do more than it needs", name)
		}
		if len(s.Environment) > 0 || len(s.EnvFiles) > 0 {
			t.Errorf("%s has environment variables: %v", name, s.Environment)
		}
		if secret := inAddress.FindString(strings.Join(s.Command, " ")); secret != "" {
			t.Errorf("%s has an address with a user or a password: %s", name, secret)
		}
		mounted := false
		for _, v := range s.Volumes {
			if v.Target == "/credentials" {
				mounted = v.Type == types.VolumeTypeVolume && v.Source == "credentials" && v.ReadOnly == (name != "queue")
			}
		}
		flag := "--queue-creds"
		if name == "queue" {
			flag = "--credentials"
		}
		if at := slices.Index(s.Command, flag); !mounted || at < 0 || !slices.Equal(s.Command[at+1:][:1], []string{"/credentials/queue.key"}) {
			t.Errorf("%s does not use the credentials of their volume, or only the server may write there: %q, %v", name, s.Command, s.Volumes)
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s is published on %q", name, port.HostIP)
			}
		}
		if _, stderr, status := lockfault(t.Context(), nil, append(s.Command, "--help")...); status != 0 {
			t.Errorf("%s: status %d: %s", name, status, stderr)
		}
	}
	tried := 0
	for _, at := range key.FindAllSubmatchIndex(text, -1) {
		switch name := string(text[at[4]:at[5]]); name {
		case "queue", "worker", "ask", "front", "work", "credentials":
		default:
			tried++
			if _, err := compose(t, slices.Concat(text[:at[5]], []byte("x"), text[at[5]:])); err == nil {
				t.Errorf("%sx is taken", name)
			}
		}
	}
	if tried < 10 {
		t.Errorf("only %d fields were misspelt", tried)
	}
}
