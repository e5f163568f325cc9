package cli_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfault/lockfault/internal/cli"
)

// A file that no search has written is refused in one line, whatever is in it.
func TestMergeRefusesWhatIsSpoiled(t *testing.T) {
	const good = `{"strategy": "mine", "clients": 2, "rounds": 1, "nodes": 1, "ttl": 30000000000, "seed": 1, "budget": {"advance": 1},
		"shard": 1, "shards": 1, "states": 9, "ends": 2, "merged": 1, "moves": 10, "common": {"states": 2, "ends": 1, "merged": 0, "moves": 2},
		"exhausted": true,
		"findings": [{"anomaly": "overlap", "outcome": "bug", "reason": "", "script": "clients A\nA acquire\nexpect overlap\n", "anomalies": ["overlap"], "moves": 2, "requests": 1, "course": [1, 2], "file": "mine-overlap.txt"}]}`
	for _, c := range []struct{ old, new, says string }{
		{"", "", ""},
		{"}]}", "}]", "unexpected end of JSON input"},
		{good, "", "unexpected end of JSON input"},
		{good, "[]", "there is a JSON array"},
		{`"clients": 2`, `"clients": "two"`, `"clients" can't be a JSON string`},
		{`"shard": 1,`, `"shard": 2,`, "it says that it is shard 2 of 1"},
		{`"shards": 1,`, `"shards": 1000000000,`, "it says that it is shard 1 of 1000000000"},
		{`"shards": 1,`, `"shards": -1,`, "it says that it is shard 1 of -1"},
		{`"common"`, `"uncommon"`, "it doesn't say what is in every shard"},
		{`"common": {"states": 2`, `"common": {"states": 20`, "more is in every shard than in this one"},
		{`"common": {"states": 2`, `"common": {"states": -2`, "more is in every shard than in this one"},
		{`"strategy": "mine", `, ``, "it doesn't say what was searched"},
		{`"exhausted": true`, `"exhausted": true, "cut": "out of time"`, "it says that it is exhausted, and why it is not"},
		{`"anomaly": "overlap"`, `"anomaly": "disaster"`, `"disaster" is no anomaly`},
		{`"mine-overlap.txt"`, `"../mine-overlap.txt"`, `"../mine-overlap.txt" is no file of it`},
		{`"strategy": "mine"`, `"strategy": "../mine"`, `"mine-overlap.txt" is no file of it`},
		{`[1, 2]`, `[1]`, "its overlap has no script that a search may find"},
		{`clients A\n`, `clients\n`, "its overlap has a script that is none"},
		{`expect overlap`, `expect ghost`, "the script of its overlap expects something else than it shows"},
		{`["overlap"]`, `["ghost"]`, "its overlap has no script that a search may find"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "findings.json")
		if err := os.WriteFile(path, []byte(strings.Replace(good, c.old, c.new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		status := cli.Run(t.Context(), []string{"merge", dir}, io.LimitReader(nil, 0), &stdout, &stderr, registry())
		said := stderr.String()
		switch {
		case c.says == "" && (status != cli.ExitDiffers || said != "" || !strings.Contains(stdout.String(), "exhausted: yes")):
			t.Errorf("exit status %d: %s%s", status, &stdout, said)
		case c.says == "":
		case status != cli.ExitUsage || stdout.Len() > 0 || strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "lockfault: "+path+" is spoiled: ") || !strings.Contains(said, c.says):
			t.Errorf("%s for %s: exit status %d: %s%s", c.new, c.old, status, &stdout, said)
		}
	}
}
