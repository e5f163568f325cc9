package item_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lockfault/lockfault/checker"
	"github.com/lockfault/lockfault/internal/explore"
	"github.com/lockfault/lockfault/internal/queue"
	"github.com/lockfault/lockfault/internal/queue/item"
	"github.com/lockfault/lockfault/internal/racetest"
	"github.com/lockfault/lockfault/scenarios"
)

func cell() item.Cell {
	return item.Cell{Strategy: "redlock", Scenario: "contention", World: "sim", Seed: 1<<64 - 1, Lease: 10 * time.Second}
}

func search() item.Search {
	return item.Search{Strategy: "redlock", Nodes: 3, Seed: 1, Bound: explore.Bound{
		Clients: 2, Rounds: 1, Nodes: 3, TTL: 30 * time.Second, Budget: map[explore.BudgetKind]int{explore.Crash: 1}, Until: []checker.Anomaly{checker.Overlap},
		Shard: 1, Shards: 4,
	}}
}

// TestRoundTrip checks that decoding reverses encoding.
func TestRoundTrip(t *testing.T) {
	racetest.Skip(t)
	t.Parallel()
	script := cell()
	script.File, script.Script, script.Scenario = "mine.txt", "clients A\n\nA acquire\n\nexpect none\n", "mine"
	for _, c := range []item.Cell{cell(), script} {
		i, err := c.Item()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := item.ReadCell(i); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	s := search()
	i, err := s.Item()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := item.ReadSearch(i); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRefused checks that an item contains no path, no program and no unbounded number.
func TestRefused(t *testing.T) {
	t.Parallel()
	cells := map[string]struct {
		change func(*item.Cell)
		want   string
	}{
		"a world of somebody's servers": {func(c *item.Cell) { c.World = "external" }, "must be one of sim, process, docker"},
		"a world that is a path":        {func(c *item.Cell) { c.World = "../sim" }, "must be one of"},
		"a server that is a path":       {func(c *item.Cell) { c.Server = "/bin/sh" }, "a name without a directory"},
		"a server above":                {func(c *item.Cell) { c.Server = `..\sh` }, "a name without a directory"},
		"a file that is a path":         {func(c *item.Cell) { c.File, c.Script = "../x.txt", "clients A" }, "a name without a directory"},
		"a file without a script":       {func(c *item.Cell) { c.File = "x.txt" }, "go together"},
		"a script without a file":       {func(c *item.Cell) { c.Script = "clients A" }, "go together"},
		"no strategy":                   {func(c *item.Cell) { c.Strategy = "" }, "strategy: must be a name"},
		"a long name":                   {func(c *item.Cell) { c.Scenario = strings.Repeat("x", 256) }, "scenario: must be a name of 1 to 255 bytes"},
		"an escape":                     {func(c *item.Cell) { c.Scenario = "\x1b[31m" }, "without control characters"},
		"a huge script":                 {func(c *item.Cell) { c.File, c.Script = "x.txt", strings.Repeat("#", scenarios.MaxFile+1) }, "at most 1048576 bytes"},
		"an unknown tag":                {func(c *item.Cell) { c.Observed = []string{"mine"} }, `observed tag "mine": must be one of single`},
		"a tag twice":                   {func(c *item.Cell) { c.Observed = []string{"fenced", "fenced"} }, "once"},
		"many nodes":                    {func(c *item.Cell) { c.Nodes = 10 }, "nodes 10: must be between 0 and 9"},
		"no nodes":                      {func(c *item.Cell) { c.Nodes = -1 }, "nodes -1"},
		"a long lease":                  {func(c *item.Cell) { c.Lease = 25 * time.Hour }, "lease 25h0m0s"},
		"a broken lease":                {func(c *item.Cell) { c.Lease = time.Microsecond }, "whole milliseconds"},
		"a lease before":                {func(c *item.Cell) { c.Lease = -time.Second }, "lease -1s"},
		"a long limit":                  {func(c *item.Cell) { c.Limit = 1 << 62 }, "limit "},
	}
	for name, c := range cells {
		of := cell()
		c.change(&of)
		if _, err := of.Item(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	searches := map[string]struct {
		change func(*item.Search)
		want   string
	}{
		"many clients":     {func(s *item.Search) { s.Bound.Clients = 1e9 }, "clients 1000000000: must be between 1 and 26"},
		"no clients":       {func(s *item.Search) { s.Bound.Clients = 0 }, "clients 0"},
		"many rounds":      {func(s *item.Search) { s.Bound.Rounds = 1e9 }, "rounds 1000000000"},
		"many nodes":       {func(s *item.Search) { s.Bound.Nodes = 1e9 }, "bound: "},
		"many replicas":    {func(s *item.Search) { s.Bound.Replicas = 1e9 }, "bound: "},
		"many retries":     {func(s *item.Search) { s.Bound.Retries = 1e9 }, "bound: "},
		"many faults":      {func(s *item.Search) { s.Bound.Budget[explore.Crash] = 1e9 }, "crash 1000000000"},
		"an unknown fault": {func(s *item.Search) { s.Bound.Budget["evil"] = 1 }, `fault "evil": unknown`},
		"anomalies":        {func(s *item.Search) { s.Bound.Until = []checker.Anomaly{"evil"} }, `anomaly "evil": unknown`},
		"a shard of none":  {func(s *item.Search) { s.Bound.Shard = 5 }, "shard 5: must be between 1 and 4"},
		"many shards":      {func(s *item.Search) { s.Bound.Shards = 1e9 }, "shards 1000000000"},
		"a long lease":     {func(s *item.Search) { s.Bound.TTL = 1 << 62 }, "lease "},
	}
	for name, c := range searches {
		of := search()
		c.change(&of)
		if _, err := of.Item(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestForged checks that an item must match its kind, have the name of its content, and contain
// nothing else.
func TestForged(t *testing.T) {
	t.Parallel()
	i, err := cell().Item()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		item queue.Item
		want string
	}{
		"another's name":       {queue.Item{Name: i.Name + "0", Body: i.Body}, "its content has the name"},
		"a job of a process":   {queue.Item{Name: i.Name, Body: []byte(`{"Strategy":"redlock","Subject":{"Words":["sh","-c","id"]}}`)}, `unknown field "Subject"`},
		"a place":              {queue.Item{Name: i.Name, Body: []byte(`{"strategy":"redlock","place":{"RedisServer":"/bin/sh"}}`)}, "unknown field"},
		"a path for a history": {queue.Item{Name: i.Name, Body: []byte(`{"strategy":"redlock","history":"/etc/passwd"}`)}, "cannot unmarshal"},
		"two values":           {queue.Item{Name: i.Name, Body: append(i.Body, i.Body...)}, "more than one value"},
		"a huge body":          {queue.Item{Name: i.Name, Body: make([]byte, item.MaxBody+1)}, "more than the limit"},
		"nothing":              {queue.Item{Name: i.Name}, "EOF"},
	} {
		if _, err := item.ReadCell(c.item); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzItem checks that everything decoded from arbitrary bytes is a valid request.
func FuzzItem(f *testing.F) {
	for _, of := range []interface{ Item() (queue.Item, error) }{cell(), search()} {
		i, err := of.Item()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i.Name, i.Body)
	}
	f.Add("x", []byte(`{"bound":{"Clients":1000000000,"Budget":{"crash":-1}}}`))
	f.Fuzz(func(t *testing.T, name string, body []byte) {
		of := queue.Item{Name: name, Body: body}
		if c, err := item.ReadCell(of); err == nil {
			if again, err := c.Item(); err != nil {
				t.Errorf("%+v: %v %v", c, again, err)
			}
		}
		if s, err := item.ReadSearch(of); err == nil {
			if again, err := s.Item(); err != nil {
				t.Errorf("%+v: %v %v", s, again, err)
			}
		}
	})
}
