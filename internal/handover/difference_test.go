package handover

import (
	"runtime/debug"
	"strings"
	"testing"
)

// built returns the information of a program built from a working copy, or from a module if sum is
// not empty.
func built(version, sum, commit, modified string) *debug.BuildInfo {
	info := &debug.BuildInfo{Main: debug.Module{Path: "example.com/m", Version: version, Sum: sum}}
	if commit != "" {
		info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: modified}}
	}
	return info
}

// TestDifference checks which programs are of the same build, and the reasons of others.
func TestDifference(t *testing.T) {
	for _, c := range []struct {
		mine, other *debug.BuildInfo
		want        string
	}{
		{built("v1", "h1", "", ""), built("v1", "h1", "", ""), ""},
		{built("v1", "h1", "", ""), built("v2", "h2", "", ""), "is version v2, not v1"},
		{built("v1", "h1", "", ""), built("(devel)", "", "", ""), "has no commit recorded"},
		{built("(devel)", "", "c1", "false"), built("(devel)", "", "c1", "false"), ""},
		{built("(devel)", "", "c1", "false"), built("(devel)", "", "c2", "false"), "is commit c2, not c1"},
		{built("(devel)", "", "c1", "false"), built("(devel)", "", "c1", "true"), "may differ from this program: changes without a commit"},
		{built("(devel)", "", "", ""), built("v1", "h1", "", ""), "may differ from this program, in which no commit is recorded"},
	} {
		if got := difference(c.mine, c.other); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v and %v: %q, want %q", c.mine, c.other, got, c.want)
		}
	}
}

// TestReleased checks the version that go install is advised for.
func TestReleased(t *testing.T) {
	for want, info := range map[string]*debug.BuildInfo{
		"v1": built("v1", "h1", "", ""), "c1": built("v0.0.0-1-c1", "", "c1", "false"), "latest": built("(devel)", "", "", ""),
	} {
		if got := released(info); got != want {
			t.Errorf("%v: %s, want %s", info, got, want)
		}
	}
}
