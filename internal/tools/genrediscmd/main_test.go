//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockfault/lockfault/faults/process"
	"github.com/lockfault/lockfault/faults/process/processtest"
	"github.com/lockfault/lockfault/faults/real"
	"github.com/lockfault/lockfault/internal/rediscmd"
)

// server returns a client of the installed server, and what the server reports.
func server(t *testing.T) (client *redis.Client, of release, rows []rediscmd.Command) {
	t.Helper()
	const password = "secret"
	s, err := processtest.Host(t, process.Options{}).Start(t.Context(), real.ServerSpec{Name: "n1", Password: password})
	if err != nil {
		t.Fatal(err)
	}
	client = processtest.Connect(t, s.Addr(), password, 0)
	of, rows, err = read(t.Context(), client)
	if strings.HasPrefix(of.number, "6.") {
		t.Skip("before 7.0 a server has no COMMAND DOCS")
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) < 300 {
		t.Fatalf("the server of release %s reports only %d commands", of.number, len(rows))
	}
	return client, of, rows
}

// isSource reports whether facts.go is from the release, or from one with the same first two
// numbers.
func isSource(of release) bool {
	series := rediscmd.Release[:strings.LastIndex(rediscmd.Release, ".")+1]
	return !of.valkey && strings.HasPrefix(of.number, series)
}

// TestTableAgreesWithServer checks what holds in every release: the effects and the first releases
// of commands.
func TestTableAgreesWithServer(t *testing.T) {
	_, of, rows := server(t)
	var missing []string
	for _, reported := range rows {
		c := rediscmd.Lookup(reported.Name)
		if c.Name == "" {
			missing = append(missing, reported.Name)
			continue
		}
		since, want := c.Redis, reported.Redis
		if of.valkey {
			since, want = c.Valkey, reported.Valkey
		}
		if since != want {
			t.Errorf("%s exists since %q in the table, since %q on the server", c.Name, since, want)
		}
		const effect = rediscmd.Write | rediscmd.ReadOnly
		if c.Flags&effect != reported.Flags&effect {
			t.Errorf("%s is flagged %q in the table, %q on the server", c.Name, flags(c.Flags&effect), flags(reported.Flags&effect))
		}
	}
	report := t.Logf // the table cannot have all commands of releases to come
	if isSource(of) {
		report = t.Errorf
	}
	if len(missing) > 0 {
		report("the table lacks %s of release %s: add them to internal/rediscmd/newer.go", strings.Join(missing, ", "), of.number)
	}
}

// TestFactsAreUpToDate compares facts.go with what the installed server reports, if facts.go is
// from its release. In other releases some flags differ: Redis 7.2, for example, flags WAIT as
// blocking.
func TestFactsAreUpToDate(t *testing.T) {
	client, of, _ := server(t)
	if !isSource(of) {
		t.Skipf("facts.go is from Redis %s", rediscmd.Release)
	}
	generated, err := generate(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join("..", "..", "rediscmd", "facts.go"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.ReplaceAll(string(generated), of.number, rediscmd.Release), "\n")
	got := strings.Split(string(file), "\n")
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("facts.go lacks\n%s", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("the server does not report\n%s", line)
		}
	}
}
