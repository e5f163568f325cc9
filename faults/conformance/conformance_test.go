package conformance

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	update  = flag.Bool("update", false, "write the replies of redis-server into testdata")
	program = flag.String("redis-server", "", "server `program` to ask; default redis-server or valkey-server from PATH")
)

// tables reads all cases.
func tables(t *testing.T) []*table {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in testdata: %v", err)
	}
	var all []*table
	for _, file := range files {
		read, err := readTable(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, read)
	}
	return all
}

func (t *table) name() string { return strings.TrimSuffix(filepath.Base(t.file), ".txt") }

// The world of virtual time answers as the files say.
func TestSim(t *testing.T) {
	for _, table := range tables(t) {
		t.Run(table.name(), func(t *testing.T) {
			t.Parallel()
			for _, c := range table.cases {
				t.Run(c.title, func(t *testing.T) {
					inVirtualTime(t, func(on side) {
						check(t, on, table, c, func(r reply, got string) (want string, ok bool) {
							sim, different := r.sim()
							if !different {
								return r.redis, sameCode(r.redis, got)
							}
							if sameCode(r.redis, got) {
								return "the difference noted here is no more: remove the lines # sim: and # why:", false
							}
							return sim, sameCode(sim, got)
						})
					})
				})
			}
		})
	}
}

// redis-server answers as the files say; with -update, the files say what it
// answers.
func TestRedis(t *testing.T) {
	for _, table := range tables(t) {
		t.Run(table.name(), func(t *testing.T) {
			t.Parallel()
			servers := startServers(t)
			got := map[*step][]string{}
			for _, c := range table.cases {
				if servers.release["redis"].before(c.since) {
					continue
				}
				t.Run(c.title, func(t *testing.T) {
					if err := servers.reset(); err != nil {
						t.Fatal(err)
					}
					if *update {
						if err := play(servers, table, c, func(s *step, replies []string) { got[s] = replies }); err != nil {
							t.Fatal(err)
						}
						return
					}
					check(t, servers, table, c, func(r reply, got string) (want string, ok bool) {
						want = r.of(servers.release)
						return want, servers.same(want, got)
					})
				})
			}
			if *update && !t.Failed() {
				if err := os.WriteFile(table.file, []byte(table.rewritten(got)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// check plays a case and compares what came with what was wanted.
func check(t *testing.T, on side, table *table, c *tableCase, same func(r reply, got string) (want string, ok bool)) {
	t.Helper()
	err := play(on, table, c, func(s *step, replies []string) {
		if len(replies) != len(s.want) {
			t.Errorf("%s:%d: the file has %d of %d replies; run the tests with -update", table.file, s.line, len(s.want), len(replies))
			return
		}
		for i, got := range replies {
			if want, ok := same(s.want[i], got); !ok {
				t.Errorf("%s:%d:\n\tgot  %s\n\twant %s", table.file, s.want[i].from+1, got, want)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// rewritten returns the file with the replies that came. What a hole in the old
// reply matches stays as it was.
func (t *table) rewritten(got map[*step][]string) string {
	replaced := map[int]string{} // lines
	added := map[int][]string{}  // behind a line
	removed := map[int]bool{}
	for s, replies := range got {
		at := s.line - 1
		for i, r := range replies {
			if i >= len(s.want) {
				added[at] = append(added[at], r)
				continue
			}
			at = s.want[i].to - 1
			if !matches(s.want[i].redis, r) {
				replaced[s.want[i].from] = r
			}
		}
		for _, extra := range s.want[min(len(replies), len(s.want)):] {
			for i := extra.from; i < extra.to; i++ {
				removed[i] = true
			}
		}
	}
	var out []string
	for i, line := range t.lines {
		if text, ok := replaced[i]; ok {
			line = text
		}
		if !removed[i] {
			out = append(out, line)
		}
		out = append(out, added[i]...)
	}
	return strings.Join(out, "\n") + "\n"
}
